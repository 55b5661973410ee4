"""Work records add up and refuse nonsense."""

from __future__ import annotations

import pytest

from neuron_chip.collectives import Collective, Group
from neuron_chip.work import Activity, Lane, Work, total

TENSOR, VECTOR = Lane("tensor", "bf16"), Lane("vector", "1x")
GROUP = Group(ranks=4, ranks_per_chip=4, ranks_per_domain=4)
CALL = Collective(op="all_reduce", num_bytes=1024, group=GROUP)


def test_sum_adds_every_count():
    a = Work(
        lanes={TENSOR: Activity(1, 512)},
        flops={"bf16": 10},
        hbm_read_bytes=3,
        collectives={CALL: 1},
    )
    b = Work(
        lanes={TENSOR: Activity(2, 64, 1), VECTOR: Activity(5, 6, 7)},
        flops={"bf16": 1, "vector": 2},
        hbm_write_bytes=4,
        launches=1,
        collectives={CALL: 2},
    )
    both = a + b
    assert both.lanes == {TENSOR: Activity(3, 576, 1), VECTOR: Activity(5, 6, 7)}
    assert both.flops == {"bf16": 11, "vector": 2}
    assert (both.hbm_bytes, both.launches, both.instructions) == (7, 1, 8)
    assert both.collectives == {CALL: 3}
    assert not both.default_rule


def test_sum_of_nothing_is_no_work():
    assert total(()) == Work()
    assert total((Work(), Work())) == Work()


def test_product_scales_every_count():
    work = Work(
        lanes={VECTOR: Activity(2, 4, 1)},
        flops={"vector": 8},
        dma_descriptors=3,
        collectives={CALL: 1},
        default_rule=True,
    )
    half = 0.5 * work
    assert half.lanes[VECTOR] == Activity(1, 2, 0.5)
    assert (half.flops["vector"], half.dma_descriptors, half.collectives[CALL]) == (4, 1.5, 0.5)
    assert half.default_rule


def test_negative_repetition_is_refused():
    with pytest.raises(ValueError, match="cannot be repeated -1 times"):
        -1 * Work()


def test_one_guess_marks_the_sum():
    assert (Work() + Work(default_rule=True)).default_rule

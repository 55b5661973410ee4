"""Cost rules: counts that can be worked out by hand, and properties of all of them."""

from __future__ import annotations

import importlib
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import neuron_chip
from neuron_chip import cost
from neuron_chip.counts import launch
from torch_neuronx.ops.costs import Call, Machine, base_name, has_rule, is_free, work_of
from torch_neuronx.ops.costs.registry import _RULES

TRN2 = Machine(instance=neuron_chip.instance("trn2.48xlarge"), lnc=2)


def tensor(*sizes: int, dtype: str = "bfloat16", strides: tuple[int, ...] | None = None):
    natural = tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes)))
    return (True, dtype, sizes, strides or natural)


def call(op: str, arguments: list, results: list) -> Call:
    return Call.from_parts((op, arguments, results))


@pytest.mark.parametrize(
    ("op", "base"),
    [
        ("aten::add_.Tensor", "add"),
        ("aten::_foreach_mul_.Scalar", "_foreach_mul"),
        ("aten::_softmax", "_softmax"),
        ("c10d::neuron_all_reduce", "neuron_all_reduce"),
    ],
)
def test_base_names(op, base):
    assert base_name(op) == base


def test_a_product_counts_its_flops_and_bytes():
    work = work_of(call("aten::mm", [tensor(128, 256), tensor(256, 512)], [tensor(128, 512)]), TRN2)
    assert work.flops == {"bf16": 2 * 128 * 256 * 512}
    assert work.hbm_write_bytes == 2 * 128 * 512
    assert work.hbm_read_bytes >= 2 * (128 * 256 + 256 * 512)
    assert work.launches == 1


def test_an_addition_reads_both_operands_and_a_broadcast_one_once():
    work = work_of(
        call("aten::add.Tensor", [tensor(64, 32), tensor(64, 32), 1], [tensor(64, 32)]), TRN2
    )
    assert (work.hbm_read_bytes, work.hbm_write_bytes) == (2 * 2 * 2048, 2 * 2048)
    row = tensor(64, 32, strides=(0, 1))
    work = work_of(call("aten::add.Tensor", [tensor(64, 32), row, 1], [tensor(64, 32)]), TRN2)
    assert work.hbm_read_bytes == 2 * 2048 + 2 * 32


def test_causal_attention_costs_less():
    q = tensor(1, 8, 2048, 128)
    op = "aten::_scaled_dot_product_flash_attention_for_cpu"
    times = [
        cost.price(
            work_of(call(op, [q, q, q, 0.0, causal, None, None], [q]), TRN2), TRN2.chip
        ).seconds
        for causal in (False, True)
    ]
    assert 0.4 * times[0] < times[1] < 0.75 * times[0]


def test_views_start_nothing():
    for op in ("aten::view", "aten::as_strided", "aten::empty.memory_format"):
        assert is_free(op)
        assert work_of(call(op, [tensor(4)], [tensor(4)]), TRN2) == neuron_chip.Work()


def test_an_unknown_operator_is_priced_and_marked():
    work = work_of(call("aten::no_such_thing", [tensor(1000)], [tensor(1000)]), TRN2)
    assert work.default_rule
    assert (work.hbm_read_bytes, work.hbm_write_bytes) == (2000, 2000)
    assert not has_rule("aten::no_such_thing")


def test_an_overload_that_a_rule_does_not_fit_gets_the_default():
    work = work_of(call("aten::mm.out_of_nowhere", [3, 4], [tensor(10)]), TRN2)
    assert work.default_rule


def test_a_copy_to_the_host_crosses_and_waits():
    host = (False, "float32", (10,), (1,))
    work = work_of(call("aten::copy_", [host, tensor(10, dtype="float32")], [host]), TRN2)
    assert (work.host_bytes, work.read_backs) == (40, 1)


def test_a_collective_keeps_bytes_and_group():
    work = work_of(call("c10d::neuron_all_reduce", [1 << 20, 64, 1], []), TRN2)
    ((collective, count),) = work.collectives.items()
    assert (collective.num_bytes, collective.group.ranks, count) == (1 << 20, 64, 1)


def test_every_rule_names_an_operator():
    importlib.import_module("torch.distributed.fsdp")  # defines operators of its own
    known = {base_name(op) for op in torch._C._dispatch_get_all_op_names()}
    strangers = {name for name in _RULES if name not in known and not name.startswith("neuron_")}
    # List forms of functions that PyTorch may not have as a list operator.
    assert {name for name in strangers if not name.startswith("_foreach_")} == set()


SIZES = st.integers(1, 4096)
ONE_TENSOR = sorted({"exp", "tanh", "gelu", "silu", "_softmax", "sum", "clone", "neg", "sqrt"})


def _one(name: str, rows: int, columns: int, dtype: str) -> float:
    self = tensor(rows, columns, dtype=dtype)
    out = [tensor(rows, dtype=dtype)] if name == "sum" else [self]
    arguments = {"_softmax": [self, -1, False], "gelu": [self, "none"]}.get(name, [self])
    work = work_of(call(f"aten::{name}", arguments, out), TRN2)
    assert not work.default_rule
    return cost.price(work, TRN2.chip, lnc=2).seconds


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(ONE_TENSOR), SIZES, SIZES, st.sampled_from(["bfloat16", "float32"]))
def test_more_rows_are_never_faster(name, rows, columns, dtype):
    assert _one(name, 2 * rows, columns, dtype) >= 0.999 * _one(name, rows, columns, dtype)


@settings(max_examples=60, deadline=None)
@given(SIZES, SIZES, SIZES)
def test_a_longer_product_is_never_faster_and_never_beats_the_peak(m, k, n):
    def seconds(depth: int) -> tuple[float, float]:
        work = work_of(call("aten::mm", [tensor(m, depth), tensor(depth, n)], [tensor(m, n)]), TRN2)
        time = cost.price(work, TRN2.chip, lnc=2).seconds
        return time, cost.mfu(work, time, TRN2.chip, lnc=2)

    short, use = seconds(k)
    long, _ = seconds(2 * k)
    assert long >= 0.999 * short
    assert use <= 1.0


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(ONE_TENSOR), SIZES, SIZES)
def test_time_is_at_least_each_engines_floor(name, rows, columns):
    self = tensor(rows, columns)
    out = [tensor(rows)] if name == "sum" else [self]
    arguments = {"_softmax": [self, -1, False], "gelu": [self, "none"]}.get(name, [self])
    work = work_of(call(f"aten::{name}", arguments, out), TRN2)
    time = cost.price(work, TRN2.chip, lnc=2)
    floors = cost.engine_floors(work, TRN2.chip, lnc=2)
    assert all(time.seconds >= 0.999 * floor for floor in floors.values())
    assert time.low_seconds <= time.seconds <= time.high_seconds
    assert launch().launches == 1

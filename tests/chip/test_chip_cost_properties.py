"""Properties of prices: monotone, never below a floor, never slower on a faster chip."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuron_chip.chips import TRN1, TRN2, TRN3
from neuron_chip.collectives import Collective, Group, collective_time
from neuron_chip.cost import engine_floors, price
from neuron_chip.counts import attention, elementwise, matmul, row_operation, top_k
from neuron_chip.instructions import INSTRUCTIONS, Issue, issue_seconds
from neuron_chip.work import Activity, Lane, Work, total

FEW = settings(max_examples=60, deadline=None)
AMOUNT = st.floats(min_value=0, max_value=1e9)
LANES = st.sampled_from(
    [
        *(Lane("tensor", rate) for rate in ("bf16", "fp32", "fp8")),
        *(Lane(engine, rate) for engine in ("vector", "scalar", "gpsimd") for rate in ("1x", "4x")),
    ]
)
ACTIVITIES = st.builds(Activity, AMOUNT, AMOUNT, st.floats(min_value=0, max_value=1e6))
GROUPS = st.sampled_from(
    [
        Group(ranks=4, ranks_per_chip=4, ranks_per_domain=4),
        Group(ranks=64, ranks_per_chip=4, ranks_per_domain=64),
        Group(
            ranks=256, ranks_per_chip=4, ranks_per_domain=64, network_bytes_per_second_per_rank=6e9
        ),
    ]
)
OPERATIONS = st.sampled_from(
    ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute"]
)
CALLS = st.builds(Collective, op=OPERATIONS, num_bytes=AMOUNT, group=GROUPS)
WORKS = st.builds(
    Work,
    lanes=st.dictionaries(LANES, ACTIVITIES, max_size=3),
    hbm_read_bytes=AMOUNT,
    hbm_write_bytes=AMOUNT,
    dma_descriptors=AMOUNT,
    software_descriptors=st.floats(min_value=0, max_value=1e5),
    dma_transpose_bytes=AMOUNT,
    host_bytes=AMOUNT,
    table_loads=st.floats(min_value=0, max_value=100),
    tensor_bursts=st.floats(min_value=0, max_value=100),
    launches=st.floats(min_value=0, max_value=100),
    collectives=st.dictionaries(CALLS, st.floats(min_value=0, max_value=10), max_size=2),
)
SLACK = 1 + 1e-9


@FEW
@given(WORKS, WORKS)
def test_more_work_never_takes_less_time(work, more):
    before = price(work, TRN2, software="eager")
    after = price(work + more, TRN2, software="eager")
    assert before.seconds <= after.seconds * SLACK
    assert before.high_seconds <= after.high_seconds * SLACK


@FEW
@given(WORKS)
def test_time_is_at_least_every_engines_floor_and_inside_its_range(work):
    time = price(work, TRN2, software="eager")
    for engine, floor in engine_floors(work, TRN2).items():
        assert floor <= time.seconds * SLACK, engine
    assert time.low_seconds <= time.seconds <= time.high_seconds * SLACK


@FEW
@given(WORKS)
def test_newer_chip_is_never_slower(work):
    assert price(work, TRN3).seconds <= price(work, TRN2).seconds * SLACK


FASTER = {
    "tensor clock": lambda c: dataclasses.replace(
        c, tensor=dataclasses.replace(c.tensor, clock_ghz=2 * c.tensor.clock_ghz)
    ),
    "vector clock": lambda c: dataclasses.replace(
        c, vector=dataclasses.replace(c.vector, clock_ghz=2 * c.vector.clock_ghz)
    ),
    "scalar fixed time": lambda c: dataclasses.replace(
        c, scalar=dataclasses.replace(c.scalar, fixed_ns=c.scalar.fixed_ns / 2)
    ),
    "HBM": lambda c: dataclasses.replace(
        c, hbm=dataclasses.replace(c.hbm, bytes_per_second=2 * c.hbm.bytes_per_second)
    ),
    "DMA": lambda c: dataclasses.replace(
        c,
        dma=dataclasses.replace(
            c.dma, bytes_per_second_per_engine=c.dma.peak_bytes_per_second_per_engine
        ),
    ),
    "links": lambda c: dataclasses.replace(
        c,
        link=dataclasses.replace(
            c.link, bytes_per_second_per_channel=2 * c.link.bytes_per_second_per_channel
        ),
    ),
    "no throttle": lambda c: dataclasses.replace(c, throttle=None),
}


@pytest.mark.parametrize("part", FASTER)
@FEW
@given(WORKS)
def test_faster_part_never_makes_work_slower(part, work):
    assert price(work, FASTER[part](TRN2)).seconds <= price(work, TRN2).seconds * SLACK


@FEW
@given(WORKS, WORKS, WORKS)
def test_work_adds_up_in_any_order(a, b, c):
    left, right = price((a + b) + c, TRN2).seconds, price(total((c, b, a)), TRN2).seconds
    assert left == pytest.approx(right, rel=1e-9)


@FEW
@given(WORKS)
def test_work_twice_is_the_sum(work):
    assert price(2 * work, TRN2).seconds == pytest.approx(
        price(work + work, TRN2).seconds, rel=1e-9
    )


SIZE = st.integers(min_value=1, max_value=20000)


@FEW
@given(SIZE, SIZE, SIZE, SIZE, st.sampled_from(["bfloat16", "float32", "float8_e5m2"]))
def test_larger_product_never_takes_less_time(m, k, n, extra, dtype):
    base = price(matmul(m, k, n, chip=TRN2, dtype=dtype), TRN2).seconds
    for larger in ((m + extra, k, n), (m, k + extra, n), (m, k, n + extra)):
        assert base <= price(matmul(*larger, chip=TRN2, dtype=dtype), TRN2).seconds * SLACK


@FEW
@given(SIZE, SIZE, SIZE)
def test_product_never_beats_the_peak(m, k, n):
    seconds = price(matmul(m, k, n, chip=TRN2), TRN2).seconds
    assert 2.0 * m * k * n / seconds <= TRN2.peak_flops_per_second(lnc=2)


@FEW
@given(st.integers(1, 10**8), st.integers(0, 10**8))
def test_more_elements_never_take_less_time(elements, extra):
    for name in ("add", "silu", "div", "gelu_erf", "copy"):
        a, b = (price(elementwise(name, e, chip=TRN2), TRN2) for e in (elements, elements + extra))
        assert a.seconds <= b.seconds * SLACK, name


@FEW
@given(st.integers(1, 4096), st.integers(1, 32768), st.integers(0, 4096), st.integers(0, 32768))
def test_more_or_longer_rows_never_take_less_time(rows, length, more_rows, longer):
    for name in ("sum", "softmax", "rms_norm", "layer_norm", "max_with_index"):
        base = row_operation(name, rows, length, chip=TRN2)
        large = row_operation(name, rows + more_rows, length + longer, chip=TRN2)
        # Short rows make short instructions, which cost more per element: compare the traffic.
        assert base.hbm_bytes <= large.hbm_bytes
        longer_rows = row_operation(name, rows + more_rows, length, chip=TRN2)
        assert price(base, TRN2).seconds <= price(longer_rows, TRN2).seconds * SLACK
    k, more = (price(top_k(rows, length, k, chip=TRN2), TRN2).seconds for k in (8, 50))
    assert k <= more


@FEW
@given(st.integers(1, 64), st.integers(1, 20000), st.integers(0, 20000))
def test_longer_cache_never_makes_decoding_faster(batch, context, extra):
    def seconds(length):
        work = attention(
            chip=TRN2,
            batch=batch,
            q_heads=8,
            kv_heads=2,
            q_length=1,
            kv_length=length,
            head_dim=128,
        )
        return price(work, TRN2).seconds

    assert seconds(context) <= seconds(context + extra) * SLACK


@FEW
@given(OPERATIONS, GROUPS, AMOUNT, AMOUNT)
def test_more_bytes_never_make_a_collective_faster(op, group, num_bytes, extra):
    a, b = (
        collective_time(Collective(op=op, num_bytes=size, group=group), TRN2).total_us
        for size in (num_bytes, num_bytes + extra)
    )
    assert a <= b * SLACK


@FEW
@given(
    st.sampled_from([row for row in INSTRUCTIONS if row.cost is not None]),
    st.integers(1, 16384),
    st.integers(0, 16384),
    st.sampled_from(["float32", "bfloat16"]),
)
def test_longer_instruction_never_takes_less_time(row, elements, extra, dtype):
    for chip in (TRN1, TRN2, TRN3):
        for engine in row.engines_on(chip.generation):
            short, long = (
                Issue(
                    engine=engine,
                    elements=size,
                    in_dtypes=(dtype, dtype),
                    out_dtype=dtype,
                    in_memories=("sbuf", "sbuf"),
                )
                for size in (elements, 2 * (elements + extra))
            )
            assert issue_seconds(row.name, short, chip) > 0
            assert issue_seconds(row.name, short, chip) <= issue_seconds(row.name, long, chip)

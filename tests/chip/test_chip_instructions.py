"""Instruction rows: complete, consistent, and priced as the guides print."""

from __future__ import annotations

import pytest

from neuron_chip.chips import TRN1, TRN2, TRN3
from neuron_chip.instructions import (
    INSTRUCTIONS,
    Issue,
    completion_seconds,
    instruction,
    issue_cycles,
    issue_seconds,
)

# Every function of nki.isa that is an instruction, and every collective of nki.collectives.
NAMES = """
dma_copy tensor_copy memset tensor_copy_predicated nc_matmul nc_matmul_mx nc_transpose dma_transpose
tensor_tensor tensor_scalar tensor_reduce tensor_partition_reduce tensor_scalar_cumulative
activation activation_reduce activate2 iota affine_select local_gather nc_n_gather bn_stats bn_aggr
tensor_tensor_scan nc_stream_shuffle rng dropout set_rng_seed rand_set_state rand_get_state rand2
exponential reciprocal max8 sequence_bounds scalar_tensor_tensor tensor_scalar_reduce core_barrier
dma_compute quantize_mx range_select select_reduce sendrecv register_alloc register_move
register_load register_store nc_find_index8 nc_match_replace8 nonzero_with_count topk
all_reduce all_gather all_gather_v reduce_scatter all_to_all all_to_all_v collective_permute
collective_permute_implicit collective_permute_implicit_reduce
""".split()


def test_every_instruction_has_one_row():
    assert sorted(row.name for row in INSTRUCTIONS) == sorted(NAMES)


def test_only_dma_and_collectives_have_no_engine_cost():
    for row in INSTRUCTIONS:
        assert (row.cost is None) == (row.engines[0] in ("dma", "collective")), row.name


@pytest.mark.parametrize(
    ("name", "issue", "chip", "cycles"),
    [
        ("activation", Issue(engine="scalar", elements=10), TRN2, 64),
        ("activation", Issue(engine="scalar", elements=1000), TRN2, 1000),
        (
            "activation",
            Issue(engine="scalar", elements=1000, in_dtypes=("bfloat16",), out_dtype="bfloat16"),
            TRN3,
            500,
        ),
        ("activation_reduce", Issue(engine="scalar", elements=1000), TRN2, 1064),
        ("tensor_tensor", Issue(engine="vector", elements=512), TRN2, 1024),
        (
            "tensor_tensor",
            Issue(engine="vector", elements=512, in_memories=("psum", "sbuf")),
            TRN2,
            512,
        ),
        ("tensor_copy", Issue(engine="vector", elements=512), TRN1, 512),
        ("tensor_copy", Issue(engine="vector", elements=512), TRN2, 256),
        (
            "tensor_copy",
            Issue(engine="vector", elements=512, in_dtypes=("bfloat16",), out_dtype="bfloat16"),
            TRN2,
            128,
        ),
        ("tensor_copy", Issue(engine="vector", elements=512, dynamic_offset=True), TRN2, 600),
        ("reciprocal", Issue(engine="vector", elements=512), TRN2, 4096),
        ("tensor_tensor_scan", Issue(engine="vector", elements=512), TRN2, 1024),
        ("bn_aggr", Issue(engine="vector", elements=48), TRN2, 208),
        ("iota", Issue(engine="gpsimd", elements=512), TRN2, 662),
        ("topk", Issue(engine="gpsimd", elements=1000, count=64), TRN2, 150 + 4064),
        ("nc_transpose", Issue(engine="tensor", elements=128, in_dtypes=("bfloat16",)), TRN2, 142),
        ("exponential", Issue(engine="vector", elements=1024), TRN3, 256),
    ],
)
def test_cycles_follow_the_published_formula(name, issue, chip, cycles):
    assert issue_cycles(name, issue, chip) == cycles


def test_matrix_instruction_streams_its_columns():
    bf16, fp32 = (
        Issue(engine="tensor", elements=512, in_dtypes=(d, d), out_memory="psum")
        for d in ("bfloat16", "float32")
    )
    assert issue_cycles("nc_matmul", bf16, TRN2) == 512 + 14
    # The tutorial's profile shows 859 ns for the fp32 pair.
    assert issue_seconds("nc_matmul", fp32, TRN2) == pytest.approx(859e-9, rel=0.001)


def test_a_waiting_instruction_pays_the_fixed_time_on_top():
    issue = Issue(engine="scalar", elements=128)
    # 128 / 1.2 GHz + 290 ns; the profile shows 400 ns.
    seconds = issue_seconds("activation", issue, TRN2) + completion_seconds(issue, TRN2)
    assert seconds == pytest.approx(400e-9, rel=0.02)


def test_engines_depend_on_the_generation():
    assert instruction("tensor_copy").engines_on(2) == ("vector", "gpsimd")
    assert instruction("tensor_copy").engines_on(3) == ("vector", "scalar", "gpsimd")
    assert instruction("nc_matmul_mx").engines_on(3) == ()
    assert instruction("rand_get_state").engines_on(3) == ("gpsimd",)


def test_dma_is_not_priced_in_engine_cycles():
    with pytest.raises(ValueError, match=r"dma_copy runs on dma.*cost.dma_seconds"):
        issue_cycles("dma_copy", Issue(engine="dma", elements=1), TRN2)


def test_unknown_instruction_names_the_closest():
    with pytest.raises(ValueError, match="Did you mean 'tensor_tensor'"):
        instruction("tensor_tensr")


def test_limits_are_those_of_the_hardware():
    assert instruction("nc_matmul").operand("stationary").max_free == 128
    assert instruction("nc_matmul").operand("dst").memories == ("psum",)
    assert instruction("bn_stats").operand("data").max_free == 512
    assert instruction("max8").operand("src").max_free == 16384
    assert "psum" not in instruction("iota").operand("dst").memories

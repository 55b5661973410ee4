"""Chips, parts, instances, dtypes: the rows hold together and say what users rely on."""

from __future__ import annotations

import dataclasses

import pytest

import neuron_chip
from neuron_chip import sources
from neuron_chip.chips import CHIPS, TRN2
from neuron_chip.dtypes import DTYPES
from neuron_chip.instances import INSTANCES
from neuron_chip.parts import GIB, ScratchMemory
from neuron_chip.stacks import STACKS

pytestmark = pytest.mark.smoke


def test_default_instance_has_four_logical_cores_of_24_gib():
    instance = neuron_chip.instance()
    assert instance.name == "trn2.3xlarge"
    assert instance.logical_cores(lnc=2) == 4
    assert instance.hbm_bytes_per_logical_core(lnc=2) == 24 * GIB == 25_769_803_776


def test_lnc_1_halves_the_memory_of_a_core():
    instance = neuron_chip.instance("trn2.48xlarge")
    assert instance.logical_cores() == 64
    assert instance.logical_cores(lnc=1) == 128
    assert instance.hbm_bytes_per_logical_core(lnc=1) == 12 * GIB


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("gen3", "trn2"),
        ("Trainium2", "trn2"),
        ("trn3pre", "trn3"),
        ("gen2", "trn1"),
        (" trn2", "trn2"),
    ],
)
def test_chip_is_found_by_product_and_generation(alias, name):
    assert neuron_chip.chip(alias).name == name


def test_unknown_instance_names_the_closest_and_all_known():
    with pytest.raises(
        ValueError, match=r"no instance 'trn2.4xlarge'. Did you mean 'trn2.48xlarge'"
    ):
        neuron_chip.instance("trn2.4xlarge")
    with pytest.raises(neuron_chip.UnknownNameError, match=r"Known: trn1, inf2, trn2, trn3"):
        neuron_chip.chip("tpu")


def test_impossible_lnc_names_the_allowed_sizes():
    with pytest.raises(ValueError, match=r"trn2 cannot fuse 3 .* allows 1 or 2"):
        TRN2.logical_cores(lnc=3)
    with pytest.raises(ValueError, match=r"trn1 cannot fuse 2 .* allows 1\."):
        neuron_chip.chip("trn1").logical_cores(lnc=2)


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_clock_reproduces_the_data_sheet_within_a_tenth(chip):
    # 128 x 128 cells x 2 operations x clock x cores; trn2: 78.6 TFLOPS x 8 = 629 of 667.
    tflops = chip.tensor.dense_flops_per_second * chip.num_cores / 1e12
    assert tflops == pytest.approx(chip.stated_tflops["bf16"], rel=0.1)
    passes = chip.tensor.fp32_passes
    assert tflops / passes == pytest.approx(chip.stated_tflops["fp32"], rel=0.15)


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_psum_bank_holds_512_fp32(chip):
    assert chip.psum.banks == 8
    assert chip.psum.bank_bytes_per_partition == 512 * 4


def test_each_generation_is_at_least_as_fast():
    trn1, _, trn2, trn3 = CHIPS
    for older, newer in ((trn1, trn2), (trn2, trn3)):
        assert newer.hbm.bytes_per_second > older.hbm.bytes_per_second
        assert newer.sbuf.total_bytes > older.sbuf.total_bytes
        assert newer.dma.bytes_per_second > older.dma.bytes_per_second


def test_descriptor_time_is_the_gap_between_peak_and_practical_rate():
    # 4096 B / 23 B/ns - 4096 B / 27.2 B/ns = 178.1 - 150.6 = 27.5 ns
    assert TRN2.dma.descriptor_ns == pytest.approx(27.5, abs=0.05)


def test_memory_whose_sizes_disagree_is_refused():
    with pytest.raises(AssertionError):
        ScratchMemory(
            name="sbuf",
            partitions=128,
            bytes_per_partition=1024,
            total_bytes=128 * 1024 + 1,
            bank_bytes_per_partition=None,
            source="hw",
        )


def test_row_without_a_known_source_is_refused():
    with pytest.raises(AssertionError, match="somebody"):
        dataclasses.replace(TRN2.hbm, source="somebody")
    with pytest.raises(AssertionError, match="no source"):
        sources.check("")


def test_names_are_unique_over_all_tables():
    for rows in (CHIPS, INSTANCES, DTYPES, STACKS, neuron_chip.GPU_INSTANCES):
        names = [row.name for row in rows]
        assert len(names) == len(set(names))
    aliases = [alias for chip in CHIPS for alias in (chip.name, *chip.aliases)]
    assert len(aliases) == len(set(aliases))


def test_ultraserver_joins_what_its_hosts_have():
    node, server = neuron_chip.instance("trn2u.48xlarge"), neuron_chip.instance("trn2-ultraserver")
    assert server.num_chips == 4 * node.num_chips
    assert server.hbm_bytes == 4 * node.hbm_bytes == 6144 * GIB
    assert server.vcpus == 4 * node.vcpus


@pytest.mark.parametrize(
    ("name", "row"),
    [("bf16", "bfloat16"), ("torch.float32", "float32"), ("bool_", "bool"), ("half", "float16")],
)
def test_dtype_is_found_by_common_names(name, row):
    assert neuron_chip.dtype(name).name == row


def test_dtype_limits_follow_from_their_bits():
    for row in DTYPES:
        if row.kind != "float" or row.exponent_bits is None or row.name == "float8_e8m0fnu":
            continue
        bias = 2 ** (row.exponent_bits - 1) - 1
        top = 2.0 ** (bias if row.has_infinity else bias + 1)
        mantissa = 2 - 2.0**-row.mantissa_bits
        if not row.has_infinity:  # the all-ones pattern is NaN, so one step less
            mantissa -= 2.0**-row.mantissa_bits
        assert row.max_finite == top * mantissa, row.name


def test_every_numeric_fact_of_a_chip_is_positive_or_unknown():
    def walk(record):
        for field in dataclasses.fields(record):
            value = getattr(record, field.name)
            if dataclasses.is_dataclass(value):
                yield from walk(value)
            elif isinstance(value, int | float) and not isinstance(value, bool):
                yield f"{type(record).__name__}.{field.name}", value

    facts = [fact for chip in CHIPS for fact in walk(chip)]
    assert len(facts) > 200
    assert [name for name, value in facts if not value > 0] == []

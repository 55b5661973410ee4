"""Memory: what the counters say, limits, and running out."""

from __future__ import annotations

import gc

import pytest
import torch

MIB = 1024**2


@pytest.fixture(autouse=True)
def clean_counters():
    gc.collect()
    torch.neuron.synchronize()
    torch.neuron.empty_cache()
    torch.neuron.reset_peak_memory_stats()
    torch.neuron.reset_accumulated_memory_stats()
    return


def test_a_resize_that_fails_leaves_the_tensor_as_it_was():
    tensor = torch.ones(4, device="neuron")
    with pytest.raises(torch.OutOfMemoryError):
        tensor.resize_(2**40)
    assert tensor.shape == (4,)
    assert (tensor + 1).tolist() == [2.0] * 4


def test_a_tensor_is_counted_while_it_lives():
    before = torch.neuron.memory_allocated()
    x = torch.empty(3 * MIB, dtype=torch.uint8, device="neuron")
    assert torch.neuron.memory_allocated() - before == 3 * MIB
    assert torch.neuron.memory_reserved() >= torch.neuron.memory_allocated()
    del x
    assert torch.neuron.memory_allocated() == before


def test_small_tensors_are_rounded_to_256_bytes_at_least():
    before = torch.neuron.memory_allocated()
    x = torch.empty(1, device="neuron")
    assert torch.neuron.memory_allocated() - before == 256
    assert x.numel() == 1


def test_the_peak_stays_until_it_is_reset():
    before = torch.neuron.memory_allocated()
    x = torch.empty(8 * MIB, dtype=torch.uint8, device="neuron")
    del x
    assert torch.neuron.max_memory_allocated() == before + 8 * MIB
    torch.neuron.reset_peak_memory_stats()
    assert torch.neuron.max_memory_allocated() == before


def test_freed_memory_stays_reserved_until_the_cache_is_emptied():
    x = torch.empty(64 * MIB, dtype=torch.uint8, device="neuron")
    reserved = torch.neuron.memory_reserved()
    del x
    assert torch.neuron.memory_reserved() == reserved
    torch.neuron.empty_cache()
    assert torch.neuron.memory_reserved() <= reserved - 64 * MIB


def test_each_device_counts_for_itself():
    before = [torch.neuron.memory_allocated(index) for index in range(2)]
    x = torch.empty(2 * MIB, dtype=torch.uint8, device="neuron:1")
    after = [torch.neuron.memory_allocated(index) for index in range(2)]
    assert [b - a for a, b in zip(before, after, strict=True)] == [0, x.numel()]


def test_views_and_in_place_work_allocate_nothing():
    x = torch.zeros(1000, device="neuron")
    before = torch.neuron.memory_allocated()
    y = x.view(10, 100)[2:4].t()
    y.add_(1)
    assert torch.neuron.memory_allocated() == before


def test_stats_have_the_keys_of_cuda_and_of_aws():
    x = torch.empty(1000, device="neuron")
    stats = torch.neuron.memory_stats()
    for statistic in (
        "allocation",
        "segment",
        "active",
        "inactive_split",
        "allocated_bytes",
        "reserved_bytes",
        "active_bytes",
        "inactive_split_bytes",
        "requested_bytes",
    ):
        for pool in ("all", "small_pool", "large_pool"):
            for kind in ("current", "peak", "allocated", "freed"):
                assert stats[f"{statistic}.{pool}.{kind}"] >= 0
    for short in ("allocated_bytes", "reserved_bytes", "active_bytes"):
        assert stats[short] == stats[f"{short}.all.current"] > 0
    assert {"num_alloc_retries", "num_ooms", "num_tensor_frees"} <= set(stats)
    assert list(stats) == sorted(stats)
    assert stats["requested_bytes.all.current"] >= x.nbytes


def test_reserved_holds_allocated_and_active():
    x = torch.empty(5 * MIB, dtype=torch.uint8, device="neuron")
    stats = torch.neuron.memory_stats()
    assert stats["reserved_bytes"] >= stats["active_bytes"] >= stats["allocated_bytes"]
    assert stats["allocated_bytes"] >= x.nbytes


def test_pools_sum_to_all():
    x = [torch.empty(size, dtype=torch.uint8, device="neuron") for size in (100, 5 * MIB)]
    stats = torch.neuron.memory_stats()
    for statistic in ("allocated_bytes", "reserved_bytes", "allocation"):
        assert stats[f"{statistic}.all.current"] == (
            stats[f"{statistic}.small_pool.current"] + stats[f"{statistic}.large_pool.current"]
        )
    assert len(x) == 2


def test_the_accelerator_sees_the_same_numbers():
    x = torch.empty(3 * MIB, dtype=torch.uint8, device="neuron")
    assert torch.accelerator.memory_allocated() == torch.neuron.memory_allocated() >= x.nbytes
    assert torch.accelerator.memory_reserved() == torch.neuron.memory_reserved()
    assert torch.accelerator.max_memory_allocated() == torch.neuron.max_memory_allocated()
    assert torch.accelerator.get_memory_info() == torch.neuron.mem_get_info()


def test_free_and_total_memory_are_those_of_the_core():
    x = torch.empty(32 * MIB, dtype=torch.uint8, device="neuron")
    free, total = torch.neuron.mem_get_info()
    assert total == torch.neuron.get_device_properties().total_memory == 24 * 1024 * MIB
    assert free == total - torch.neuron.memory_reserved() <= total - x.nbytes


def test_running_out_of_hbm_says_how_much_of_what_and_the_device_goes_on():
    with pytest.raises(torch.OutOfMemoryError) as caught:
        torch.empty(25 * 1024 * MIB, dtype=torch.uint8, device="neuron")
    text = str(caught.value)
    assert "tried to allocate 25.00 GiB (26843545600 bytes)" in text
    assert "24.00 GiB" in text
    assert "NEURON_INSTANCE_TYPE" in text
    assert torch.neuron.memory_stats()["num_ooms"] == 1
    assert torch.ones(10, device="neuron").sum().item() == 10


def test_a_fraction_limits_the_process():
    torch.neuron.set_per_process_memory_fraction(0.001)
    try:
        assert torch.neuron.get_per_process_memory_fraction() == pytest.approx(0.001)
        with pytest.raises(torch.OutOfMemoryError, match="fraction"):
            torch.empty(64 * MIB, dtype=torch.uint8, device="neuron")
    finally:
        torch.neuron.set_per_process_memory_fraction(1.0)
    x = torch.empty(64 * MIB, dtype=torch.uint8, device="neuron")
    assert x.numel() == 64 * MIB


@pytest.mark.parametrize("fraction", [0, -0.5, 1.5, "half"])
def test_a_fraction_that_cannot_be_is_refused(fraction):
    with pytest.raises(ValueError, match=r"give a number in \(0, 1\]"):
        torch.neuron.set_per_process_memory_fraction(fraction)


def test_the_summary_shows_the_counters():
    x = torch.empty(3 * MIB, dtype=torch.uint8, device="neuron")
    text = torch.neuron.memory_summary()
    assert "neuron:0  trn2, 24.00 GiB HBM" in text
    assert "large pool" in text
    line = next(line for line in text.splitlines() if line.startswith("Requested memory"))
    assert "MiB" in line
    assert "large pool" not in torch.neuron.memory_summary(abbreviated=True)
    assert x.numel() == 3 * MIB

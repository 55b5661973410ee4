"""The modelled clock: known sums, dependencies, and the published matrix product."""

from __future__ import annotations

import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
from neuron_chip import chip as find_chip
from nki.program.storage import MemoryRegion


def _profile(kernel, *args):
    return nki.profile(kernel)(*args)


def test_tensor_engine_time_is_the_sum_of_its_instructions(chip):
    x = np.zeros((128, 512), np.float32)

    def kernel(x):
        tile = nl.load(x)
        product = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)
        for _ in range(10):
            nisa.nc_matmul(product, tile[:, 0:128], tile)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.copy(product))
        return out

    timeline = _profile(kernel, x)
    tensor = find_chip("trn2").tensor
    # Ten fp32 products of 512 columns: 4 passes each, and the gap of a stationary load.
    cycles = 10 * (4 * 512 + tensor.issue_gap_cycles)
    assert timeline.busy_seconds()["tensor"] == pytest.approx(cycles / (tensor.clock_ghz * 1e9))
    assert timeline.flops == 10 * 2 * 128 * 128 * 512


def test_dependent_instructions_wait_and_independent_ones_overlap(chip):
    def chain(x, dependent):
        tiles = [nl.load(x), nl.load(x)]
        for i in range(20):
            source = tiles[0] if dependent else tiles[i % 2]
            engine = nisa.engine.scalar if i % 2 else nisa.engine.vector
            nisa.tensor_copy(source, source, engine=engine)
        nl.store(x, tiles[0])
        return x

    x = np.zeros((128, 512), np.float32)
    apart, together = (nki.profile(chain)(x, flag) for flag in (False, True))
    assert together.total_seconds > apart.total_seconds
    for before, after in zip(together.slots, together.slots[1:], strict=False):
        if before.lane == after.lane:
            assert after.start >= before.start + before.busy - 1e-15


def test_no_instruction_starts_before_its_data_is_there(chip):
    def kernel(x):
        tile = nl.load(x)
        for _ in range(5):
            tile = nl.exp(nl.add(tile, 1.0))
        nl.store(x, tile)
        return x

    timeline = _profile(kernel, np.zeros((64, 64), np.float32))
    written = {}
    for slot in timeline.slots:
        for tensor in slot.instruction.tensors_in():
            assert slot.start >= written.get(tensor.storage.index, 0.0) - 1e-15
        for tensor in slot.instruction.outputs.values():
            written[tensor.storage.index] = slot.finish
    path = timeline.critical_path()
    assert path[0].start == 0
    assert path[-1].finish == timeline.total_seconds


def test_events_use_the_common_schema(chip):
    def kernel(x):
        nl.store(x, nl.exp(nl.load(x)))
        return x

    events = list(_profile(kernel, np.zeros((8, 8), np.float32)).events())
    assert [event.name for event in events] == ["dma_copy", "activation", "dma_copy"]
    assert all(event.modelled and event.duration_ns > 0 for event in events)
    assert events[1].python_file == __file__


def test_benchmark_runs_and_remembers_the_latency(chip):
    @nki.benchmark(warmup=1, iters=1)
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.exp(nl.load(x)))
        return out

    x = np.zeros((8, 8), np.float32)
    np.testing.assert_array_equal(kernel(x), np.ones((8, 8)))
    latency = kernel.benchmark_result.nc_latency.get_latency_percentile(50)
    assert latency == pytest.approx(kernel.timeline.total_seconds * 1e6)
    assert 2 < latency < 50


def _blocked_matmul(lhs_t, rhs, m_tiles=8, n_tiles=2, k_tiles=8):
    """All dimensions blocked, sums kept in SBUF, operands double-buffered by the scheduler."""
    k_size, m_size = lhs_t.shape
    n_size = rhs.shape[1]
    out = nl.ndarray((m_size, n_size), lhs_t.dtype, buffer=nl.shared_hbm)
    for n in range(n_size // (512 * n_tiles)):
        columns = slice(n * 512 * n_tiles, (n + 1) * 512 * n_tiles)
        sums = [
            [nl.ndarray((128, 512), nl.float32) for _ in range(n_tiles)]
            for _ in range(m_size // 128)
        ]
        for k in range(k_size // (128 * k_tiles)):
            starts = [(k * k_tiles + i) * 128 for i in range(k_tiles)]
            depth = [slice(start, start + 128) for start in starts]
            right = [nl.load(rhs[rows, columns]) for rows in depth]
            for m in range(m_size // (128 * m_tiles)):
                across = slice(m * 128 * m_tiles, (m + 1) * 128 * m_tiles)
                left = [nl.load(lhs_t[rows, across]) for rows in depth]
                for j in range(n_tiles):
                    for i in range(m_tiles):
                        product = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)
                        for a, b in zip(left, right, strict=True):
                            nisa.nc_matmul(
                                product,
                                a[:, i * 128 : (i + 1) * 128],
                                b[:, j * 512 : (j + 1) * 512],
                            )
                        total = sums[m * m_tiles + i][j]
                        if k == 0:
                            nisa.tensor_copy(total, product)
                        else:
                            nisa.tensor_tensor(total, total, product, nl.add)
        for i, row in enumerate(sums):
            for j, total in enumerate(row):
                start = (n * n_tiles + j) * 512
                nisa.dma_copy(out[i * 128 : (i + 1) * 128, start : start + 512], total)
    return out


def test_blocked_matmul_is_right(run, rng):
    a, b = rng.standard_normal((2, 1024, 1024)).astype(np.float32)
    np.testing.assert_allclose(run(_blocked_matmul, a, b), a.T @ b, rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_published_fp32_matmul_time_is_met_within_three_percent(chip):
    # 4096 x 8192 x 8192 on trn2, fully blocked: 28.30 ms published for this tutorial's last step.
    lhs_t = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (8192, 4096), (0, 0))
    rhs = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (8192, 8192), (0, 0))
    timeline = _profile(_blocked_matmul, lhs_t, rhs)
    assert timeline.total_seconds == pytest.approx(28.30e-3, rel=0.03)


def _product(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    part = nl.ndarray((128, 128), "float32", buffer=nl.psum)
    nisa.nc_matmul(part, nl.load(x), nl.load(x))
    nl.store(out, nl.copy(part))
    return out


def test_occupancy_and_stalls():
    x = np.zeros((128, 128), np.float32)
    timeline = nki.profile(_product)(x)
    sbuf = timeline.occupancy(MemoryRegion.sbuf)
    assert max(held for _, held in sbuf) == 2 * 512  # the operands; the copy comes after them
    assert sbuf[-1][1] == 0
    assert [when for when, _ in sbuf] == sorted(when for when, _ in sbuf)
    assert max(held for _, held in timeline.occupancy(MemoryRegion.psum)) == 512
    assert timeline.stalls()["vector"] == 0.0
    assert timeline.stalls()["dma"] > 0.0  # the store waits for the product
    assert "SBUF at most 1024 bytes" in timeline.report()


def test_modelled_seconds_is_the_time_of_the_slowest_core():
    x = np.zeros((128, 128), np.float32)
    expected = nki.profile(_product)(x).total_seconds
    assert nki.modelled_seconds(_product, x) == expected
    assert nki.modelled_seconds(nki.jit(_product)[2], x) >= expected

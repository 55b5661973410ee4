"""Device loops, registers, launch grids, exchange between cores, specialisation."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest

import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl
from nki.errors import DeadlockError


def _register(array):
    register = nisa.register_alloc()
    nisa.register_load(register, nl.load(array))
    return register


@pytest.mark.parametrize("count", [0, 1, 3])
def test_fori_loop_runs_to_a_run_time_bound(run, rng, count):
    x = rng.standard_normal((4 * 32, 8)).astype(np.float32)

    def kernel(x, n):
        out = nl.zeros(x.shape, x.dtype, buffer=nl.shared_hbm)

        def body(i):
            rows = nl.ds(i * 32, 32)
            nl.store(out[rows], nl.multiply(nl.load(x[rows]), 2.0))

        nl.fori_loop(0, _register(n), body)
        return out

    out = run(kernel, x, np.array([[count]], np.int32))
    np.testing.assert_array_equal(out[: 32 * count], 2 * x[: 32 * count])
    np.testing.assert_array_equal(out[32 * count :], 0)


def test_dynamic_range_is_an_ordinary_for_loop(run, rng):
    x = rng.standard_normal((4, 8)).astype(np.float32)

    def kernel(x, n):
        total = nl.zeros((1, 8), nl.float32)
        for i in nl.dynamic_range(0, _register(n), 2):
            nisa.tensor_tensor(total, total, nl.load(x[nl.ds(i, 1)]), nl.add)
        out = nl.ndarray((1, 8), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, total)
        return out

    np.testing.assert_array_equal(run(kernel, x, np.array([[4]], np.int32)), (x[0] + x[2])[None])


def test_while_loop_ends_at_zero(run):
    def kernel(n):
        steps = nl.zeros((1, 1), nl.int32)

        def body(register):
            nisa.tensor_scalar(steps, steps, nl.add, 1)
            return register // 2

        nl.while_loop(_register(n), body)
        out = nl.ndarray((1, 1), nl.int32, buffer=nl.shared_hbm)
        nl.store(out, steps)
        return out

    assert run(kernel, np.array([[100]], np.int32))[0, 0] == 7  # 100 50 25 12 6 3 1


def test_register_arithmetic_wraps_at_32_bits(run):
    def kernel(n):
        value = _register(n) * 2 + 1
        out = nl.ndarray((1, 1), nl.int32, buffer=nl.shared_hbm)
        nisa.register_store(out, value)
        return out

    assert run(kernel, np.array([[2**30]], np.int32))[0, 0] == -(2**31) + 1


def test_register_that_steers_python_falls_back_to_steps(rng):
    def kernel(x, n):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        if _register(n) > 2:
            tile = nl.multiply(tile, 10.0)
        nl.store(out, tile)
        return out

    x = rng.standard_normal((4, 4)).astype(np.float32)
    simulate = nki.simulate(kernel)
    np.testing.assert_array_equal(simulate(x, np.array([[5]], np.int32)), x * 10)
    np.testing.assert_array_equal(simulate(x, np.array([[1]], np.int32)), x)
    with pytest.raises(nki.NkiError, match="fori_loop"):
        nki.simulate(kernel, strict=True)(x, np.array([[1]], np.int32))


def _half(x):
    core = nl.program_id(0)
    return slice(core * 16, core * 16 + 16)


def test_two_cores_share_hbm_and_exchange_tiles(run, rng):
    x = rng.standard_normal((32, 8)).astype(np.float32)

    def kernel(x):
        assert (nl.num_programs(0), nl.program_ndim()) == (2, 1)
        core = nl.program_id(0)
        mine = nl.load(x[_half(x)])
        other = nl.ndarray(mine.shape, mine.dtype)
        nisa.sendrecv(mine, other, 1 - core, 1 - core, pipe_id=0)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out[_half(x)], nl.subtract(mine, other))
        nisa.core_barrier(out, (0, 1))
        if core == 0:
            nl.store(out[0:16], nl.multiply(nl.load(out[16:32]), 2.0))
        return out

    out = run(kernel, x, grid=2)
    np.testing.assert_array_equal(out[16:], x[16:] - x[:16])
    np.testing.assert_array_equal(out[:16], 2 * out[16:])


def test_unmatched_barrier_is_a_deadlock_that_names_both_places(run):
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(x))
        if nl.program_id(0) == 0:
            nisa.core_barrier(out, (0, 1))
        return out

    with pytest.raises(DeadlockError, match=r"core_barrier(.|\n)*test_nki_control.py"):
        run(kernel, np.zeros((4, 4), np.float32), grid=2)


COLLECTIVES = {
    "all_reduce": (
        lambda s, d, g: ncc.all_reduce([s], [d], g, nl.add),
        (16, 8),
        lambda a, b, core: a + b,
    ),
    "all_gather": (
        lambda s, d, g: ncc.all_gather([s], [d], g, 0),
        (32, 8),
        lambda a, b, core: np.concatenate([a, b]),
    ),
    "reduce_scatter": (
        lambda s, d, g: ncc.reduce_scatter([s], [d], g, 0, nl.maximum),
        (8, 8),
        lambda a, b, core: np.maximum(a, b)[8 * core : 8 * core + 8],
    ),
    "all_to_all": (
        lambda s, d, g: ncc.all_to_all([s], [d], g, 0),
        (16, 8),
        lambda a, b, core: np.concatenate([x[8 * core : 8 * core + 8] for x in (a, b)]),
    ),
    "collective_permute": (
        lambda s, d, g: ncc.collective_permute([s], [d], [(0, 1), (1, 0)]),
        (16, 8),
        lambda a, b, core: (b, a)[core],
    ),
    "collective_permute_implicit": (
        lambda s, d, g: ncc.collective_permute_implicit([[s]], [[d]], g),
        (16, 8),
        lambda a, b, core: (b, a)[core],
    ),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collective_between_two_cores(run, rng, name):
    call, shape, reference = COLLECTIVES[name]
    x = rng.standard_normal((32, 8)).astype(np.float32)

    def kernel(x):
        core = nl.program_id(0)
        source = nl.ndarray((16, 8), x.dtype, buffer=nl.private_hbm)
        target = nl.ndarray(shape, x.dtype, buffer=nl.private_hbm)
        nisa.dma_copy(source, x[_half(x)])
        call(source, target, ncc.ReplicaGroup([[0, 1]]))
        out = nl.ndarray((2, *shape), x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out[core], target)
        nisa.core_barrier(out, (0, 1))
        return out

    out = run(kernel, x, grid=2)
    for core in (0, 1):
        np.testing.assert_array_equal(out[core], reference(x[:16], x[16:], core))


def test_kernel_is_traced_once_for_each_specialisation(rng):
    runs = []

    @nki.jit
    def kernel(x, factor):
        runs.append((x.shape, factor))
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.multiply(nl.load(x), factor))
        return out

    x = rng.standard_normal((8, 8)).astype(np.float32)
    for factor in (2.0, 2.0, 3.0, 2.0):
        np.testing.assert_array_equal(kernel(x, factor), x * np.float32(factor))
    kernel(x[:4].copy(), 2.0)
    assert runs == [((8, 8), 2.0), ((8, 8), 3.0), ((4, 8), 2.0)]


@dataclasses.dataclass
class Options(nl.NKIObject):
    scale: float = 2.0
    rows: tuple[int, ...] = (0, 4)


class Plain(nl.NKIObject):
    scale: float
    later: int
    tag = None


def test_records_are_constants_and_may_hold_tensors(rng):
    @nki.jit
    def kernel(x, options, extra):
        out = nl.ndarray((4, 8), x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x[options.rows[0] : options.rows[1]])
        nl.store(out, nl.add(nl.multiply(tile, options.scale), nl.load(extra["bias"][0])))
        return out

    x, bias = rng.standard_normal((8, 8)).astype(np.float32), np.ones((4, 8), np.float32)
    for scale in (2.0, 5.0):
        out = kernel(x, Options(scale=scale, rows=(2, 6)), {"bias": [bias]})
        np.testing.assert_array_equal(out, x[2:6] * np.float32(scale) + 1)


def test_undecorated_record_takes_its_annotated_fields():
    record = Plain(scale=3.0, tag="a")
    assert (record.scale, record.tag) == (3.0, "a")
    assert not hasattr(record, "later")
    assert record == Plain(3.0, tag="a")


def test_kernels_can_call_kernels(run, rng):
    @nki.jit
    def double(tile):
        return nl.multiply(tile, 2.0)

    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, double(nl.load(x)))
        return out

    x = rng.standard_normal((8, 8)).astype(np.float32)
    np.testing.assert_array_equal(run(kernel, x), 2 * x)


def test_address_reuse_does_not_mix_tensors_that_are_never_alive_together(run, rng):
    """Many short-lived tiles share the arena in replay; each must see only its own values."""
    x = rng.standard_normal((64, 32)).astype(np.float32)

    def kernel(x):
        total = nl.zeros((64, 32), nl.float32)
        kept = []
        for i in range(40):
            tile = nl.ndarray((64, 32), nl.float32)
            nisa.tensor_scalar(tile, nl.load(x), nl.multiply, float(i))
            if i % 7 == 0:
                kept.append(tile)
            nisa.tensor_tensor(total, total, tile, nl.add)
        for tile in kept:
            nisa.tensor_tensor(total, total, tile, nl.subtract)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, total)
        return out

    factor = sum(range(40)) - sum(range(0, 40, 7))
    np.testing.assert_allclose(run(kernel, x), x * factor, rtol=1e-5, atol=1e-4)


def test_clearing_a_tile_leaves_those_alone_that_are_alive_then(run, rng):
    x = rng.standard_normal((64, 32), dtype=np.float32)

    def kernel(x):
        out = nl.ndarray((64, 32), "float32", buffer=nl.shared_hbm)
        early = nl.load(x)
        late = nl.ndarray((64, 32), "float32")  # allocated while `early` is alive, used after it
        kept = nl.copy(early)
        nisa.memset(late[:32], 1.0)
        nisa.tensor_tensor(late, late, late, nl.add)
        nisa.tensor_tensor(kept[:32], kept[:32], late[:32], nl.add)
        nl.store(out, kept)
        return out

    expected = x.copy()
    expected[:32] += 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nki.NkiWarning)
        np.testing.assert_array_equal(run(kernel, x), expected)


def test_cores_that_both_clear_a_shared_result_do_it_side_by_side(monkeypatch, run, rng):
    x = rng.standard_normal((256, 32), dtype=np.float32)

    def kernel(x):
        out = nl.ndarray((256, 32), "float32", buffer=nl.shared_hbm)
        zeros = nl.zeros((128, 32), "float32")
        for half in range(2):
            nl.store(out[half * 128 : half * 128 + 128], zeros)
        mine = nl.program_id(0) * 128
        nl.store(out[mine : mine + 128], nl.load(x[mine : mine + 128]))
        return out

    np.testing.assert_array_equal(run(kernel, x, grid=2), x)


def test_a_kernel_names_its_chip_where_no_variable_does(monkeypatch):
    def generation(x):
        out = nl.ndarray((1, 1), "int32", buffer=nl.shared_hbm)
        nl.store(out, nl.full((1, 1), int(nisa.get_nc_version()), "int32"))
        return out

    x = np.zeros((1, 1), np.float32)
    monkeypatch.delenv("NEURON_PLATFORM_TARGET_OVERRIDE", raising=False)
    kernel = nki.jit(platform_target="trn3")(generation)
    launched = (kernel, kernel[1], nki.simulate(kernel), nki.jit(generation))
    assert [each(x).item() for each in launched] == [4, 4, 4, 3]
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn1")
    assert kernel(x).item() == 2


def test_dtype_of_old_calls_gives_way_to_that_of_the_destination():
    def kernel(x, dtype):
        out = nl.ndarray(x.shape, "bfloat16", buffer=nl.shared_hbm)
        tile = nl.ndarray(x.shape, "bfloat16")
        nisa.tensor_copy(dst=tile, src=nl.load(x), dtype=dtype)
        nl.store(out, tile)
        return out

    x = np.ones((4, 4), np.float32)
    assert nki.simulate(kernel)(x, nl.bfloat16).astype(np.float32).sum() == 16
    with pytest.warns(nki.NkiWarning, match=r"dtype=float16\) writes to a dst of bfloat16"):
        assert nki.simulate(kernel)(x, nl.float16).dtype == "bfloat16"
    with pytest.raises(nki.NkiValidationError, match=r"since NKI 0\.3"):
        nki.simulate(kernel, strict=True)(x, nl.bfloat16)

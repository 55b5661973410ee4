"""Kernels that break a hardware rule: an error that names the line, the value and the remedy."""

from __future__ import annotations

import re

import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
from nki.errors import NkiValidationError

F32, BF16, I32, U8 = "float32", "bfloat16", "int32", "uint8"


def sb(*shape, dtype=F32, fill=0, **more):
    tile = nl.ndarray(shape, dtype, **more)
    if fill is not None:
        nisa.memset(tile, fill)
    return tile


def ps(*shape, dtype=F32):
    return nl.ndarray(shape, dtype, buffer=nl.psum)


def filled_ps(*shape, dtype=F32):
    tile = ps(*shape, dtype=dtype)
    nisa.memset(tile, 0)
    return tile


def _sum_twice(tiles):
    total = sb(128, 512)
    for tile in (*tiles, *tiles):
        nisa.tensor_tensor(total, total, tile, nl.add)


def matmul(dst, a, b, **more):
    nisa.nc_matmul(dst, a, b, **more)


# name: (kernel on the HBM tensor x of shape (256, 64), what the message must say)
CASES = {
    "tile of 256 partitions": (lambda x: sb(256, 4), r"256 partitions; trn2 has 128"),
    "tile of one dimension": (lambda x: sb(64), r"need a partition and a free dimension"),
    "tile larger than a partition": (lambda x: sb(1, 70000), r"280000 bytes.*trn2 has 229376"),
    "PSUM tile larger than a partition": (lambda x: ps(128, 5000), r"20000 bytes.*16384"),
    "empty tile": (lambda x: sb(4, 0), r"at least 1"),
    "unknown dtype": (lambda x: sb(4, 4, dtype="float128"), r"not a dtype.*bfloat16"),
    "unknown buffer": (lambda x: nl.ndarray((4, 4), F32, buffer="l2"), r"nl\.sbuf"),
    "address beyond the partition": (
        lambda x: nl.ndarray((8, 100), F32, address=(0, 229300)),
        r"ends beyond",
    ),
    "address beyond partition 128": (
        lambda x: nl.ndarray((64, 4), F32, address=(96, 0)),
        r"ends beyond partition 128",
    ),
    "PSUM over capacity": (
        lambda x: _sum_twice([filled_ps(128, 512) for _ in range(9)]),
        r"9 PSUM tensors.*16384",
    ),
    "index out of range": (lambda x: x[300], r"256 elements"),
    "slice out of range": (lambda x: x[0:128, 0:65], r"<= 64"),
    "ds out of range": (lambda x: x[nl.ds(200, 100)], r"ends at 256"),
    "too many indices": (lambda x: x[0, 0, 0], r"has 2 dimensions"),
    "permute of the partition axis": (
        lambda x: sb(8, 4).permute((1, 0)),
        r"partition dimension.*nc_transpose",
    ),
    "broadcast of partitions": (lambda x: sb(1, 4).broadcast(0, 8), r"partition dimension"),
    "broadcast of a dimension of size 4": (lambda x: sb(8, 4).broadcast(1, 8), r"only size 1"),
    "reshape that changes partitions": (
        lambda x: sb(8, 4).reshape((4, 8)),
        r"partition dimension must stay 8",
    ),
    "reshape to another count": (lambda x: sb(8, 4).reshape((8, 5)), r"multiply to 32"),
    "reshape of a strided view": (
        lambda x: sb(8, 4, 4)[:, :, 0:2].reshape((8, 8)),
        r"would need a copy",
    ),
    "flatten of a permuted view": (
        lambda x: sb(8, 4, 6).permute((0, 2, 1)).flatten_dims(1, 2),
        r"not contiguous",
    ),
    "squeeze of size 4": (lambda x: sb(8, 4).squeeze_dim(1), r"size 4, not 1"),
    "view with odd bytes": (lambda x: sb(8, 3, dtype=U8).view(F32), r"whole number"),
    "second run-time index": (
        lambda x: x.select(0, sb(1, 1, dtype=I32)).select(0, sb(1, 1, dtype=I32)),
        r"already has a run-time index",
    ),
    "vector_select on chip": (
        lambda x: sb(8, 4).vector_select(0, sb(8, 1, dtype=I32)),
        r"HBM.*nc_n_gather",
    ),
    "access pattern that skips partitions": (
        lambda x: nisa.tensor_copy(sb(8, 4), sb(16, 4).ap([[8, 8], [1, 4]])),
        r"steps 8 elements.*has 4",
    ),
    "access pattern beyond the tensor": (
        lambda x: nisa.tensor_copy(sb(8, 8), sb(8, 4).ap([[4, 8], [1, 8]])),
        r"reaches element",
    ),
    "compute on HBM": (lambda x: nisa.tensor_copy(sb(128, 64), x[0:128]), r"dma_copy first"),
    "DMA from PSUM": (
        lambda x: nisa.dma_copy(x[0:8], filled_ps(8, 64)),
        r"must be in SBUF or HBM.*tensor_copy",
    ),
    "matmul into SBUF": (
        lambda x: matmul(sb(8, 8), sb(4, 8), sb(4, 8)),
        r"must be in PSUM.*buffer=nl\.psum",
    ),
    "matmul from PSUM": (
        lambda x: matmul(ps(8, 8), filled_ps(4, 8), sb(4, 8)),
        r"stationary.*must be in SBUF",
    ),
    "matmul with different contraction": (
        lambda x: matmul(ps(8, 8), sb(4, 8), sb(5, 8)),
        r"4 and moving 5",
    ),
    "matmul with 129 stationary columns": (
        lambda x: matmul(ps(128, 8), sb(4, 129), sb(4, 8)),
        r"129; 128 is the most",
    ),
    "matmul with 513 moving columns": (
        lambda x: matmul(ps(8, 513), sb(4, 8), sb(4, 513)),
        r"513; 512 is the most",
    ),
    "matmul with the wrong result shape": (
        lambda x: matmul(ps(8, 9), sb(4, 8), sb(4, 8)),
        r"is 8 x 8",
    ),
    "matmul of fp32 with bf16": (
        lambda x: matmul(ps(8, 8), sb(4, 8), sb(4, 8, dtype=BF16)),
        r"fp32 pairs only with fp32",
    ),
    "matmul of integers": (
        lambda x: matmul(ps(8, 8), sb(4, 8, dtype=I32), sb(4, 8, dtype=I32)),
        r"int32; the array multiplies",
    ),
    "matmul of e4m3fn on trn2": (
        lambda x: matmul(
            ps(8, 8), sb(4, 8, dtype="float8_e4m3fn"), sb(4, 8, dtype="float8_e4m3fn")
        ),
        r"needs trn3",
    ),
    "matmul across a PSUM bank": (
        lambda x: matmul(ps(8, 600)[:, 400:600], sb(4, 8), sb(4, 200)),
        r"across a bank border",
    ),
    "matmul tile without position": (
        lambda x: matmul(ps(8, 8), sb(4, 8), sb(4, 8), tile_size=(32, 32)),
        r"given together",
    ),
    "matmul tile of 48 rows": (
        lambda x: matmul(ps(8, 8), sb(4, 8), sb(4, 8), tile_size=(48, 32), tile_position=(0, 0)),
        r"48; use one of",
    ),
    "double row of bf16": (
        lambda x: matmul(
            ps(8, 8),
            sb(4, 2, 8, dtype=BF16),
            sb(4, 2, 8, dtype=BF16),
            perf_mode=nisa.matmul_perf_mode.double_row,
        ),
        r"needs fp8",
    ),
    "accumulation into unwritten PSUM": (
        lambda x: matmul(ps(8, 8), sb(4, 8), sb(4, 8), accumulate=True),
        r"nothing has written",
    ),
    "transpose into the wrong shape": (
        lambda x: nisa.nc_transpose(ps(128, 64), sb(64, 127)),
        r"must be 127 x 64",
    ),
    "vector transpose of 64 rows": (
        lambda x: nisa.nc_transpose(sb(64, 64), sb(64, 64), engine=nisa.engine.vector),
        r"up to 32 x 32",
    ),
    "tensor engine transpose into SBUF": (
        lambda x: nisa.nc_transpose(sb(64, 64), sb(64, 64), engine=nisa.engine.tensor),
        r"from SBUF to PSUM",
    ),
    "operands of different partitions": (
        lambda x: nisa.tensor_tensor(sb(8, 4), sb(8, 4), sb(9, 4), nl.add),
        r"same partitions.*data2 has 9",
    ),
    "operands of different size": (
        lambda x: nisa.tensor_tensor(sb(8, 4), sb(8, 4), sb(8, 5), nl.add),
        r"same elements per partition.*data2 has 5",
    ),
    "both inputs in PSUM": (
        lambda x: nisa.tensor_tensor(sb(8, 4), filled_ps(8, 4), filled_ps(8, 4), nl.add),
        r"both in PSUM",
    ),
    "unknown operator": (
        lambda x: nisa.tensor_tensor(sb(8, 4), sb(8, 4), sb(8, 4), nl.exp),
        r"not an ALU operator",
    ),
    "bitwise operator on floats": (
        lambda x: nisa.tensor_tensor(sb(8, 4), sb(8, 4), sb(8, 4), nl.bitwise_and),
        r"works on integers.*view",
    ),
    "bitwise mixed with arithmetic": (
        lambda x: nisa.tensor_scalar(
            sb(8, 4, dtype=I32), sb(8, 4, dtype=I32), nl.bitwise_and, 1, op1=nl.add, operand1=1
        ),
        r"mix a bitwise",
    ),
    "power on the vector engine": (
        lambda x: nisa.tensor_tensor(
            sb(8, 4), sb(8, 4), sb(8, 4), nl.power, engine=nisa.engine.vector
        ),
        r"runs only on GpSimd",
    ),
    "GpSimd on PSUM": (
        lambda x: nisa.tensor_copy(sb(8, 4), filled_ps(8, 4), engine=nisa.engine.gpsimd),
        r"GpSimd cannot reach",
    ),
    "copy on the tensor engine": (
        lambda x: nisa.tensor_copy(sb(8, 4), sb(8, 4), engine=nisa.engine.tensor),
        r"cannot run on engine tensor",
    ),
    "scalar engine with a comparison": (
        lambda x: nisa.tensor_scalar(
            sb(8, 4), sb(8, 4), nl.greater, 1.0, engine=nisa.engine.scalar
        ),
        r"engine=nisa\.engine\.vector",
    ),
    "abs_max on trn2": (
        lambda x: nisa.tensor_tensor(sb(8, 4), sb(8, 4), sb(8, 4), nl.abs_max),
        r"needs trn3",
    ),
    "column of two elements": (
        lambda x: nisa.tensor_scalar(sb(8, 4), sb(8, 4), nl.add, sb(8, 2)),
        r"\[P, 1\] column",
    ),
    "bf16 column": (
        lambda x: nisa.tensor_scalar(sb(8, 4), sb(8, 4), nl.add, sb(8, 1, dtype=BF16)),
        r"must be float32",
    ),
    "reduction over partitions": (
        lambda x: nisa.tensor_reduce(sb(1, 4), nl.add, sb(8, 4), 0),
        r"tensor_partition_reduce",
    ),
    "reduction of a middle axis": (
        lambda x: nisa.tensor_reduce(sb(8, 5), nl.add, sb(8, 4, 5), 1),
        r"Permute the view",
    ),
    "reduction into the wrong shape": (
        lambda x: nisa.tensor_reduce(sb(8, 2), nl.add, sb(8, 4), 1),
        r"leaves 1",
    ),
    "reduction by comparison": (
        lambda x: nisa.tensor_reduce(sb(8, 1), nl.greater, sb(8, 4), 1),
        r"cannot reduce",
    ),
    "activation without a table": (
        lambda x: nisa.activation(sb(8, 4), nl.add, sb(8, 4)),
        r"tables",
    ),
    "activation reducing by maximum": (
        lambda x: nisa.activation(
            sb(8, 4), nl.exp, sb(8, 4), reduce_op=nl.maximum, reduce_res=sb(8, 1)
        ),
        r"use nl\.add",
    ),
    "bn_stats of 513 elements": (
        lambda x: nisa.bn_stats(sb(8, 6), sb(8, 513)),
        r"513.*512 is the most",
    ),
    "bn_stats into 4 elements": (lambda x: nisa.bn_stats(sb(8, 4), sb(8, 16)), r"needs 6"),
    "bn_aggr of broken triples": (lambda x: nisa.bn_aggr(sb(8, 2), sb(8, 7)), r"not triples"),
    "max8 of 4 elements": (lambda x: nisa.max8(sb(8, 8), sb(8, 4)), r"8 is the least"),
    "find_index8 with 4 values": (
        lambda x: nisa.nc_find_index8(sb(8, 8, dtype="uint32"), sb(8, 16), sb(8, 4)),
        r"not 8",
    ),
    "iota with the wrong count": (
        lambda x: nisa.iota(sb(8, 10, dtype=I32), [[1, 9]]),
        r"makes 9 values.*has 10",
    ),
    "iota with five loops": (
        lambda x: nisa.iota(sb(8, 1, dtype=I32), [[1, 1]] * 5),
        r"1 to 4 are possible",
    ),
    "shuffle mask of 16 entries": (
        lambda x: nisa.nc_stream_shuffle(sb(32, 4), sb(32, 4), [0] * 16),
        r"16 entries, not 32",
    ),
    "shuffle mask entry 40": (
        lambda x: nisa.nc_stream_shuffle(sb(32, 4), sb(32, 4), [40] * 32),
        r"contains 40",
    ),
    "memset of 1.5 into integers": (
        lambda x: sb(8, 4, dtype=I32, fill=1.5),
        r"not a whole number",
    ),
    "quantize_mx on trn2": (
        lambda x: nisa.quantize_mx(
            nl.ndarray((32, 1), "float8_e5m2_x4"), sb(32, 4, dtype=BF16), sb(32, 1, dtype=U8)
        ),
        r"needs trn3",
    ),
    "DMA of different counts": (lambda x: nisa.dma_copy(sb(8, 4), x[0:8]), r"32 elements.*512"),
    "hardware DGE with a cast": (
        lambda x: nisa.dma_copy(sb(8, 64, dtype=BF16), x[0:8], dge_mode=nisa.dge_mode.hwdge),
        r"cannot convert",
    ),
    "DMA priority on trn2": (lambda x: nisa.dma_copy(sb(8, 64), x[0:8], priority=1), r"need trn3"),
    "DMA issued by the vector engine": (
        lambda x: nisa.dma_copy(sb(8, 64), x[0:8], engine=nisa.engine.vector),
        r"only as sync or scalar",
    ),
    "DMA transpose with wrong axes": (
        lambda x: nisa.dma_transpose(sb(64, 8), x[0:8], axes=(0, 1)),
        r"2-D \(1, 0\)",
    ),
    "dma_compute with colliding indices": (
        lambda x: nisa.dma_compute(x[0:8], [x[0:8], x[8:16]], nl.add, unique_indices=False),
        r"unique_indices",
    ),
    "dma_compute with scales": (
        lambda x: nisa.dma_compute(x[0:8], [x[0:8]], nl.add, scales=[2.0]),
        r"tensor_scalar first",
    ),
    "read of unwritten memory": (
        lambda x: nisa.tensor_copy(sb(8, 4), sb(8, 4, fill=None)),
        r"nothing has written",
    ),
    "load into a number": (
        lambda x: nisa.register_load(5, sb(1, 1, dtype=I32)),
        r"must be a register",
    ),
    "register from a large tile": (
        lambda x: nisa.register_load(nisa.register_alloc(), sb(1, 2, dtype=I32)),
        r"2 elements, not 1",
    ),
    "result on chip": (lambda x: sb(8, 4), r"results must be in HBM"),
}


@pytest.mark.parametrize("case", CASES)
def test_violation_is_an_error_with_line_and_remedy(case, chip):
    body, message = CASES[case]
    kernel = nki.simulate(body if case == "result on chip" else _ignore_result(body))
    with pytest.raises(NkiValidationError) as caught:
        kernel(np.zeros((256, 64), np.float32))
    text = str(caught.value)
    assert re.search(message, text.replace("\n", " ")), text
    assert "test_nki_violations.py:" in text
    assert re.search(r"at .*\.py:\d+", text)


def _ignore_result(body):
    def kernel(x):
        body(x)
        out = nl.ndarray((1, 1), F32, buffer=nl.shared_hbm)
        nisa.dma_copy(out, x[0:1, 0:1])
        return out

    return kernel


def test_psum_that_a_later_order_makes_fit_is_no_error():
    def kernel(x):
        out = nl.ndarray((9, 128, 512), F32, buffer=nl.shared_hbm)
        for number, tile in enumerate([filled_ps(128, 512) for _ in range(9)]):
            nl.store(out[number], nl.copy(tile))
        return out

    assert not nki.simulate(kernel)(np.zeros((4, 4), np.float32)).any()


def test_at_least_sixty_rules_are_planted():
    assert len(CASES) >= 60


STRICT = {
    "start at partition 5": lambda x: nisa.tensor_copy(sb(8, 4), sb(16, 4)[5:13]),
    "start at 32 with 64 partitions": lambda x: nisa.tensor_copy(sb(64, 4), sb(128, 4)[32:96]),
    "partly unwritten read": lambda x: nisa.tensor_copy(sb(8, 4), _half_written()),
    "SBUF over capacity": lambda x: _sum_twice(
        [tile[:, 0:512] for tile in [sb(128, 30000) for _ in range(3)]]
    ),
    "placed tensors that overlap": lambda x: nisa.tensor_tensor(
        sb(8, 4), sb(8, 4, address=(0, 64)), sb(8, 4, address=(0, 68)), nl.add
    ),
}


def _half_written():
    tile = sb(8, 4, fill=None)
    nisa.memset(tile[:, 0:2], 1.0)
    return tile


@pytest.mark.parametrize("case", STRICT)
def test_doubtful_access_warns_and_is_an_error_in_strict_mode(case, chip):
    kernel = _ignore_result(STRICT[case])
    x = np.zeros((256, 64), np.float32)
    with pytest.warns(nki.NkiWarning):
        nki.simulate(kernel)(x)
    with pytest.raises(nki.NkiError, match=r"test_nki_violations.py:\d+"):
        nki.simulate(kernel, strict=True)(x)

"""nki.lint: each planted performance mistake is found on its line, and its remedy clears it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl

F32, BF16 = "float32", "bfloat16"


def tile(*shape, dtype=F32):
    made = nl.ndarray(shape, dtype)
    nisa.memset(made, 1)
    return made


def matmul(rows, columns, moving, dtype):
    out = nl.ndarray((columns, moving), F32, buffer=nl.psum)
    nisa.nc_matmul(out, tile(rows, columns, dtype=dtype), tile(rows, moving, dtype=dtype))


def load_twice(x):
    for _ in range(2):
        nl.load(x[:128])


def load_once(x):
    nl.copy(nl.load(x[:128]))
    nl.load(x[128:])


def transposed_load(x):
    nisa.dma_copy(tile(64, 256), x.permute((1, 0)))


def copies(engine):
    for _ in range(40):
        nisa.tensor_copy(tile(128, 2048), tile(128, 2048), engine=engine)


# rule: (a kernel with the mistake, what the message says, the kernel without)
CASES = {
    "short DMA": (
        transposed_load,
        r"65536 bytes in runs of 4\b",
        lambda x: nl.load(nl.ndarray((128, 2048), F32, buffer=nl.hbm)),
    ),
    "small DMA": (
        lambda x: nisa.dma_copy(tile(1, 4), x[0:1, 0:4]),
        r"a DMA of 16 bytes takes .* start and completion",
        lambda x: nisa.dma_copy(
            nl.ndarray((128, 60000), BF16),
            nl.ndarray((128, 60000), BF16, buffer=nl.hbm),
        ),
    ),
    "repeated load": (load_twice, r"32768 bytes of x .* Hoist", load_once),
    "fp32 matmul": (
        lambda x: matmul(128, 128, 512, F32),
        r"4 passes",
        lambda x: matmul(128, 128, 512, BF16),
    ),
    "small matmul": (
        lambda x: matmul(32, 64, 512, BF16),
        r"32 x 64 stationary .* 12 % of the 128 x 128",
        lambda x: matmul(128, 128, 512, BF16),
    ),
    "few partitions": (
        lambda x: nl.copy(tile(4, 1024)),
        r"4 of 128 partitions, 1024 elements",
        lambda x: nl.copy(tile(128, 1024)),
    ),
    "short instruction": (
        lambda x: nl.copy(tile(128, 16)),
        r"16 elements per partition and costs like 64",
        lambda x: nl.copy(tile(128, 64)),
    ),
    "slow reciprocal": (
        lambda x: nisa.reciprocal(tile(128, 512), tile(128, 512)),
        r"512 elements .* nisa\.activation",
        lambda x: nisa.activation(tile(128, 512), nl.reciprocal, tile(128, 512)),
    ),
    "idle engine": (
        lambda x: copies(nisa.engine.vector),
        r"scalar engine 0 %.*engine=nisa\.engine\.scalar",
        lambda x: copies(nisa.engine.scalar),
    ),
}


def _advice(body):
    def kernel(x):
        out = nl.ndarray((4, 4), F32, buffer=nl.shared_hbm)
        body(x)
        return out

    return nki.lint(kernel)(np.zeros((256, 64), np.float32))


@pytest.mark.parametrize("rule", list(CASES))
@pytest.mark.filterwarnings("ignore::nki.NkiWarning")
def test_mistake_is_found_on_its_line_and_the_remedy_clears_it(rule):
    wrong, message, right = CASES[rule]
    found = [entry for entry in _advice(wrong) if entry.rule == rule]
    assert found, rule
    assert found[0].source.path == __file__
    assert found[0].count >= 1
    assert found[0].seconds > 0
    assert re.search(message, found[0].message, re.DOTALL), found[0].message
    assert rule not in {entry.rule for entry in _advice(right)}


def test_order_and_text():
    listed = _advice(lambda x: (load_twice(x), matmul(128, 128, 512, F32)))
    assert [entry.seconds for entry in listed] == sorted(
        (entry.seconds for entry in listed), reverse=True
    )
    assert "test_nki_advice.py:" in str(listed[0])

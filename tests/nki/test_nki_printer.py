"""Programs as text, and their digests."""

from __future__ import annotations

import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl
from nki.program.printer import print_program
from nki.specialize import Call


def _specialized(kernel, *args):
    made = nki.jit(kernel)
    return made.specialize(Call.bind(made.function, args, {}))


def scale(x, factor):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nisa.tensor_scalar(tile[:, 0:2], tile[:, 0:2], nl.multiply, factor)

    def body(i):
        nisa.tensor_scalar(tile[:, 2:4], tile[:, 2:4], nl.add, 1.0)

    nl.fori_loop(0, 3, body)
    nl.store(out, tile)
    return out


def test_every_instruction_with_its_operands_and_line():
    text = print_program(_specialized(scale, np.zeros((8, 4), np.float32), 2.0).programs[0])
    assert "kernel scale on trn2, core 0 of 1" in text
    assert "argument x: float32[8, 4]" in text
    assert "vector.tensor_scalar(" in text
    assert "op0='multiply'" in text
    assert "operand0=2.0" in text
    assert "+2 by [4, 1]" in text
    assert "for r0 in range(0, 3, 1):" in text
    assert "# test_nki_printer.py:" in text


def test_digest_is_that_of_what_the_kernel_does():
    x = np.zeros((8, 4), np.float32)
    first, again = (_specialized(scale, x, 2.0).digest for _ in range(2))
    assert first == again
    assert first != _specialized(scale, x, 3.0).digest
    assert first != _specialized(scale, x[:4], 2.0).digest


def test_digest_covers_constants():
    def table(values):
        def kernel(x):
            constant = nl.shared_constant(values)
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            nl.store(out, nl.add(nl.load(x), nl.load(constant)))
            return out

        return _specialized(kernel, np.zeros((4, 4), np.float32)).digest

    ones, twos = np.ones((4, 4), np.float32), np.full((4, 4), 2.0, np.float32)
    assert table(ones) != table(twos)
    assert table(ones) == table(ones.copy())

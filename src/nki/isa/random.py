"""Random numbers. The device's bit streams are not published; ours are seeded and repeatable."""

from __future__ import annotations

from nki.isa.operands import Operand, choose, emit, operand, tile
from nki.program.enums import Engine as _Engine
from nki.program.enums import engine
from nki.program.ir import NkiInstruction
from nki.program.tensor import NkiTensor


def rng(dst: NkiTensor, engine: engine = engine.vector, name: str | None = None) -> NkiInstruction:
    """dst := random bits, cut to its integer type."""
    return emit("rng", choose(engine, _Engine.vector), {"dst": tile(dst, "dst")}, {}, name=name)


def dropout(
    dst: NkiTensor, data: NkiTensor, prob: Operand, name: str | None = None
) -> NkiInstruction:
    """dst := data with each element set to 0 with probability prob."""
    return emit(
        "dropout",
        _Engine.vector,
        {"dst": tile(dst, "dst")},
        {"data": tile(data, "data"), "prob": operand(prob, "prob")},
        name=name,
    )


def set_rng_seed(src_seeds: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Seed the vector engine's generator from a [1, 1] tile."""
    return emit(
        "set_rng_seed", _Engine.vector, {}, {"src_seeds": tile(src_seeds, "src_seeds")}, name=name
    )


def rand_set_state(
    src_seeds: NkiTensor, engine: engine = engine.gpsimd, name: str | None = None
) -> NkiInstruction:
    """Load each lane's generator state."""
    return emit(
        "rand_set_state",
        choose(engine, _Engine.gpsimd),
        {},
        {"src_seeds": tile(src_seeds, "src_seeds")},
        name=name,
    )


def rand_get_state(
    dst: NkiTensor, engine: engine = engine.gpsimd, name: str | None = None
) -> NkiInstruction:
    """dst := each lane's generator state."""
    return emit(
        "rand_get_state", choose(engine, _Engine.gpsimd), {"dst": tile(dst, "dst")}, {}, name=name
    )


def rand2(dst: NkiTensor, min: Operand, max: Operand, name: str | None = None) -> NkiInstruction:
    """dst := uniform numbers in [min, max] (trn3)."""
    return emit(
        "rand2",
        _Engine.vector,
        {"dst": tile(dst, "dst")},
        {"min": operand(min, "min"), "max": operand(max, "max")},
        name=name,
    )

"""Between cores and in the sequencers: barriers, exchange, registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nki.errors import NkiValidationError
from nki.isa.operands import choose, emit, tile
from nki.program.builder import current
from nki.program.enums import Engine as _Engine
from nki.program.enums import dma_engine, engine
from nki.program.ir import NkiInstruction
from nki.program.registers import NkiScalar
from nki.program.tensor import NkiTensor


def core_barrier(
    data: NkiTensor,
    cores: Sequence[int],
    engine: engine = engine.gpsimd,
    name: str | None = None,
) -> NkiInstruction:
    """Wait until all cores have finished with `data`, a tensor in shared HBM."""
    tensor = tile(data, "data")
    return emit(
        "core_barrier",
        choose(engine, _Engine.gpsimd),
        {"data": tensor},
        {},
        {"cores": tuple(int(core) for core in cores)},
        name=name,
    )


def sendrecv(
    src: NkiTensor,
    dst: NkiTensor,
    send_to_rank: int,
    recv_from_rank: int,
    pipe_id: int,
    dma_engine: dma_engine = dma_engine.dma,
    name: str | None = None,
) -> NkiInstruction:
    """Send src to the other core and receive its src into dst."""
    from nki.program import enums

    mover = _Engine.gpsimd if dma_engine is enums.dma_engine.gpsimd_dma else _Engine.dma
    return emit(
        "sendrecv",
        mover,
        {"dst": tile(dst, "dst")},
        {"src": tile(src, "src")},
        {
            "send_to_rank": int(send_to_rank),
            "recv_from_rank": int(recv_from_rank),
            "pipe_id": int(pipe_id),
        },
        name=name,
    )


def _register(value: Any, role: str) -> NkiScalar:
    if isinstance(value, NkiScalar):
        return value
    raise NkiValidationError(f"{role} is {value!r}; it must be a register of nisa.register_alloc.")


def register_alloc(x: int | None = None) -> NkiScalar:
    """A new register, optionally with a first value."""
    if x is not None and not isinstance(x, int):
        raise NkiValidationError(
            f"register_alloc takes an int or nothing, not {x!r}. Load a tensor's element with "
            "nisa.register_load."
        )
    register = current().new_register()
    register_move(register, 0 if x is None else x)
    return register


def register_move(dst: NkiScalar, src: int | NkiScalar) -> None:
    """dst := src."""
    if not isinstance(src, int | NkiScalar):
        raise NkiValidationError(f"register_move: src is {src!r}, not an int or a register.")
    emit("register_move", _Engine.sync, {}, {"src": src}, {"register": _register(dst, "dst")})


def register_load(dst: NkiScalar, src: NkiTensor) -> None:
    """dst := the element of a 1-element tensor."""
    source = tile(src, "src")
    if source.size != 1:
        raise NkiValidationError(f"register_load: {source!r} has {source.size} elements, not 1.")
    emit("register_load", _Engine.sync, {}, {"src": source}, {"register": _register(dst, "dst")})


def register_store(dst: NkiTensor, src: int | NkiScalar) -> None:
    """The element of a 1-element tensor := src."""
    target = tile(dst, "dst")
    if target.size != 1:
        raise NkiValidationError(f"register_store: {target!r} has {target.size} elements, not 1.")
    emit("register_store", _Engine.sync, {"dst": target}, {"src": src})


def scalar_load(tile: NkiTensor) -> NkiScalar:
    """A register with the value of a 1-element tensor."""
    register = current().new_register()
    register_load(register, tile)
    return register


def scalar_store(tile: NkiTensor, scalar: int | NkiScalar) -> None:
    """The element of a 1-element tensor := a register."""
    register_store(tile, scalar)

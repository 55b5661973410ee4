"""Seeded random numbers (Philox); the device's own bit streams are not published."""

from __future__ import annotations

import numpy as np

from nki import dtypes
from nki.program.ir import NkiInstruction
from nki.simulator.memory import Machine
from nki.simulator.semantics.table import means
from nki.simulator.semantics.vector import column


@means("rng")
def _rng(machine: Machine, instruction: NkiInstruction) -> None:
    dst = instruction.outputs["dst"]
    bits = machine.random.integers(0, 1 << 32, dst.shape, dtype=np.uint32)
    machine.store(dst, bits.astype(dtypes.row(dst.dtype).numpy))


@means("dropout")
def _dropout(machine: Machine, instruction: NkiInstruction) -> None:
    data = instruction.inputs["data"]
    draw = machine.random.random(data.shape, dtype=np.float32)
    drop = draw < column(machine, instruction.inputs["prob"], data)
    raw = machine.raw(data)
    machine.store(instruction.outputs["dst"], np.where(drop, np.zeros((), raw.dtype), raw))


@means("set_rng_seed")
def _set_rng_seed(machine: Machine, instruction: NkiInstruction) -> None:
    seed = machine.raw(instruction.inputs["src_seeds"]).reshape(-1)[:1]
    machine.random = np.random.Generator(
        np.random.Philox(int(np.ascontiguousarray(seed).view(np.uint32)[0]))
    )


@means("rand_set_state")
def _rand_set_state(machine: Machine, instruction: NkiInstruction) -> None:
    seeds = instruction.inputs["src_seeds"]
    words = machine.raw(seeds).reshape(seeds.shape[0], -1)
    machine.lanes[: words.shape[0], : words.shape[1]] = words
    seed = int.from_bytes(np.ascontiguousarray(words).tobytes()[:32], "little")
    machine.random = np.random.Generator(np.random.Philox(seed % (1 << 128)))


@means("rand_get_state")
def _rand_get_state(machine: Machine, instruction: NkiInstruction) -> None:
    dst = instruction.outputs["dst"]
    machine.store(dst, machine.lanes[: dst.shape[0], : dst.free_elements])


@means("rand2")
def _rand2(machine: Machine, instruction: NkiInstruction) -> None:
    dst = instruction.outputs["dst"]
    low = column(machine, instruction.inputs["min"], dst)
    high = column(machine, instruction.inputs["max"], dst)
    draw = machine.random.random(dst.shape, dtype=np.float32)
    machine.store(dst, low + (high - low) * draw)

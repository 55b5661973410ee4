"""How much SBUF and PSUM is free while a program is placed in time."""

from __future__ import annotations

import heapq

from nki.program.ir import NkiInstruction, Program
from nki.program.storage import MemoryRegion


class OnChipSpace:
    """On-chip space: a new tensor waits until the instructions that held its place are done."""

    def __init__(self, program: Program) -> None:
        chip = program.chip
        self.left = {
            MemoryRegion.sbuf: float(chip.sbuf.bytes_per_partition),
            MemoryRegion.psum: float(chip.psum.bytes_per_partition),
        }
        self.held: dict[int, float] = {}
        self.finished: dict[MemoryRegion, list[tuple[float, int, float]]] = {
            MemoryRegion.sbuf: [],
            MemoryRegion.psum: [],
        }

    def room(self, instruction: NkiInstruction, clock: int) -> tuple[float, int | None]:
        """When there is space for the tensors that this instruction is the first to use."""
        del clock
        when: float = 0.0
        cause: int | None = None
        for tensor in instruction.outputs.values():
            storage = tensor.storage
            if not storage.buffer.on_chip or storage.index in self.held:
                continue
            size = storage.row_bytes * (-(-storage.shape[0] // 32)) / 4
            queue = self.finished[storage.buffer]
            while self.left[storage.buffer] < size and queue:
                finish, number, freed = heapq.heappop(queue)
                self.left[storage.buffer] += freed
                if finish > when:
                    when, cause = finish, number
            self.left[storage.buffer] -= size
            self.held[storage.index] = size
        return when, cause

    def used(
        self,
        instruction: NkiInstruction,
        clock: int,
        finish: float,
        number: int,
        ranges: dict[int, tuple[int, int]],
    ) -> None:
        """Give back the space of tensors that this instruction is the last to use."""
        tensors = (*instruction.outputs.values(), *instruction.tensors_in())
        for tensor in tensors:
            storage = tensor.storage
            size = self.held.get(storage.index)
            if size and ranges[storage.index][1] <= clock:
                heapq.heappush(self.finished[storage.buffer], (finish, number, size))
                self.held[storage.index] = 0.0

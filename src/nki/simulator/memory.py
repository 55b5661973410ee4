"""Machine: memories, registers and accumulators of one core. Fresh memory is NaN."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from nki import dtypes, settings
from nki.errors import DeviceTrapError
from nki.program.enums import Engine
from nki.program.registers import NkiScalar
from nki.program.storage import PARTITIONS, MemoryRegion, Storage
from nki.program.tensor import NkiTensor
from nki.simulator.rounding import Kept, is_narrow, stochastic

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

_SEED = "NEURON_RT_STOCHASTIC_ROUNDING_SEED"
_FRESH_INTEGER = 4  # what the public simulator shows in integer memory that nothing has written


def fresh(storage: Storage) -> Bytes:
    """New memory as the device leaves it: NaN, or a recognisable integer."""
    return fresh_bytes(storage).copy()


@functools.lru_cache(maxsize=64)
def _pattern(dtype: str, elements: int) -> Bytes:
    row = dtypes.row(dtype)
    if row.kind == "float":
        values = np.full(elements, np.nan, np.float32).astype(row.numpy)
    else:
        values = np.full(elements, _FRESH_INTEGER, row.numpy)
    return values.view(np.uint8)


def fresh_bytes(storage: Storage) -> Bytes:
    """The bytes of unwritten memory, to be copied."""
    return _pattern(storage.dtype, storage.elements)


class SharedMemory:
    """HBM that all cores of a launch see: arguments, and what they allocate there in order."""

    def __init__(self, given: dict[int, Bytes] | None = None) -> None:
        self._given = given if given is not None else {}
        """Memory for allocations by position, from whoever wants the results in it."""
        self._allocated: list[Bytes] = []

    def allocation(self, position: int, storage: Storage) -> Bytes:
        """The position-th shared allocation of the kernel."""
        while len(self._allocated) <= position:
            memory = self._given.get(len(self._allocated))
            if memory is None:
                memory = fresh(storage)
            else:
                memory[:] = fresh_bytes(storage)
            self._allocated.append(memory)
        return self._allocated[position]


class Machine:
    """State of one core while it runs."""

    def __init__(
        self,
        *,
        core: int = 0,
        num_cores: int = 1,
        shared: SharedMemory | None = None,
        arguments: dict[str, Bytes] | None = None,
        seed: int = 0,
    ) -> None:
        self.core = core
        self.num_cores = num_cores
        self.shared = shared if shared is not None else SharedMemory()
        self.arguments = arguments if arguments is not None else {}
        self.memory: dict[int, Bytes] = {}
        self.registers = np.zeros(16, np.int64)
        self.accumulators = {
            Engine.vector: np.zeros(PARTITIONS, np.float32),
            Engine.scalar: np.zeros(PARTITIONS, np.float32),
        }
        self.products: dict[int, npt.NDArray[np.bool_]] = {}
        """PSUM elements written by matmuls, for accumulation that is decided while running."""
        self.random = np.random.Generator(np.random.Philox(seed))
        self.lanes = np.zeros((PARTITIONS, 24), np.uint32)
        self.kept = None if settings.enabled("NKI_PRECISE_FP") else Kept()
        self.rounding = (
            np.random.Generator(np.random.Philox(key=[settings.whole(_SEED), core]))
            if settings.enabled("NEURON_RT_STOCHASTIC_ROUNDING_EN")
            else None
        )
        self._shared_count = 0

    def allocate(self, storage: Storage) -> None:
        """Give an allocation its memory."""
        if storage.argument is not None:
            self.memory[storage.index] = self.arguments[storage.argument]
        elif storage.constant is not None:
            data = np.ascontiguousarray(storage.constant)
            self.memory[storage.index] = data.reshape(-1).view(np.uint8).copy()
        elif storage.buffer is MemoryRegion.shared_hbm:
            self.memory[storage.index] = self.shared.allocation(self._shared_count, storage)
            self._shared_count += 1
        else:
            self.memory[storage.index] = fresh(storage)
        self.products.pop(storage.index, None)

    # Registers

    def value(self, operand: float | NkiScalar) -> Any:
        """A number, or the value of a register."""
        if isinstance(operand, NkiScalar):
            return int(self.registers[operand.index])
        return operand

    def set_register(self, register: NkiScalar, value: int) -> None:
        """Store a value, wrapped to the register's width."""
        bits = 64 if register.dtype == "int64" else 32
        half = 1 << (bits - 1)
        self.grow_registers(register.index + 1)
        self.registers[register.index] = (int(value) + half) % (1 << bits) - half

    def grow_registers(self, count: int) -> None:
        """Have at least `count` registers."""
        if count > self.registers.size:
            more = np.zeros(2 * count, np.int64)
            more[: self.registers.size] = self.registers
            self.registers = more

    # Tensors

    def array(self, tensor: NkiTensor) -> Array:
        """The tensor's elements as a NumPy view of the memory; one run-time offset at most."""
        offset = tensor.offset
        dynamic = tensor.dynamic
        if dynamic is not None:
            offset += self._index(dynamic.index) * dynamic.stride
        row = dtypes.row(tensor.dtype)
        size = row.itemsize
        buffer = self.memory[tensor.storage.index]
        if dynamic is not None:
            last = offset + sum(
                (n - 1) * s for n, s in zip(tensor.shape, tensor.strides, strict=True)
            )
            if offset < 0 or last * size >= buffer.nbytes:
                raise DeviceTrapError(
                    f"A run-time index sends {tensor!r} to elements {offset}..{last} of "
                    f"{buffer.nbytes // size}. Clamp the index, or use oob_mode.skip."
                )
        return np.ndarray(
            tensor.shape, row.numpy, buffer, offset * size, [step * size for step in tensor.strides]
        )

    def _index(self, index: NkiTensor | NkiScalar) -> int:
        if isinstance(index, NkiScalar):
            return int(self.registers[index.index])
        return int(self.array(index).reshape(-1)[0])

    def addresses(self, tensor: NkiTensor) -> tuple[npt.NDArray[np.int64], Array]:
        """Element addresses of an indirect view, and which of them exist."""
        pattern = np.zeros((), np.int64)
        dynamic = tensor.dynamic
        assert dynamic is not None
        for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.strides, strict=True)):
            steps = np.arange(size, dtype=np.int64) * stride
            if dim == 0 and dynamic.per_partition:
                steps = np.zeros(size, np.int64)
            pattern = pattern[..., None] + steps
        valid = np.ones(tensor.shape, np.bool_)
        if dynamic.per_partition:
            assert isinstance(dynamic.index, NkiTensor)
            rows = self.array(dynamic.index).reshape(-1).astype(np.int64)[: tensor.shape[0]]
            if dynamic.index.dtype == "uint32":
                rows = rows.astype(np.uint32).view(np.int32).astype(np.int64)
            shape = (-1,) + (1,) * (tensor.ndim - 1)
            pattern = pattern + (rows * dynamic.stride).reshape(shape)
            valid &= ((rows >= 0) & (rows < dynamic.limit)).reshape(shape)
        else:
            pattern = pattern + self._index(dynamic.index) * dynamic.stride
        pattern = pattern + tensor.offset
        total = self.memory[tensor.storage.index].nbytes // tensor.itemsize
        valid &= (pattern >= 0) & (pattern < total)
        return pattern, valid

    def flat(self, tensor: NkiTensor) -> Array:
        """All elements of the tensor's allocation, in the tensor's dtype."""
        return self.memory[tensor.storage.index].view(dtypes.row(tensor.dtype).numpy)

    def columns(self, tensor: NkiTensor, group: int) -> npt.NDArray[np.int64]:
        """Column numbers of a tensor-indirect view, in order."""
        assert tensor.column_index is not None
        index = self.array(tensor.column_index.index).astype(np.int64)
        rows, width = index.shape[0], int(np.prod(index.shape[1:]))
        index = index.reshape(rows, width)
        blocks = [index[start : start + group] for start in range(0, rows, group)]
        order = np.concatenate([block.T.reshape(-1) for block in blocks])
        return order[: tensor.column_index.count]

    def raw(self, tensor: NkiTensor, *, group: int = 16) -> Array:
        """The stored elements; a copy when the view is column-indirect."""
        if tensor.column_index is None:
            return self.array(tensor)
        full = self._all_columns(tensor)
        return full[:, self.columns(tensor, group)]

    def _all_columns(self, tensor: NkiTensor) -> Array:
        row_elements = tensor.row_elements
        width = (row_elements - tensor.offset % row_elements - 1) // max(tensor.strides[1], 1) + 1
        base = tensor.with_layout((tensor.shape[0], width), tensor.strides)
        base.column_index = None
        return self.array(base)

    def load(self, operand: Any, *, group: int = 16) -> Any:
        """An operand as the engines see it: fp32 values, or a number."""
        if isinstance(operand, NkiTensor):
            values = dtypes.to_float32(self.raw(operand, group=group), operand.dtype)
            return values if self.kept is None else self.kept.load(operand, values)
        if isinstance(operand, NkiScalar):
            return np.float32(self.value(operand))
        return np.float32(operand)

    def store(self, tensor: NkiTensor, values: Array, *, group: int = 16) -> None:
        """Convert computed values to the tensor's dtype and write them."""
        values = np.asarray(values)
        if self.rounding is not None and values.dtype == np.float32 and is_narrow(tensor.dtype):
            data = stochastic(values, tensor.dtype, self.rounding)
        else:
            data = dtypes.cast(values, tensor.dtype)
        if self.kept is not None and values.dtype == np.float32:
            self.kept.store(tensor, values)
        if tensor.column_index is not None:
            self._all_columns(tensor)[:, self.columns(tensor, group)] = data.reshape(tensor.shape)
        else:
            if data.shape != tensor.shape:
                data = data.reshape(tensor.shape)
            self.array(tensor)[...] = data
        mask = self.products.get(tensor.storage.index)
        if mask is not None:
            self.product_mask(tensor)[...] = False

    def product_mask_for(self, storage: Storage) -> npt.NDArray[np.bool_]:
        """Start to keep a record of which elements of a PSUM tensor hold products."""
        return self.products.setdefault(storage.index, np.zeros(storage.elements, np.bool_))

    def product_mask(self, tensor: NkiTensor) -> npt.NDArray[np.bool_]:
        """Which elements of a PSUM view hold products, as a view of the record."""
        mask = self.product_mask_for(tensor.storage)
        return np.ndarray(tensor.shape, np.bool_, mask, tensor.offset, tensor.strides)

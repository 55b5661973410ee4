"""Legality of the tensor engine's instructions."""

from __future__ import annotations

from neuron_chip import Chip
from nki import dtypes
from nki.errors import UnsupportedError
from nki.program.checks.table import check, fail
from nki.program.enums import Engine, matmul_perf_mode
from nki.program.ir import NkiInstruction
from nki.program.storage import MemoryRegion
from nki.program.tensor import NkiTensor

_MATMUL_DTYPES = frozenset(
    ["float8_e4m3", "float8_e5m2", "float8_e4m3fn", "bfloat16", "float16", "tfloat32", "float32"]
)


@check("nc_matmul")
def _nc_matmul(instruction: NkiInstruction, chip: Chip) -> None:
    dst = instruction.outputs["dst"]
    stationary, moving = instruction.inputs["stationary"], instruction.inputs["moving"]
    double = instruction.attributes["perf_mode"] is matmul_perf_mode.double_row
    transpose = instruction.attributes["is_transpose"]
    if stationary.shape[0] != moving.shape[0]:
        fail(
            instruction,
            f"stationary has {stationary.shape[0]} and moving {moving.shape[0]} partitions; the "
            "contraction (partition) dimension must agree.",
        )
    m, n = stationary.free_elements, moving.free_elements
    if double:
        _check_double_row(instruction, chip, stationary, moving)
        m, n = m // 2, n // 2
    limit = chip.tensor.max_moving_free
    if dst.dtype == "bfloat16" and chip.generation >= 4:
        limit *= 2
    if m > chip.tensor.columns:
        fail(
            instruction,
            f"stationary has a free size of {m}; {chip.tensor.columns} is the most "
            "(nl.tile_size.gemm_stationary_fmax). Split it.",
        )
    if n > limit:
        fail(
            instruction,
            f"moving has a free size of {n}; {limit} is the most on {chip.name} "
            "(nl.tile_size.gemm_moving_fmax). Split it.",
        )
    if (dst.shape[0], dst.free_elements) != (m, n):
        fail(
            instruction,
            f"dst is {dst.shape[0]} x {dst.free_elements}; stationary.T @ moving is {m} x {n}.",
        )
    _check_matmul_dtypes(instruction, chip, stationary.dtype, moving.dtype, dst.dtype, transpose)
    _check_bank(instruction, chip, dst)
    _check_tiling(instruction, chip, stationary)


def _check_double_row(
    instruction: NkiInstruction, chip: Chip, stationary: NkiTensor, moving: NkiTensor
) -> None:
    if chip.generation < 3:
        raise UnsupportedError(f"perf_mode double_row needs trn2 or later, not {chip.name}.")
    for role, tensor in (("stationary", stationary), ("moving", moving)):
        if not tensor.dtype.startswith("float8"):
            fail(instruction, f"double_row needs fp8 operands; {role} is {tensor.dtype}.")
        if tensor.ndim != 3 or tensor.shape[1] != 2:
            fail(
                instruction,
                f"double_row needs operands of shape [K, 2, free]; {role} is {tensor.shape}.",
            )
    if instruction.attributes["is_transpose"]:
        fail(instruction, "double_row cannot be combined with is_transpose.")


def _check_matmul_dtypes(
    instruction: NkiInstruction, chip: Chip, a: str, b: str, out: str, transpose: bool
) -> None:
    if transpose and chip.generation >= 3:
        if out != b and dtypes.itemsize(out) != dtypes.itemsize(b):
            fail(
                instruction,
                f"is_transpose moves bits: dst is {out} but moving is {b}; use one dtype.",
            )
        return
    for role, dtype in (("stationary", a), ("moving", b)):
        if dtype not in _MATMUL_DTYPES:
            fail(
                instruction,
                f"{role} is {dtype}; the array multiplies {', '.join(sorted(_MATMUL_DTYPES))}.",
            )
        if dtype == "float8_e4m3fn" and chip.generation < 4:
            fail(instruction, f"{role} is float8_e4m3fn, which needs trn3. Use float8_e4m3.")
    wide = {"float32", "tfloat32"}
    if (a in wide) != (b in wide):
        fail(
            instruction,
            f"stationary is {a} and moving is {b}; fp32 pairs only with fp32. Cast one of them.",
        )
    if {a, b} == {"float8_e4m3", "float8_e4m3fn"}:
        fail(instruction, "float8_e4m3 and float8_e4m3fn cannot be multiplied with each other.")
    allowed = ("float32",) if chip.generation < 4 else ("float32", "bfloat16")
    if out not in allowed and out not in ("bfloat16", "float16"):
        fail(instruction, f"dst is {out}; PSUM products are {' or '.join(allowed)}.")


def _check_bank(instruction: NkiInstruction, chip: Chip, dst: NkiTensor) -> None:
    bank = chip.psum.bank_bytes_per_partition
    assert bank is not None
    if chip.generation >= 4:
        return
    base = dst.storage.address[1] if dst.storage.address is not None else 0
    start = base + (dst.offset % dst.row_elements) * dst.itemsize
    reach = sum((n - 1) * s for n, s in zip(dst.shape[1:], dst.strides[1:], strict=True))
    end = start + reach * dst.itemsize + dst.itemsize
    if start // bank != (end - 1) // bank:
        fail(
            instruction,
            f"dst {dst!r} spans bytes {start}..{end - 1} of its PSUM partition, across a bank "
            f"border (banks of {bank} bytes). Keep one product in one bank.",
        )


def _check_tiling(instruction: NkiInstruction, chip: Chip, stationary: NkiTensor) -> None:
    size = instruction.attributes["tile_size"]
    position = instruction.attributes["tile_position"]
    if not size and not position:
        return
    if not (size and position):
        fail(instruction, "tile_size and tile_position must be given together.")
    sizes = (32, 64, 128) if chip.generation >= 3 else (64, 128)
    for axis, extent, at in zip(("row", "column"), size, position, strict=True):
        if extent not in sizes:
            fail(instruction, f"tile_size {axis} is {extent}; use one of {sizes}.")
        if at % extent or at + extent > 128:
            fail(
                instruction,
                f"tile_position {axis} is {at}; it must be a multiple of the tile's {extent} "
                "and the tile must end within 128.",
            )
    if stationary.shape[0] > size[0] or stationary.free_elements > size[1]:
        fail(
            instruction,
            f"stationary is {stationary.shape[0]} x {stationary.free_elements}, larger than the "
            f"tile of {size[0]} x {size[1]}.",
        )


@check("nc_matmul_mx")
def _nc_matmul_mx(instruction: NkiInstruction, chip: Chip) -> None:
    stationary, moving = instruction.inputs["stationary"], instruction.inputs["moving"]
    for role, tensor in (("stationary", stationary), ("moving", moving)):
        if dtypes.row(tensor.dtype).kind != "packed":
            fail(instruction, f"{role} is {tensor.dtype}; it must be a packed x4 type.")
        if tensor.shape[0] % 32:
            fail(instruction, f"{role} has {tensor.shape[0]} partitions, not a multiple of 32.")
    if stationary.shape[0] != moving.shape[0]:
        fail(
            instruction,
            f"stationary has {stationary.shape[0]} and moving {moving.shape[0]} partitions.",
        )
    for role in ("stationary_scale", "moving_scale"):
        scale = instruction.inputs[role]
        if scale.dtype not in ("float8_e8m0fnu", "uint8"):
            fail(instruction, f"{role} is {scale.dtype}; use float8_e8m0fnu or uint8.")
    m = stationary.free_elements
    if m > chip.tensor.columns or m % 2:
        fail(instruction, f"stationary has a free size of {m}; even and at most 128 is possible.")
    dst = instruction.outputs["dst"]
    if (dst.shape[0], dst.free_elements) != (m, moving.free_elements):
        fail(
            instruction,
            f"dst is {dst.shape[0]} x {dst.free_elements}; the product is {m} x "
            f"{moving.free_elements}.",
        )


@check("nc_transpose")
def _nc_transpose(instruction: NkiInstruction, _chip: Chip) -> None:
    dst, data = instruction.outputs["dst"], instruction.inputs["data"]
    rows, columns = data.shape[0], data.free_elements
    if (dst.shape[0], dst.free_elements) != (columns, rows):
        fail(
            instruction,
            f"data is {rows} x {columns}, so dst must be {columns} x {rows}; it is "
            f"{dst.shape[0]} x {dst.free_elements}.",
        )
    if instruction.engine is Engine.tensor:
        if data.buffer is not MemoryRegion.sbuf or dst.buffer is not MemoryRegion.psum:
            fail(
                instruction,
                "the tensor engine transposes from SBUF to PSUM; "
                f"data is {data!r}, dst is {dst!r}.",
            )
        limit = 128
    else:
        limit = 32
    if rows > limit or columns > limit:
        fail(
            instruction,
            f"{rows} x {columns} is too large for engine {instruction.engine.name}, which "
            f"transposes up to {limit} x {limit}.",
        )

"""Legality beyond the rows of `rules`, one function per instruction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neuron_chip import Chip
from nki import dtypes
from nki.errors import NkiValidationError, UnsupportedError
from nki.program.enums import dge_mode, matmul_perf_mode
from nki.program.enums import engine as Engine
from nki.program.ir import NkiInstruction
from nki.program.operators import OPERATORS
from nki.program.storage import MemoryRegion
from nki.program.tensor import NkiTensor

Check = Callable[[NkiInstruction, Chip], None]
CHECKS: dict[str, Check] = {}

_MATMUL_DTYPES = frozenset(
    "float8_e4m3 float8_e5m2 float8_e4m3fn bfloat16 float16 tfloat32 float32".split()
)


def _check(*opcodes: str) -> Callable[[Check], Check]:
    def register(function: Check) -> Check:
        for opcode in opcodes:
            CHECKS[opcode] = function
        return function

    return register


def _fail(instruction: NkiInstruction, message: str) -> None:
    raise NkiValidationError(f"nisa.{instruction.opcode}: {message}")


def _tensor(instruction: NkiInstruction, role: str) -> NkiTensor | None:
    value: Any = instruction.inputs.get(role)
    return value if isinstance(value, NkiTensor) else None


# DMA


@_check("dma_copy")
def _dma_copy(instruction: NkiInstruction, chip: Chip) -> None:
    dst, src = instruction.outputs["dst"], instruction.inputs["src"]
    if dst.size != src.size:
        _fail(
            instruction,
            f"dst {dst!r} has {dst.size} elements and src {src!r} has {src.size}. "
            "Slice them to the same number.",
        )
    mode = instruction.attributes["dge_mode"]
    if mode is dge_mode.hwdge:
        if chip.generation < 3:
            raise UnsupportedError(f"dge_mode.hwdge needs trn2 or later, not {chip.name}.")
        if dst.dtype != src.dtype:
            _fail(
                instruction,
                f"dge_mode.hwdge cannot convert {src.dtype} to {dst.dtype}. Use "
                "dge_mode.swdge, or cast with nisa.tensor_copy.",
            )
    issuing = instruction.attributes["issuing_engine"]
    if issuing is not Engine.unknown and (
        mode is not dge_mode.hwdge or issuing not in (Engine.sync, Engine.scalar)
    ):
        _fail(
            instruction,
            f"engine={issuing.name} is possible only as sync or scalar with "
            "dge_mode=nisa.dge_mode.hwdge.",
        )
    _check_priority(instruction, chip)
    packed = [t for t in (dst, src) if dtypes.row(t.dtype).kind == "packed"]
    if packed and dst.dtype != src.dtype and dst.itemsize != src.itemsize:
        _fail(instruction, f"packed {packed[0].dtype} cannot be converted by a DMA.")
    for tensor in (dst, src):
        dynamic = tensor.dynamic
        if dynamic is not None and dynamic.per_partition:
            index = dynamic.index
            if isinstance(index, NkiTensor) and index.buffer is not MemoryRegion.sbuf:
                _fail(instruction, f"the vector_offset {index!r} must be in SBUF.")
            if tensor.on_chip:
                _fail(instruction, f"a vector_offset needs its tensor in HBM, not {tensor!r}.")


def _check_priority(instruction: NkiInstruction, chip: Chip) -> None:
    priority = instruction.attributes.get("priority")
    if priority is None:
        return
    if chip.generation < 4:
        raise UnsupportedError(f"DMA priorities need trn3, not {chip.name}. Leave priority out.")
    if not 0 <= int(priority) <= 3:
        _fail(instruction, f"priority={priority} is not in 0..3 (0 is the most urgent).")


@_check("dma_transpose")
def _dma_transpose(instruction: NkiInstruction, chip: Chip) -> None:
    dst, src = instruction.outputs["dst"], instruction.inputs["src"]
    axes = instruction.attributes["axes"]
    legal = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}
    if src.ndim not in legal or axes != legal[src.ndim]:
        _fail(
            instruction,
            f"axes={axes} of a {src.ndim}-D src; DMA transposes are 2-D (1, 0), 3-D (2, 1, 0) "
            "and 4-D (3, 1, 2, 0).",
        )
    if dst.size != src.size:
        _fail(instruction, f"dst has {dst.size} elements, src has {src.size}.")
    if dst.itemsize != src.itemsize:
        _fail(instruction, f"dst is {dst.dtype} and src is {src.dtype}; they must be the same.")
    if instruction.attributes["dge_mode"] is dge_mode.hwdge and src.itemsize != 2:
        _fail(instruction, f"dge_mode.hwdge transposes 2-byte types, not {src.dtype}.")
    _check_priority(instruction, chip)


@_check("dma_compute")
def _dma_compute(instruction: NkiInstruction, chip: Chip) -> None:
    srcs = instruction.inputs["srcs"]
    dst = instruction.outputs["dst"]
    if not 1 <= len(srcs) <= 16:
        _fail(instruction, f"{len(srcs)} sources; 1 to 16 are possible.")
    if instruction.attributes["reduce_op"] != "add":
        _fail(instruction, f"reduce_op={instruction.attributes['reduce_op']}; only nl.add works.")
    for src in srcs:
        if src.size != dst.size:
            _fail(instruction, f"dst has {dst.size} elements and {src!r} has {src.size}.")
    if not instruction.attributes["unique_indices"]:
        _fail(instruction, "unique_indices must be True: colliding updates would be lost.")


# Tensor engine


@_check("nc_matmul")
def _nc_matmul(instruction: NkiInstruction, chip: Chip) -> None:
    dst = instruction.outputs["dst"]
    stationary, moving = instruction.inputs["stationary"], instruction.inputs["moving"]
    double = instruction.attributes["perf_mode"] is matmul_perf_mode.double_row
    transpose = instruction.attributes["is_transpose"]
    if stationary.shape[0] != moving.shape[0]:
        _fail(
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
        _fail(
            instruction,
            f"stationary has a free size of {m}; {chip.tensor.columns} is the most "
            "(nl.tile_size.gemm_stationary_fmax). Split it.",
        )
    if n > limit:
        _fail(
            instruction,
            f"moving has a free size of {n}; {limit} is the most on {chip.name} "
            "(nl.tile_size.gemm_moving_fmax). Split it.",
        )
    if (dst.shape[0], dst.free_elements) != (m, n):
        _fail(
            instruction,
            f"dst is {dst.shape[0]} x {dst.free_elements}; stationary.T @ moving is {m} x {n}.",
        )
    _check_matmul_dtypes(instruction, chip, stationary.dtype, moving.dtype, dst.dtype, transpose)
    _check_bank(instruction, chip, dst)
    _check_tiling(instruction, chip, stationary, n)


def _check_double_row(
    instruction: NkiInstruction, chip: Chip, stationary: NkiTensor, moving: NkiTensor
) -> None:
    if chip.generation < 3:
        raise UnsupportedError(f"perf_mode double_row needs trn2 or later, not {chip.name}.")
    for role, tensor in (("stationary", stationary), ("moving", moving)):
        if not tensor.dtype.startswith("float8"):
            _fail(instruction, f"double_row needs fp8 operands; {role} is {tensor.dtype}.")
        if tensor.ndim != 3 or tensor.shape[1] != 2:
            _fail(
                instruction,
                f"double_row needs operands of shape [K, 2, free]; {role} is {tensor.shape}.",
            )
    if instruction.attributes["is_transpose"]:
        _fail(instruction, "double_row cannot be combined with is_transpose.")


def _check_matmul_dtypes(
    instruction: NkiInstruction, chip: Chip, a: str, b: str, out: str, transpose: bool
) -> None:
    if transpose and chip.generation >= 3:
        if out != b and dtypes.itemsize(out) != dtypes.itemsize(b):
            _fail(
                instruction,
                f"is_transpose moves bits: dst is {out} but moving is {b}; use one dtype.",
            )
        return
    for role, dtype in (("stationary", a), ("moving", b)):
        if dtype not in _MATMUL_DTYPES:
            _fail(
                instruction,
                f"{role} is {dtype}; the array multiplies {', '.join(sorted(_MATMUL_DTYPES))}.",
            )
        if dtype == "float8_e4m3fn" and chip.generation < 4:
            _fail(instruction, f"{role} is float8_e4m3fn, which needs trn3. Use float8_e4m3.")
    wide = {"float32", "tfloat32"}
    if (a in wide) != (b in wide):
        _fail(
            instruction,
            f"stationary is {a} and moving is {b}; fp32 pairs only with fp32. Cast one of them.",
        )
    if {a, b} == {"float8_e4m3", "float8_e4m3fn"}:
        _fail(instruction, "float8_e4m3 and float8_e4m3fn cannot be multiplied with each other.")
    allowed = ("float32",) if chip.generation < 4 else ("float32", "bfloat16")
    if out not in allowed and out not in ("bfloat16", "float16"):
        _fail(instruction, f"dst is {out}; PSUM products are {' or '.join(allowed)}.")


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
        _fail(
            instruction,
            f"dst {dst!r} spans bytes {start}..{end - 1} of its PSUM partition, across a bank "
            f"border (banks of {bank} bytes). Keep one product in one bank.",
        )


def _check_tiling(instruction: NkiInstruction, chip: Chip, stationary: NkiTensor, n: int) -> None:
    size = instruction.attributes["tile_size"]
    position = instruction.attributes["tile_position"]
    if not size and not position:
        return
    if not (size and position):
        _fail(instruction, "tile_size and tile_position must be given together.")
    sizes = (32, 64, 128) if chip.generation >= 3 else (64, 128)
    for axis, extent, at in zip(("row", "column"), size, position, strict=True):
        if extent not in sizes:
            _fail(instruction, f"tile_size {axis} is {extent}; use one of {sizes}.")
        if at % extent or at + extent > 128:
            _fail(
                instruction,
                f"tile_position {axis} is {at}; it must be a multiple of the tile's {extent} "
                "and the tile must end within 128.",
            )
    if stationary.shape[0] > size[0] or stationary.free_elements > size[1]:
        _fail(
            instruction,
            f"stationary is {stationary.shape[0]} x {stationary.free_elements}, larger than the "
            f"tile of {size[0]} x {size[1]}.",
        )


@_check("nc_matmul_mx")
def _nc_matmul_mx(instruction: NkiInstruction, chip: Chip) -> None:
    stationary, moving = instruction.inputs["stationary"], instruction.inputs["moving"]
    for role, tensor in (("stationary", stationary), ("moving", moving)):
        if dtypes.row(tensor.dtype).kind != "packed":
            _fail(instruction, f"{role} is {tensor.dtype}; it must be a packed x4 type.")
        if tensor.shape[0] % 32:
            _fail(instruction, f"{role} has {tensor.shape[0]} partitions, not a multiple of 32.")
    if stationary.shape[0] != moving.shape[0]:
        _fail(
            instruction,
            f"stationary has {stationary.shape[0]} and moving {moving.shape[0]} partitions.",
        )
    for role in ("stationary_scale", "moving_scale"):
        scale = instruction.inputs[role]
        if scale.dtype not in ("float8_e8m0fnu", "uint8"):
            _fail(instruction, f"{role} is {scale.dtype}; use float8_e8m0fnu or uint8.")
    m = stationary.free_elements
    if m > chip.tensor.columns or m % 2:
        _fail(instruction, f"stationary has a free size of {m}; even and at most 128 is possible.")
    dst = instruction.outputs["dst"]
    if (dst.shape[0], dst.free_elements) != (m, moving.free_elements):
        _fail(
            instruction,
            f"dst is {dst.shape[0]} x {dst.free_elements}; the product is {m} x "
            f"{moving.free_elements}.",
        )


@_check("nc_transpose")
def _nc_transpose(instruction: NkiInstruction, chip: Chip) -> None:
    dst, data = instruction.outputs["dst"], instruction.inputs["data"]
    rows, columns = data.shape[0], data.free_elements
    if (dst.shape[0], dst.free_elements) != (columns, rows):
        _fail(
            instruction,
            f"data is {rows} x {columns}, so dst must be {columns} x {rows}; it is "
            f"{dst.shape[0]} x {dst.free_elements}.",
        )
    if instruction.engine is Engine.tensor:
        if data.buffer is not MemoryRegion.sbuf or dst.buffer is not MemoryRegion.psum:
            _fail(
                instruction,
                "the tensor engine transposes from SBUF to PSUM; "
                f"data is {data!r}, dst is {dst!r}.",
            )
        limit = 128
    else:
        limit = 32
    if rows > limit or columns > limit:
        _fail(
            instruction,
            f"{rows} x {columns} is too large for engine {instruction.engine.name}, which "
            f"transposes up to {limit} x {limit}.",
        )


# ALU instructions


def _alu_dtypes(instruction: NkiInstruction, roles: tuple[str, ...], ops: list[str]) -> None:
    rows = [OPERATORS[op] for op in ops if op is not None]
    bitvec = [row.is_bitvec for row in rows if row.name != "bypass"]
    if any(bitvec) and not all(bitvec):
        _fail(
            instruction,
            f"{' and '.join(row.name for row in rows)} mix a bitwise with an arithmetic "
            "operator; use two instructions.",
        )
    if not any(bitvec):
        return
    for role in roles:
        value = instruction.outputs.get(role) or instruction.inputs.get(role)
        if isinstance(value, NkiTensor) and not dtypes.is_integer(value.dtype):
            _fail(
                instruction,
                f"{rows[0].name} works on integers; {role} is {value.dtype}. Use "
                ".view(nl.int32) to operate on the bits.",
            )
    if instruction.engine is not Engine.vector:
        _fail(instruction, f"{rows[0].name} runs only on the vector engine.")


@_check("tensor_tensor")
def _tensor_tensor(instruction: NkiInstruction, chip: Chip) -> None:
    op = instruction.attributes["op"]
    _alu_dtypes(instruction, ("dst", "data1", "data2"), [op])
    _check_generation(instruction, chip, op)
    if OPERATORS[op].is_unary:
        _fail(instruction, f"op={op} takes one operand. Use nisa.tensor_scalar or activation.")
    if op == "power" and instruction.engine is not Engine.gpsimd:
        _fail(instruction, "nl.power runs only on GpSimd: pass engine=nisa.engine.gpsimd.")


def _check_generation(instruction: NkiInstruction, chip: Chip, op: str | None) -> None:
    if op is not None and chip.generation < OPERATORS[op].min_generation:
        raise UnsupportedError(
            f"nisa.{instruction.opcode}: the operator {op} needs trn3, not {chip.name}."
        )


@_check("tensor_scalar")
def _tensor_scalar(instruction: NkiInstruction, chip: Chip) -> None:
    ops = [instruction.attributes["op0"], instruction.attributes["op1"]]
    _alu_dtypes(instruction, ("dst", "data"), [op for op in ops if op is not None])
    for op, role in zip(ops, ("operand0", "operand1"), strict=True):
        if op is None:
            continue
        _check_generation(instruction, chip, op)
        row = OPERATORS[op]
        column = _tensor(instruction, role)
        if column is not None and not row.is_bitvec and column.dtype not in (
            "float32", "tfloat32", "int32", "uint32"
        ):  # fmt: skip
            _fail(
                instruction,
                f"{role} is {column.dtype}; a column operand of {op} must be float32. Cast it "
                "with nisa.tensor_copy.",
            )
        if not row.is_unary and op != "bypass" and instruction.inputs.get(role) is None:
            _fail(instruction, f"{op} needs {role}.")
    if instruction.engine is Engine.scalar and (ops[0], ops[1]) not in (
        ("multiply", "add"), ("multiply", None), ("add", None), ("subtract", None)
    ):  # fmt: skip
        _fail(
            instruction,
            f"the scalar engine does multiply+add, multiply or add here, not {ops[0]}+{ops[1]}. "
            "Use engine=nisa.engine.vector.",
        )
    if instruction.engine is Engine.gpsimd and ops[0] not in (
        "rsqrt", "add", "multiply", "subtract", "maximum", "minimum", "power", "abs",
        "equal", "not_equal", "greater", "greater_equal", "less", "less_equal",
    ):  # fmt: skip
        _fail(instruction, f"GpSimd cannot do {ops[0]} here. Use the vector engine.")


@_check("scalar_tensor_tensor", "tensor_scalar_reduce", "tensor_tensor_scan")
def _arithmetic_only(instruction: NkiInstruction, chip: Chip) -> None:
    for role in ("op0", "op1"):
        op = instruction.attributes.get(role)
        if op is None:
            continue
        _check_generation(instruction, chip, op)
        if OPERATORS[op].is_bitvec:
            _fail(instruction, f"{role}={op} is bitwise; this instruction is arithmetic only.")
    if instruction.opcode == "tensor_scalar_reduce":
        op = instruction.attributes["reduce_op"]
        if op not in ("add", "multiply", "maximum", "minimum"):
            _fail(
                instruction,
                f"reduce_op={op}; use nl.add, nl.multiply, nl.maximum or nl.minimum.",
            )


@_check("tensor_reduce")
def _tensor_reduce(instruction: NkiInstruction, chip: Chip) -> None:
    data, dst = instruction.inputs["data"], instruction.outputs["dst"]
    axes = instruction.attributes["axes"]
    if 0 in axes:
        _fail(
            instruction,
            f"axis {axes} contains the partition axis of {data!r}. Use "
            "nisa.tensor_partition_reduce, or a matmul with ones.",
        )
    if axes != tuple(range(data.ndim - len(axes), data.ndim)):
        _fail(
            instruction,
            f"axis {axes} of a {data.ndim}-D tile; only the last free dimensions can be reduced. "
            "Permute the view so that they come last.",
        )
    if dst.shape[0] != data.shape[0]:
        _fail(instruction, f"dst has {dst.shape[0]} partitions and data {data.shape[0]}.")
    kept = 1
    for dim in range(1, data.ndim - len(axes)):
        kept *= data.shape[dim]
    if dst.free_elements != kept:
        _fail(
            instruction,
            f"dst {dst!r} has {dst.free_elements} elements per partition; reducing axis {axes} of "
            f"{data!r} leaves {kept}.",
        )
    op = instruction.attributes["op"]
    if OPERATORS[op].is_bitvec and instruction.attributes["negate"]:
        _fail(instruction, f"negate works with arithmetic operators, not {op}.")


@_check("activation", "activate2")
def _activation(instruction: NkiInstruction, chip: Chip) -> None:
    bias = instruction.inputs.get("bias")
    if isinstance(bias, float | int) and bias != 0 and chip.generation < 3:
        _fail(instruction, f"bias={bias}: {chip.name} takes the bias only as a [P, 1] column.")
    if isinstance(bias, NkiTensor) and bias.dtype == "tfloat32":
        _fail(instruction, "bias is tfloat32; use any other float type.")
    scale = instruction.inputs.get("scale")
    if isinstance(scale, NkiTensor) and scale.dtype not in ("float32", "tfloat32"):
        _fail(instruction, f"scale is {scale.dtype}; a column must be float32.")
    op = instruction.attributes.get("reduce_op")
    allowed = ("add",) if instruction.opcode == "activation" else (
        "add", "maximum", "minimum", "abs_max", "abs_min"
    )  # fmt: skip
    if op is not None and op not in allowed:
        _fail(instruction, f"reduce_op={op}; use {' or '.join('nl.' + name for name in allowed)}.")


@_check("range_select")
def _range_select(instruction: NkiInstruction, chip: Chip) -> None:
    for role in ("comp_op0", "comp_op1"):
        if instruction.attributes[role] not in (
            "equal", "less", "less_equal", "greater", "greater_equal"
        ):  # fmt: skip
            _fail(instruction, f"{role}={instruction.attributes[role]} is not a comparison here.")
    for role in ("bound0", "bound1"):
        bound = instruction.inputs[role]
        if not isinstance(bound, NkiTensor) or bound.dtype != "float32":
            _fail(instruction, f"{role} is {bound!r}; it must be a float32 [P, 1] column.")
    if instruction.attributes["reduce_op"] != "maximum":
        _fail(instruction, "reduce_op must be nl.maximum.")


# GpSimd and vector specials


@_check("iota", "affine_select")
def _affine(instruction: NkiInstruction, chip: Chip) -> None:
    pattern = instruction.attributes["pattern"]
    if not 1 <= len(pattern) <= 4:
        _fail(instruction, f"pattern {pattern} has {len(pattern)} pairs; 1 to 4 are possible.")
    count = 1
    for _, number in pattern:
        count *= number
    dst = instruction.outputs["dst"]
    if count != dst.free_elements:
        _fail(
            instruction,
            f"pattern {pattern} makes {count} values per partition; dst {dst!r} has "
            f"{dst.free_elements}.",
        )


@_check("bn_aggr")
def _bn_aggr(instruction: NkiInstruction, chip: Chip) -> None:
    data, dst = instruction.inputs["data"], instruction.outputs["dst"]
    if data.free_elements % 3:
        _fail(instruction, f"data has {data.free_elements} elements per partition, not triples.")
    if dst.free_elements != 2:
        _fail(instruction, f"dst has {dst.free_elements} elements per partition; it needs 2.")


@_check("bn_stats")
def _bn_stats(instruction: NkiInstruction, chip: Chip) -> None:
    if instruction.outputs["dst"].free_elements != 6:
        _fail(
            instruction,
            f"dst has {instruction.outputs['dst'].free_elements} elements per partition; it "
            "needs 6 (count, mean and variance*count of even and odd elements).",
        )


@_check("max8")
def _max8(instruction: NkiInstruction, chip: Chip) -> None:
    if instruction.outputs["dst"].free_elements != 8:
        _fail(
            instruction,
            f"dst has {instruction.outputs['dst'].free_elements} elements per partition, not 8.",
        )


@_check("nc_find_index8", "nc_match_replace8")
def _find_index8(instruction: NkiInstruction, chip: Chip) -> None:
    vals = instruction.inputs["vals"]
    if vals.free_elements != 8:
        _fail(instruction, f"vals has {vals.free_elements} elements per partition, not 8.")
    role = "dst" if instruction.opcode == "nc_find_index8" else "dst_idx"
    index = instruction.outputs.get(role)
    if index is not None and index.dtype not in ("uint16", "uint32", "int32"):
        _fail(instruction, f"{role} is {index.dtype}; indices are uint16 or uint32.")


@_check("nc_n_gather")
def _nc_n_gather(instruction: NkiInstruction, chip: Chip) -> None:
    if instruction.inputs["indices"].dtype not in ("uint32", "int32"):
        _fail(instruction, f"indices are {instruction.inputs['indices'].dtype}, not uint32.")


@_check("local_gather")
def _local_gather(instruction: NkiInstruction, chip: Chip) -> None:
    src, index = instruction.inputs["src_buffer"], instruction.inputs["index"]
    if src.shape[0] != index.shape[0] or src.shape[0] % 16:
        _fail(
            instruction,
            f"src_buffer has {src.shape[0]} and index {index.shape[0]} partitions; both need the "
            "same multiple of 16.",
        )
    if instruction.attributes["num_elem_per_idx"] not in (1, 2, 4, 8, 16, 32):
        _fail(
            instruction,
            f"num_elem_per_idx={instruction.attributes['num_elem_per_idx']}; use 1, 2, 4, 8, 16 "
            "or 32.",
        )
    if index.dtype != "uint16":
        _fail(instruction, f"index is {index.dtype}; it must be uint16.")


@_check("nc_stream_shuffle")
def _nc_stream_shuffle(instruction: NkiInstruction, chip: Chip) -> None:
    mask = instruction.attributes["shuffle_mask"]
    if len(mask) != 32:
        _fail(instruction, f"shuffle_mask has {len(mask)} entries, not 32.")
    for entry in mask:
        if not (0 <= entry < 32 or entry == 255):
            _fail(
                instruction,
                f"shuffle_mask contains {entry}; entries are partitions 0..31 of the quadrant, or "
                "255 to leave a row as it is.",
            )


@_check("quantize_mx")
def _quantize_mx(instruction: NkiInstruction, chip: Chip) -> None:
    src, dst = instruction.inputs["src"], instruction.outputs["dst"]
    if src.dtype not in ("bfloat16", "float16"):
        _fail(instruction, f"src is {src.dtype}; bfloat16 and float16 can be quantised.")
    if src.shape[0] % 32 or src.free_elements % 4:
        _fail(
            instruction,
            f"src is {src.shape[0]} x {src.free_elements}; partitions come in 32s and free "
            "elements in 4s.",
        )
    if dst.dtype not in ("float8_e5m2_x4", "float8_e4m3fn_x4"):
        _fail(instruction, f"dst is {dst.dtype}; use float8_e5m2_x4 or float8_e4m3fn_x4.")
    if dst.free_elements * 4 != src.free_elements:
        _fail(
            instruction,
            f"dst has {dst.free_elements} elements per partition; src has {src.free_elements}, so "
            f"it needs {src.free_elements // 4}.",
        )


@_check("memset")
def _memset(instruction: NkiInstruction, chip: Chip) -> None:
    dst, value = instruction.outputs["dst"], instruction.inputs["value"]
    kind = dtypes.row(dst.dtype).kind
    if kind == "packed" and value != 0:
        _fail(instruction, f"{dst.dtype} can only be cleared to 0, not set to {value}.")
    if kind in ("int", "uint", "bool") and float(value) != int(value):
        _fail(instruction, f"value {value} is not a whole number, and dst is {dst.dtype}.")


@_check("rng")
def _rng(instruction: NkiInstruction, chip: Chip) -> None:
    dst = instruction.outputs["dst"]
    if not dtypes.is_integer(dst.dtype):
        _fail(instruction, f"dst is {dst.dtype}; random bits need an integer type.")
    if instruction.engine is Engine.gpsimd and chip.generation < 3:
        _fail(instruction, "random bits on GpSimd need trn2 or later.")


@_check("tensor_partition_reduce")
def _tensor_partition_reduce(instruction: NkiInstruction, chip: Chip) -> None:
    op = instruction.attributes["op"]
    if op not in ("add", "average", "maximum", "bitwise_or", "bitwise_and"):
        _fail(instruction, f"op={op}; use add, average, maximum, bitwise_or or bitwise_and.")
    dst, data = instruction.outputs["dst"], instruction.inputs["data"]
    if dst.shape[0] != 1 or dst.free_elements != data.free_elements:
        _fail(
            instruction,
            f"dst is {dst.shape}; reducing the partitions of {data!r} gives (1, "
            f"{data.free_elements}).",
        )


@_check("tensor_scalar_cumulative")
def _tensor_scalar_cumulative(instruction: NkiInstruction, chip: Chip) -> None:
    if instruction.attributes["op1"] not in (
        "add", "subtract", "multiply", "maximum", "minimum"
    ):  # fmt: skip
        _fail(instruction, f"op1={instruction.attributes['op1']} cannot run cumulatively.")
    if instruction.inputs["src"].dtype in ("int32", "uint32"):
        _fail(instruction, f"src is {instruction.inputs['src'].dtype}; 32-bit integers do not work.")

"""Instructions as the words that the C++ core reads (csrc/stream.h has the same order).

An instruction that the core does not know is left to the NumPy semantics.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from nki import dtypes
from nki.program import layout
from nki.program.enums import Engine, matmul_perf_mode, oob_mode, reduce_cmd
from nki.program.ir import NkiInstruction
from nki.program.operators import OPERATORS
from nki.program.registers import NkiScalar
from nki.program.tensor import NkiTensor

OPCODES = {
    "copy": 0, "convert": 1, "fill": 2, "tensor_tensor": 3, "tensor_scalar": 4,
    "scalar_tensor_tensor": 5, "tensor_scalar_reduce": 6, "activation": 7, "reduce": 8,
    "matmul": 9, "transpose": 10, "affine_select": 11, "select": 12, "scan": 13,
    "range_select": 14,
}  # fmt: skip
TYPES = {
    "float32": 0, "bfloat16": 1, "float16": 2, "float8_e4m3": 3, "float8_e5m2": 4, "int32": 5,
    "uint32": 6, "uint8": 7, "bool": 7, "int8": 8, "int16": 9, "uint16": 10, "tfloat32": 11,
    "float8_e4m3fn": 12,
}  # fmt: skip
ALU = {
    "add": 0, "subtract": 1, "multiply": 2, "maximum": 3, "minimum": 4, "divide": 5, "equal": 6,
    "not_equal": 7, "greater": 8, "greater_equal": 9, "less": 10, "less_equal": 11,
    "logical_and": 12, "logical_or": 13, "abs": 14, "square": 15, "relu": 16, "rsqrt": 17,
    "reciprocal": 18, "bypass": 19, "power": 20,
}  # fmt: skip
FUNCTIONS = {
    "copy": 0, "square": 1, "sigmoid": 2, "relu": 3, "silu": 4, "tanh": 5, "exp": 6, "sqrt": 7,
    "rsqrt": 8, "reciprocal": 9, "abs": 10, "gelu_apprx_sigmoid": 11, "gelu_apprx_tanh": 12,
    "log": 13, "sign": 14,
}  # fmt: skip
REDUCTIONS = ("add", "multiply", "maximum", "minimum")

_DIMS = 5
_ABSENT = [-1, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0]

Words = list[int]
Strides = tuple[int, ...]


class NotEncodable(Exception):  # noqa: N818
    """The core does not have this; NumPy does it."""


def _bits(value: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", float(value)))[0])


def _type(tensor: NkiTensor) -> int:
    code = TYPES.get(tensor.dtype)
    if code is None:
        raise NotEncodable
    return code


def _record(
    opcode: str,
    index: int,
    dims: Sequence[int],
    attributes: Sequence[int],
    operands: Sequence[Words],
    numbers: Sequence[float] = (),
) -> Words:
    words = [OPCODES[opcode], 0, index, *dims]
    words += [int(value) for value in attributes] + [0] * (8 - len(attributes))
    words += [_bits(value) for value in numbers] + [0] * (4 - len(numbers))
    for operand in operands:
        words += operand
    words[1] = len(words)
    return words


def _operand(tensor: NkiTensor, strides: Strides, *, type_code: int | None = None) -> Words:
    """A tensor operand; `strides` are in elements, one for each record dimension."""
    if tensor.column_index is not None:
        raise NotEncodable
    size = tensor.itemsize
    register, step, limit = -1, 0, 0
    dynamic = tensor.dynamic
    if dynamic is not None:
        if not isinstance(dynamic.index, NkiScalar):
            raise NotEncodable
        register, step = dynamic.index.index, dynamic.stride * size
        reach = layout.span(tensor.shape, tensor.strides)
        limit = tensor.storage.num_bytes - (reach + 1) * size
    code = _type(tensor) if type_code is None else type_code
    return [
        tensor.storage.index, code, tensor.offset * size,
        *(step_ * size for step_ in strides), register, step, limit,
    ]  # fmt: skip


def _column(value: Any) -> Words:
    """A number, a [P, 1] column, or nothing."""
    if value is None:
        return _ABSENT
    if isinstance(value, NkiTensor):
        return _operand(value, (value.strides[0] if value.shape[0] > 1 else 0, 0, 0, 0, 0))
    if isinstance(value, NkiScalar):
        raise NotEncodable
    return [-2, 0, _bits(value), 0, 0, 0, 0, 0, -1, 0, 0]


def _restrided(shape: Sequence[int], strides: Strides, target: Sequence[int]) -> Strides:
    if tuple(shape) == tuple(target):
        return strides
    found = layout.restride(shape, strides, target, keep_first=False)
    if found is None:
        raise NotEncodable
    return found


def common(
    views: Sequence[tuple[Sequence[int], Strides]], *, keep_first: bool = True
) -> tuple[list[int], list[Strides]]:
    """One shape of five dimensions for all views, and each view's strides in it."""
    target: Sequence[int] | None = None
    aligned: list[Strides] = []
    for candidate, _ in views:
        try:
            aligned = [_restrided(shape, strides, candidate) for shape, strides in views]
        except NotEncodable:
            continue
        target = candidate
        break
    if target is None:
        raise NotEncodable
    first = 1 if keep_first else 0
    sizes = list(target[:first])
    steps = [list(strides[:first]) for strides in aligned]
    for dim in range(first, len(target)):
        size = target[dim]
        if size == 1:
            continue
        here = [strides[dim] for strides in aligned]
        if len(sizes) > first and all(
            step[-1] == size * now for step, now in zip(steps, here, strict=True)
        ):
            sizes[-1] *= size
            for step, now in zip(steps, here, strict=True):
                step[-1] = now
        else:
            sizes.append(size)
            for step, now in zip(steps, here, strict=True):
                step.append(now)
    missing = _DIMS - len(sizes)
    if missing < 0:
        raise NotEncodable
    at = first if len(sizes) > first or not sizes else len(sizes)
    sizes[at:at] = [1] * missing
    for step in steps:
        step[at:at] = [0] * missing
    return sizes, [tuple(step) for step in steps]


def _views(*tensors: NkiTensor) -> list[tuple[Sequence[int], Strides]]:
    return [(tensor.shape, tensor.strides) for tensor in tensors]


def _move(index: int, dst: NkiTensor, src: NkiTensor, src_strides: Strides | None,
          src_shape: Sequence[int] | None, *, raw: bool) -> Words:  # fmt: skip
    views = [
        (dst.shape, dst.strides),
        (src.shape if src_shape is None else src_shape,
         src.strides if src_strides is None else src_strides),
    ]  # fmt: skip
    dims, steps = common(views, keep_first=False)
    if raw:
        operands = [_operand(dst, steps[0], type_code=7), _operand(src, steps[1], type_code=7)]
        return _record("copy", index, dims, [dst.itemsize], operands)
    return _record("convert", index, dims, [], [_operand(dst, steps[0]), _operand(src, steps[1])])


def _static_dma(instruction: NkiInstruction, *tensors: NkiTensor) -> None:
    for tensor in tensors:
        if tensor.dynamic is not None and (
            tensor.dynamic.per_partition or instruction.attributes["oob_mode"] is not oob_mode.error
        ):
            raise NotEncodable


def _dma_copy(i: NkiInstruction) -> Words:
    dst, src = i.outputs["dst"], i.inputs["src"]
    _static_dma(i, dst, src)
    packed = dtypes.row(src.dtype).kind == "packed" or dtypes.row(dst.dtype).kind == "packed"
    if packed and dst.itemsize != src.itemsize:
        raise NotEncodable
    return _move(i.index, dst, src, None, None, raw=packed or dst.dtype == src.dtype)


def _dma_transpose(i: NkiInstruction) -> Words:
    dst, src = i.outputs["dst"], i.inputs["src"]
    _static_dma(i, dst, src)
    axes = i.attributes["axes"]
    shape = tuple(src.shape[axis] for axis in axes)
    strides = tuple(src.strides[axis] for axis in axes)
    return _move(i.index, dst, src, strides, shape, raw=True)


def _tensor_copy(i: NkiInstruction) -> Words:
    dst, src = i.outputs["dst"], i.inputs["src"]
    raw = dst.dtype == src.dtype and i.engine is not Engine.scalar
    return _move(i.index, dst, src, None, None, raw=raw)


def _memset(i: NkiInstruction) -> Words:
    dst, value = i.outputs["dst"], i.inputs["value"]
    if isinstance(value, NkiScalar) or (not dtypes.is_float(dst.dtype) and abs(value) > 1 << 24):
        raise NotEncodable
    dims, steps = common(_views(dst))
    return _record("fill", i.index, dims, [], [_operand(dst, steps[0])], [value])


def _alu(name: str | None) -> int:
    if name is None:
        return -1
    code = ALU.get(name)
    if code is None:
        raise NotEncodable
    return code


def _tensor_tensor(i: NkiInstruction) -> Words:
    dst, first, second = i.outputs["dst"], i.inputs["data1"], i.inputs["data2"]
    exact = i.engine is Engine.gpsimd and all(
        tensor.dtype in ("int32", "uint32") for tensor in (dst, first, second)
    )
    if exact or OPERATORS[i.attributes["op"]].is_bitvec:
        raise NotEncodable
    dims, steps = common(_views(dst, first, second))
    operands = [_operand(t, s) for t, s in zip((dst, first, second), steps, strict=True)]
    return _record("tensor_tensor", i.index, dims, [_alu(i.attributes["op"])], operands)


def _tensor_scalar(i: NkiInstruction) -> Words:
    a, dst, data = i.attributes, i.outputs["dst"], i.inputs["data"]
    dims, steps = common(_views(dst, data))
    first, second = i.inputs.get("operand0"), i.inputs.get("operand1")
    attributes = [
        _alu(a["op0"]), _alu(a["op1"]), a["reverse0"] and first is not None,
        a["reverse1"] and second is not None, -1, 0, 0, 0,
    ]  # fmt: skip
    operands = [_operand(dst, steps[0]), _operand(data, steps[1]), _column(first), _column(second)]
    return _record("tensor_scalar", i.index, dims, attributes, operands)


def _tensor_scalar_reduce(i: NkiInstruction) -> Words:
    a, dst, data = i.attributes, i.outputs["dst"], i.inputs["data"]
    if a["reduce_op"] not in REDUCTIONS:
        raise NotEncodable
    dims, steps = common(_views(dst, data))
    attributes = [
        _alu(a["op0"]), -1, a["reverse0"], 0, ALU[a["reduce_op"]], a["reduce_cmd"].value,
        data.partition_start, a["reduce_res_negate"],
    ]  # fmt: skip
    init = i.inputs.get("reduce_init")
    operands = [
        _operand(dst, steps[0]), _operand(data, steps[1]), _column(i.inputs["operand0"]), _ABSENT,
        _column(i.outputs.get("reduce_res")), _column(0.0 if init is None else init),
    ]  # fmt: skip
    return _record("tensor_scalar_reduce", i.index, dims, attributes, operands)


def _scalar_tensor_tensor(i: NkiInstruction) -> Words:
    a, dst, data, tile = i.attributes, i.outputs["dst"], i.inputs["data"], i.inputs["operand1"]
    dims, steps = common(_views(dst, data, tile))
    operands = [
        _operand(dst, steps[0]), _operand(data, steps[1]), _column(i.inputs["operand0"]),
        _operand(tile, steps[2]),
    ]  # fmt: skip
    attributes = [_alu(a["op0"]), _alu(a["op1"]), a["reverse0"], a["reverse1"]]
    return _record("scalar_tensor_tensor", i.index, dims, attributes, operands)


def _activation(i: NkiInstruction) -> Words:
    a, dst, data = i.attributes, i.outputs["dst"], i.inputs["data"]
    function = FUNCTIONS.get(a["op"])
    result = i.outputs.get("reduce_res")
    command = a["reduce_cmd"]
    if function is None or a["reduce_op"] not in (None, "add"):
        raise NotEncodable
    if command is reduce_cmd.load_reduce:
        raise NotEncodable
    if a["reduce_op"] is not None and result is not None and command is reduce_cmd.idle:
        command = reduce_cmd.reset_reduce
    reducing = a["reduce_op"] is not None or result is not None or command is not reduce_cmd.idle
    dims, steps = common(_views(dst, data))
    operands = [
        _operand(dst, steps[0]), _operand(data, steps[1]), _column(i.inputs["scale"]),
        _column(i.inputs.get("bias")), _column(result),
    ]  # fmt: skip
    attributes = [function, reducing, command.value, data.partition_start]
    return _record("activation", i.index, dims, attributes, operands)


def _reciprocal(i: NkiInstruction) -> Words:
    dst, data = i.outputs["dst"], i.inputs["data"]
    dims, steps = common(_views(dst, data))
    operands = [_operand(dst, steps[0]), _operand(data, steps[1]), _column(1.0), _ABSENT, _ABSENT]
    return _record("activation", i.index, dims, [FUNCTIONS["reciprocal"], 0, 0, 0], operands)


def _reduce(i: NkiInstruction) -> Words:
    a, dst, data = i.attributes, i.outputs["dst"], i.inputs["data"]
    if a["op"] not in REDUCTIONS:
        raise NotEncodable
    kept = data.ndim - len(a["axes"])
    outer = (data.shape[0], *data.shape[1:kept])
    target = _restrided(dst.shape, dst.strides, outer)
    sizes, steps = common([(outer, data.strides[:kept]), (outer, target)])
    inner, inner_steps = common([((1, *data.shape[kept:]), (0, *data.strides[kept:]))])
    if sizes[1] * sizes[2] != 1 or inner[1] * inner[2] != 1:
        raise NotEncodable
    dims = [sizes[0], sizes[3], sizes[4], inner[3], inner[4]]
    source = (*_pick(steps[0], 0, 3, 4), *_pick(inner_steps[0], 3, 4))
    result = (*_pick(steps[1], 0, 3, 4), 0, 0)
    operands = [_operand(dst, result), _operand(data, source)]
    return _record("reduce", i.index, dims, [ALU[a["op"]], a["negate"]], operands)


def _pick(values: Strides, *places: int) -> Strides:
    return tuple(values[place] for place in places)


def _matrix(tensor: NkiTensor) -> tuple[int, int, Strides]:
    """Outer and inner free sizes of a matmul operand, and strides (partition, .., outer, inner)."""
    sizes, steps = common(_views(tensor))
    if sizes[1] * sizes[2] != 1:
        raise NotEncodable
    return sizes[3], sizes[4], steps[0]


def _matmul(i: NkiInstruction) -> Words:
    a, dst = i.attributes, i.outputs["dst"]
    stationary, moving = i.inputs["stationary"], i.inputs["moving"]
    if a["perf_mode"] is not matmul_perf_mode.none or not isinstance(a["accumulate"], bool):
        raise NotEncodable
    left_outer, left_inner, left = _matrix(stationary)
    right_outer, right_inner, right = _matrix(moving)
    dims, steps = common(_views(dst))
    attributes = [
        stationary.shape[0], a["accumulate"], stationary.free_elements, moving.free_elements,
        left_outer, left_inner, right_outer, right_inner,
    ]  # fmt: skip
    operands = [_operand(dst, steps[0]), _operand(stationary, left), _operand(moving, right)]
    return _record("matmul", i.index, dims, attributes, operands)


def _transpose(i: NkiInstruction) -> Words:
    dst, data = i.outputs["dst"], i.inputs["data"]
    rows, source = common(_views(data))
    columns, target = common(_views(dst))
    if rows[1] * rows[2] * rows[3] != 1 or columns[1] * columns[2] * columns[3] != 1:
        raise NotEncodable
    operands = [
        _operand(dst, target[0], type_code=7), _operand(data, source[0], type_code=7)
    ]  # fmt: skip
    return _record("transpose", i.index, rows, [data.itemsize], operands)


def _affine_select(i: NkiInstruction) -> Words:
    a, dst, data = i.attributes, i.outputs["dst"], i.inputs["on_true_tile"]
    offset = i.inputs["offset"]
    if isinstance(offset, NkiScalar):
        raise NotEncodable
    pattern = (
        (dst.shape[0], *(count for _, count in a["pattern"])),
        (a["channel_multiplier"], *(step for step, _ in a["pattern"])),
    )
    dims, steps = common([*_views(dst, data), pattern])
    attributes = [_alu(a["cmp_op"]), offset, *steps[2]]
    operands = [_operand(dst, steps[0]), _operand(data, steps[1])]
    return _record("affine_select", i.index, dims, attributes, operands, [a["on_false_value"]])


def _exact_in_fp32(tensor: NkiTensor) -> None:
    if dtypes.is_integer(tensor.dtype) and tensor.itemsize == 4:
        raise NotEncodable


def _predicated(i: NkiInstruction) -> Words:
    dst, src, predicate = i.outputs["dst"], i.inputs["src"], i.inputs["predicate"]
    _exact_in_fp32(dst)
    tensors = [dst, predicate] + ([src] if isinstance(src, NkiTensor) else [])
    dims, steps = common(_views(*tensors))
    source = _operand(src, steps[2]) if isinstance(src, NkiTensor) else _column(src)
    operands = [
        _operand(dst, steps[0]), source, _operand(predicate, steps[1]), _operand(dst, steps[0])
    ]  # fmt: skip
    return _record("select", i.index, dims, [i.attributes["reverse_pred"]], operands)


def _range_select(i: NkiInstruction) -> Words:
    a, dst, data = i.attributes, i.outputs["dst"], i.inputs["on_true_tile"]
    if a["reduce_op"] != "maximum" or a["reduce_cmd"] is reduce_cmd.load_reduce:
        raise NotEncodable
    dims, steps = common(_views(dst, data))
    attributes = [
        _alu(a["comp_op0"]), _alu(a["comp_op1"]), a["range_start"], a["reduce_cmd"].value,
        data.partition_start,
    ]  # fmt: skip
    operands = [
        _operand(dst, steps[0]), _operand(data, steps[1]), _column(i.inputs["bound0"]),
        _column(i.inputs["bound1"]), _column(i.outputs.get("reduce_res")),
    ]  # fmt: skip
    return _record("range_select", i.index, dims, attributes, operands, [a["on_false_value"]])


def _scan(i: NkiInstruction) -> Words:
    a, dst = i.attributes, i.outputs["dst"]
    first, second = i.inputs["data0"], i.inputs["data1"]
    dims, steps = common(_views(dst, first, second))
    operands = [_operand(t, s) for t, s in zip((dst, first, second), steps, strict=True)]
    operands.append(_column(i.inputs["initial"]))
    attributes = [_alu(a["op0"]), _alu(a["op1"]), a["reverse0"], a["reverse1"]]
    return _record("scan", i.index, dims, attributes, operands)


_ENCODERS: dict[str, Callable[[NkiInstruction], Words]] = {
    "dma_copy": _dma_copy,
    "dma_transpose": _dma_transpose,
    "tensor_copy": _tensor_copy,
    "memset": _memset,
    "tensor_tensor": _tensor_tensor,
    "tensor_scalar": _tensor_scalar,
    "tensor_scalar_reduce": _tensor_scalar_reduce,
    "scalar_tensor_tensor": _scalar_tensor_tensor,
    "activation": _activation,
    "reciprocal": _reciprocal,
    "tensor_reduce": _reduce,
    "nc_matmul": _matmul,
    "nc_transpose": _transpose,
    "affine_select": _affine_select,
    "tensor_copy_predicated": _predicated,
    "range_select": _range_select,
    "tensor_tensor_scan": _scan,
}


def encode(instruction: NkiInstruction) -> Words | None:
    """The instruction's record, None if the core cannot run it."""
    encoder = _ENCODERS.get(instruction.opcode)
    if encoder is None:
        return None
    try:
        return encoder(instruction)
    except NotEncodable:
        return None

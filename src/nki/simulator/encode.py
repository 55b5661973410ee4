"""Instructions as the words that the C++ core reads.

An instruction that the core does not know is left to the NumPy semantics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nki import dtypes
from nki.program.enums import Engine, matmul_perf_mode, oob_mode, reduce_cmd
from nki.program.ir import NkiInstruction
from nki.program.operators import OPERATORS
from nki.program.registers import NkiScalar
from nki.program.tensor import NkiTensor
from nki.simulator.records import (
    ABSENT,
    ALU,
    FUNCTIONS,
    REDUCTIONS,
    NotEncodable,
    Strides,
    Words,
    column,
    common,
    packed,
    record,
    restrided,
    views_of,
)


def _move(index: int, dst: NkiTensor, src: NkiTensor, src_strides: Strides | None,
          src_shape: Sequence[int] | None, *, raw: bool) -> Words:  # fmt: skip
    views = [
        (dst.shape, dst.strides),
        (src.shape if src_shape is None else src_shape,
         src.strides if src_strides is None else src_strides),
    ]  # fmt: skip
    dims, steps = common(views, keep_first=False)
    if raw:
        operands = [
            packed(dst, steps[0], type_code=7),
            packed(src, steps[1], type_code=7),
        ]
        return record("copy", index, dims, [dst.itemsize], operands)
    return record("convert", index, dims, [], [packed(dst, steps[0]), packed(src, steps[1])])


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
    dims, steps = common(views_of(dst))
    return record("fill", i.index, dims, [], [packed(dst, steps[0])], [value])


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
    dims, steps = common(views_of(dst, first, second))
    operands = [packed(t, s) for t, s in zip((dst, first, second), steps, strict=True)]
    return record("tensor_tensor", i.index, dims, [_alu(i.attributes["op"])], operands)


def _tensor_scalar(i: NkiInstruction) -> Words:
    a, dst, data = i.attributes, i.outputs["dst"], i.inputs["data"]
    dims, steps = common(views_of(dst, data))
    first, second = i.inputs.get("operand0"), i.inputs.get("operand1")
    attributes = [
        _alu(a["op0"]), _alu(a["op1"]), a["reverse0"] and first is not None,
        a["reverse1"] and second is not None, -1, 0, 0, 0,
    ]  # fmt: skip
    operands = [
        packed(dst, steps[0]),
        packed(data, steps[1]),
        column(first),
        column(second),
    ]
    return record("tensor_scalar", i.index, dims, attributes, operands)


def _tensor_scalar_reduce(i: NkiInstruction) -> Words:
    a, dst, data = i.attributes, i.outputs["dst"], i.inputs["data"]
    if a["reduce_op"] not in REDUCTIONS:
        raise NotEncodable
    dims, steps = common(views_of(dst, data))
    attributes = [
        _alu(a["op0"]), -1, a["reverse0"], 0, ALU[a["reduce_op"]], a["reduce_cmd"].value,
        data.partition_start, a["reduce_res_negate"],
    ]  # fmt: skip
    init = i.inputs.get("reduce_init")
    operands = [
        packed(dst, steps[0]), packed(data, steps[1]), column(i.inputs["operand0"]), ABSENT,
        column(i.outputs.get("reduce_res")), column(0.0 if init is None else init),
    ]  # fmt: skip
    return record("tensor_scalar_reduce", i.index, dims, attributes, operands)


def _scalar_tensor_tensor(i: NkiInstruction) -> Words:
    a, dst, data, tile = i.attributes, i.outputs["dst"], i.inputs["data"], i.inputs["operand1"]
    dims, steps = common(views_of(dst, data, tile))
    operands = [
        packed(dst, steps[0]), packed(data, steps[1]), column(i.inputs["operand0"]),
        packed(tile, steps[2]),
    ]  # fmt: skip
    attributes = [_alu(a["op0"]), _alu(a["op1"]), a["reverse0"], a["reverse1"]]
    return record("scalar_tensor_tensor", i.index, dims, attributes, operands)


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
    dims, steps = common(views_of(dst, data))
    operands = [
        packed(dst, steps[0]), packed(data, steps[1]), column(i.inputs["scale"]),
        column(i.inputs.get("bias")), column(result),
    ]  # fmt: skip
    attributes = [function, reducing, command.value, data.partition_start]
    return record("activation", i.index, dims, attributes, operands)


def _reciprocal(i: NkiInstruction) -> Words:
    dst, data = i.outputs["dst"], i.inputs["data"]
    dims, steps = common(views_of(dst, data))
    operands = [
        packed(dst, steps[0]),
        packed(data, steps[1]),
        column(1.0),
        ABSENT,
        ABSENT,
    ]
    return record("activation", i.index, dims, [FUNCTIONS["reciprocal"], 0, 0, 0], operands)


def _reduce(i: NkiInstruction) -> Words:
    a, dst, data = i.attributes, i.outputs["dst"], i.inputs["data"]
    if a["op"] not in REDUCTIONS:
        raise NotEncodable
    kept = data.ndim - len(a["axes"])
    outer = (data.shape[0], *data.shape[1:kept])
    target = restrided(dst.shape, dst.strides, outer)
    sizes, steps = common([(outer, data.strides[:kept]), (outer, target)])
    inner, inner_steps = common([((1, *data.shape[kept:]), (0, *data.strides[kept:]))])
    if sizes[1] * sizes[2] != 1 or inner[1] * inner[2] != 1:
        raise NotEncodable
    dims = [sizes[0], sizes[3], sizes[4], inner[3], inner[4]]
    source = (*_pick(steps[0], 0, 3, 4), *_pick(inner_steps[0], 3, 4))
    result = (*_pick(steps[1], 0, 3, 4), 0, 0)
    operands = [packed(dst, result), packed(data, source)]
    return record("reduce", i.index, dims, [ALU[a["op"]], a["negate"]], operands)


def _pick(values: Strides, *places: int) -> Strides:
    return tuple(values[place] for place in places)


def _matrix(tensor: NkiTensor) -> tuple[int, int, Strides]:
    """Outer and inner free sizes of a matmul operand, and strides (partition, .., outer, inner)."""
    sizes, steps = common(views_of(tensor))
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
    dims, steps = common(views_of(dst))
    attributes = [
        stationary.shape[0], a["accumulate"], stationary.free_elements, moving.free_elements,
        left_outer, left_inner, right_outer, right_inner,
    ]  # fmt: skip
    operands = [
        packed(dst, steps[0]),
        packed(stationary, left),
        packed(moving, right),
    ]
    return record("matmul", i.index, dims, attributes, operands)


def _transpose(i: NkiInstruction) -> Words:
    dst, data = i.outputs["dst"], i.inputs["data"]
    rows, source = common(views_of(data))
    columns, target = common(views_of(dst))
    if rows[1] * rows[2] * rows[3] != 1 or columns[1] * columns[2] * columns[3] != 1:
        raise NotEncodable
    operands = [
        packed(dst, target[0], type_code=7), packed(data, source[0], type_code=7)
    ]  # fmt: skip
    return record("transpose", i.index, rows, [data.itemsize], operands)


def _affine_select(i: NkiInstruction) -> Words:
    a, dst, data = i.attributes, i.outputs["dst"], i.inputs["on_true_tile"]
    offset = i.inputs["offset"]
    if isinstance(offset, NkiScalar):
        raise NotEncodable
    pattern = (
        (dst.shape[0], *(count for _, count in a["pattern"])),
        (a["channel_multiplier"], *(step for step, _ in a["pattern"])),
    )
    dims, steps = common([*views_of(dst, data), pattern])
    attributes = [_alu(a["cmp_op"]), offset, *steps[2]]
    operands = [packed(dst, steps[0]), packed(data, steps[1])]
    return record("affine_select", i.index, dims, attributes, operands, [a["on_false_value"]])


def _exact_in_fp32(tensor: NkiTensor) -> None:
    if dtypes.is_integer(tensor.dtype) and tensor.itemsize == 4:
        raise NotEncodable


def _predicated(i: NkiInstruction) -> Words:
    dst, src, predicate = i.outputs["dst"], i.inputs["src"], i.inputs["predicate"]
    _exact_in_fp32(dst)
    tensors = [dst, predicate] + ([src] if isinstance(src, NkiTensor) else [])
    dims, steps = common(views_of(*tensors))
    source = packed(src, steps[2]) if isinstance(src, NkiTensor) else column(src)
    operands = [
        packed(dst, steps[0]), source, packed(predicate, steps[1]), packed(dst, steps[0])
    ]  # fmt: skip
    return record("select", i.index, dims, [i.attributes["reverse_pred"]], operands)


def _range_select(i: NkiInstruction) -> Words:
    a, dst, data = i.attributes, i.outputs["dst"], i.inputs["on_true_tile"]
    if a["reduce_op"] != "maximum" or a["reduce_cmd"] is reduce_cmd.load_reduce:
        raise NotEncodable
    dims, steps = common(views_of(dst, data))
    attributes = [
        _alu(a["comp_op0"]), _alu(a["comp_op1"]), a["range_start"], a["reduce_cmd"].value,
        data.partition_start,
    ]  # fmt: skip
    operands = [
        packed(dst, steps[0]), packed(data, steps[1]), column(i.inputs["bound0"]),
        column(i.inputs["bound1"]), column(i.outputs.get("reduce_res")),
    ]  # fmt: skip
    return record("range_select", i.index, dims, attributes, operands, [a["on_false_value"]])


def _scan(i: NkiInstruction) -> Words:
    a, dst = i.attributes, i.outputs["dst"]
    first, second = i.inputs["data0"], i.inputs["data1"]
    dims, steps = common(views_of(dst, first, second))
    operands = [packed(t, s) for t, s in zip((dst, first, second), steps, strict=True)]
    operands.append(column(i.inputs["initial"]))
    attributes = [_alu(a["op0"]), _alu(a["op1"]), a["reverse0"], a["reverse1"]]
    return record("scan", i.index, dims, attributes, operands)


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

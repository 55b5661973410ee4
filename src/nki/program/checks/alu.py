"""Legality of arithmetic, activations and reductions."""

from __future__ import annotations

from neuron_chip import Chip
from nki import dtypes
from nki.errors import UnsupportedError
from nki.program.checks.table import check, fail, tensor_operand
from nki.program.enums import Engine
from nki.program.ir import NkiInstruction
from nki.program.operators import OPERATORS
from nki.program.tensor import NkiTensor


def _alu_dtypes(instruction: NkiInstruction, roles: tuple[str, ...], ops: list[str]) -> None:
    rows = [OPERATORS[op] for op in ops if op is not None]
    bitvec = [row.is_bitvec for row in rows if row.name != "bypass"]
    if any(bitvec) and not all(bitvec):
        fail(
            instruction,
            f"{' and '.join(row.name for row in rows)} mix a bitwise with an arithmetic "
            "operator; use two instructions.",
        )
    if not any(bitvec):
        return
    for role in roles:
        value = instruction.outputs.get(role) or instruction.inputs.get(role)
        if isinstance(value, NkiTensor) and not dtypes.is_integer(value.dtype):
            fail(
                instruction,
                f"{rows[0].name} works on integers; {role} is {value.dtype}. Use "
                ".view(nl.int32) to operate on the bits.",
            )
    if instruction.engine is not Engine.vector:
        fail(instruction, f"{rows[0].name} runs only on the vector engine.")


@check("tensor_tensor")
def _tensor_tensor(instruction: NkiInstruction, chip: Chip) -> None:
    op = instruction.attributes["op"]
    _alu_dtypes(instruction, ("dst", "data1", "data2"), [op])
    _check_generation(instruction, chip, op)
    if OPERATORS[op].is_unary:
        fail(instruction, f"op={op} takes one operand. Use nisa.tensor_scalar or activation.")
    if op == "power" and instruction.engine is not Engine.gpsimd:
        fail(instruction, "nl.power runs only on GpSimd: pass engine=nisa.engine.gpsimd.")


def _check_generation(instruction: NkiInstruction, chip: Chip, op: str | None) -> None:
    if op is not None and chip.generation < OPERATORS[op].min_generation:
        raise UnsupportedError(
            f"nisa.{instruction.opcode}: the operator {op} needs trn3, not {chip.name}."
        )


@check("tensor_scalar")
def _tensor_scalar(instruction: NkiInstruction, chip: Chip) -> None:
    ops = [instruction.attributes["op0"], instruction.attributes["op1"]]
    _alu_dtypes(instruction, ("dst", "data"), [op for op in ops if op is not None])
    for op, role in zip(ops, ("operand0", "operand1"), strict=True):
        if op is None:
            continue
        _check_generation(instruction, chip, op)
        row = OPERATORS[op]
        column = tensor_operand(instruction, role)
        if column is not None and not row.is_bitvec and column.dtype not in (
            "float32", "tfloat32", "int32", "uint32"
        ):  # fmt: skip
            fail(
                instruction,
                f"{role} is {column.dtype}; a column operand of {op} must be float32. Cast it "
                "with nisa.tensor_copy.",
            )
        if not row.is_unary and op != "bypass" and instruction.inputs.get(role) is None:
            fail(instruction, f"{op} needs {role}.")
    if instruction.engine is Engine.scalar and (ops[0], ops[1]) not in (
        ("multiply", "add"), ("multiply", None), ("add", None), ("subtract", None)
    ):  # fmt: skip
        fail(
            instruction,
            f"the scalar engine does multiply+add, multiply or add here, not {ops[0]}+{ops[1]}. "
            "Use engine=nisa.engine.vector.",
        )
    if instruction.engine is Engine.gpsimd and ops[0] not in (
        "rsqrt", "add", "multiply", "subtract", "maximum", "minimum", "power", "abs",
        "equal", "not_equal", "greater", "greater_equal", "less", "less_equal",
    ):  # fmt: skip
        fail(instruction, f"GpSimd cannot do {ops[0]} here. Use the vector engine.")


@check("scalar_tensor_tensor", "tensor_scalar_reduce", "tensor_tensor_scan")
def _arithmetic_only(instruction: NkiInstruction, chip: Chip) -> None:
    for role in ("op0", "op1"):
        op = instruction.attributes.get(role)
        if op is None:
            continue
        _check_generation(instruction, chip, op)
        if OPERATORS[op].is_bitvec:
            fail(instruction, f"{role}={op} is bitwise; this instruction is arithmetic only.")
    if instruction.opcode == "tensor_scalar_reduce":
        op = instruction.attributes["reduce_op"]
        if op not in ("add", "multiply", "maximum", "minimum"):
            fail(
                instruction,
                f"reduce_op={op}; use nl.add, nl.multiply, nl.maximum or nl.minimum.",
            )


@check("tensor_reduce")
def _tensor_reduce(instruction: NkiInstruction, _chip: Chip) -> None:
    data, dst = instruction.inputs["data"], instruction.outputs["dst"]
    axes = instruction.attributes["axes"]
    if 0 in axes:
        fail(
            instruction,
            f"axis {axes} contains the partition axis of {data!r}. Use "
            "nisa.tensor_partition_reduce, or a matmul with ones.",
        )
    if axes != tuple(range(data.ndim - len(axes), data.ndim)):
        fail(
            instruction,
            f"axis {axes} of a {data.ndim}-D tile; only the last free dimensions can be reduced. "
            "Permute the view so that they come last.",
        )
    if dst.shape[0] != data.shape[0]:
        fail(instruction, f"dst has {dst.shape[0]} partitions and data {data.shape[0]}.")
    kept = 1
    for dim in range(1, data.ndim - len(axes)):
        kept *= data.shape[dim]
    if dst.free_elements != kept:
        fail(
            instruction,
            f"dst {dst!r} has {dst.free_elements} elements per partition; reducing axis {axes} of "
            f"{data!r} leaves {kept}.",
        )
    op = instruction.attributes["op"]
    if OPERATORS[op].is_bitvec and instruction.attributes["negate"]:
        fail(instruction, f"negate works with arithmetic operators, not {op}.")


@check("activation", "activate2")
def _activation(instruction: NkiInstruction, chip: Chip) -> None:
    bias = instruction.inputs.get("bias")
    if isinstance(bias, float | int) and bias != 0 and chip.generation < 3:
        fail(instruction, f"bias={bias}: {chip.name} takes the bias only as a [P, 1] column.")
    if isinstance(bias, NkiTensor) and bias.dtype == "tfloat32":
        fail(instruction, "bias is tfloat32; use any other float type.")
    scale = instruction.inputs.get("scale")
    if isinstance(scale, NkiTensor) and scale.dtype not in ("float32", "tfloat32"):
        fail(instruction, f"scale is {scale.dtype}; a column must be float32.")
    op = instruction.attributes.get("reduce_op")
    allowed = ("add",) if instruction.opcode == "activation" else (
        "add", "maximum", "minimum", "abs_max", "abs_min"
    )  # fmt: skip
    if op is not None and op not in allowed:
        fail(instruction, f"reduce_op={op}; use {' or '.join('nl.' + name for name in allowed)}.")


@check("range_select")
def _range_select(instruction: NkiInstruction, _chip: Chip) -> None:
    for role in ("comp_op0", "comp_op1"):
        if instruction.attributes[role] not in (
            "equal", "less", "less_equal", "greater", "greater_equal"
        ):  # fmt: skip
            fail(instruction, f"{role}={instruction.attributes[role]} is not a comparison here.")
    for role in ("bound0", "bound1"):
        bound = instruction.inputs[role]
        if not isinstance(bound, NkiTensor) or bound.dtype != "float32":
            fail(instruction, f"{role} is {bound!r}; it must be a float32 [P, 1] column.")
    if instruction.attributes["reduce_op"] != "maximum":
        fail(instruction, "reduce_op must be nl.maximum.")

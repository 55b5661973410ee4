"""A program as text: one line for each instruction, its operands as views, its source line."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from nki.program import layout
from nki.program.ir import Allocation, Block, Loop, NkiInstruction, Program
from nki.program.registers import NkiScalar
from nki.program.tensor import NkiTensor


def print_program(program: Program) -> str:
    """The whole program, the arguments first. Equal texts are equal programs but for constants."""
    cores = f"core {program.core} of {program.num_cores}"
    lines = [
        f"kernel {program.name} on {program.chip.name}, {cores}, "
        f"{program.num_instructions} instructions"
    ]
    for path, storage in program.arguments.items():
        lines.append(f"  argument {path}: {storage.dtype}{list(storage.shape)}")
    lines.extend(_block(program.body, "  "))
    lines.append(f"  return {operand(program.result)}")
    return "\n".join(lines)


def _block(block: Block, indent: str) -> Iterator[str]:
    for item in block.items:
        if isinstance(item, NkiInstruction):
            yield indent + instruction(item)
        elif isinstance(item, Allocation):
            storage = item.storage
            place = "" if storage.address is None else f" at {storage.address}"
            yield (
                f"{indent}%{storage.index} = {storage.dtype}{list(storage.shape)} in "
                f"{storage.buffer.value}{place}"
            )
        elif isinstance(item, Loop):
            bounds = ", ".join(operand(value) for value in (item.lower, item.upper, item.step))
            yield f"{indent}for {operand(item.counter)} in range({bounds}):"
            yield from _block(item.body, indent + "  ")
        else:
            yield f"{indent}while {operand(item.condition)} != 0:"
            yield from _block(item.body, indent + "  ")


def instruction(item: NkiInstruction) -> str:
    """One instruction: outputs, engine, operation, operands, and where it was written."""
    outputs = ", ".join(operand(tensor) for tensor in item.outputs.values())
    named = {**item.inputs, **item.attributes}
    operands = ", ".join(
        f"{name}={operand(value)}" for name, value in named.items() if value is not None
    )
    arrow = f"{outputs} <- " if outputs else ""
    where = f"{Path(item.source.path).name}:{item.source.line}"
    return f"{arrow}{item.engine.name}.{item.opcode}({operands})  # {where}"


def operand(value: Any) -> str:
    """A view as %storage[shape] with what is unusual about its layout, or a constant."""
    if isinstance(value, NkiTensor):
        return _view(value)
    if isinstance(value, NkiScalar):
        return f"r{value.index}"
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, list | tuple):
        inner = ", ".join(operand(item) for item in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name!r}: {operand(item)}" for name, item in value.items()) + "}"
    return repr(value)


def _view(tensor: NkiTensor) -> str:
    storage = tensor.storage
    text = f"%{storage.index}{list(tensor.shape)}"
    if tensor.dtype != storage.dtype:
        text += f":{tensor.dtype}"
    if tensor.offset:
        text += f"+{tensor.offset}"
    if tensor.strides != layout.row_major(tensor.shape):
        text += f" by {list(tensor.strides)}"
    if tensor.dynamic is not None:
        at = operand(tensor.dynamic.index)
        text += f" at {at}*{tensor.dynamic.stride}<{tensor.dynamic.limit}"
    if tensor.column_index is not None:
        text += f" columns {operand(tensor.column_index.index)}"
    return text

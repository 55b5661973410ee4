"""Legality of index, statistics, search and quantisation instructions."""

from __future__ import annotations

from neuron_chip import Chip
from nki import dtypes
from nki.program.checks.table import check, fail
from nki.program.enums import Engine
from nki.program.ir import NkiInstruction


@check("iota", "affine_select")
def _affine(instruction: NkiInstruction, _chip: Chip) -> None:
    pattern = instruction.attributes["pattern"]
    if not 1 <= len(pattern) <= 4:
        fail(instruction, f"pattern {pattern} has {len(pattern)} pairs; 1 to 4 are possible.")
    count = 1
    for _, number in pattern:
        count *= number
    dst = instruction.outputs["dst"]
    if count != dst.free_elements:
        fail(
            instruction,
            f"pattern {pattern} makes {count} values per partition; dst {dst!r} has "
            f"{dst.free_elements}.",
        )


@check("bn_aggr")
def _bn_aggr(instruction: NkiInstruction, _chip: Chip) -> None:
    data, dst = instruction.inputs["data"], instruction.outputs["dst"]
    if data.free_elements % 3:
        fail(instruction, f"data has {data.free_elements} elements per partition, not triples.")
    if dst.free_elements != 2:
        fail(instruction, f"dst has {dst.free_elements} elements per partition; it needs 2.")


@check("bn_stats")
def _bn_stats(instruction: NkiInstruction, _chip: Chip) -> None:
    if instruction.outputs["dst"].free_elements != 6:
        fail(
            instruction,
            f"dst has {instruction.outputs['dst'].free_elements} elements per partition; it "
            "needs 6 (count, mean and variance*count of even and odd elements).",
        )


@check("max8")
def _max8(instruction: NkiInstruction, _chip: Chip) -> None:
    if instruction.outputs["dst"].free_elements != 8:
        fail(
            instruction,
            f"dst has {instruction.outputs['dst'].free_elements} elements per partition, not 8.",
        )


@check("nc_find_index8", "nc_match_replace8")
def _find_index8(instruction: NkiInstruction, _chip: Chip) -> None:
    vals = instruction.inputs["vals"]
    if vals.free_elements != 8:
        fail(instruction, f"vals has {vals.free_elements} elements per partition, not 8.")
    role = "dst" if instruction.opcode == "nc_find_index8" else "dst_idx"
    index = instruction.outputs.get(role)
    if index is not None and index.dtype not in ("uint16", "uint32", "int32"):
        fail(instruction, f"{role} is {index.dtype}; indices are uint16 or uint32.")


@check("nc_n_gather")
def _nc_n_gather(instruction: NkiInstruction, _chip: Chip) -> None:
    if instruction.inputs["indices"].dtype not in ("uint32", "int32"):
        fail(instruction, f"indices are {instruction.inputs['indices'].dtype}, not uint32.")


@check("local_gather")
def _local_gather(instruction: NkiInstruction, _chip: Chip) -> None:
    src, index = instruction.inputs["src_buffer"], instruction.inputs["index"]
    if src.shape[0] != index.shape[0] or src.shape[0] % 16:
        fail(
            instruction,
            f"src_buffer has {src.shape[0]} and index {index.shape[0]} partitions; both need the "
            "same multiple of 16.",
        )
    if instruction.attributes["num_elem_per_idx"] not in (1, 2, 4, 8, 16, 32):
        fail(
            instruction,
            f"num_elem_per_idx={instruction.attributes['num_elem_per_idx']}; use 1, 2, 4, 8, 16 "
            "or 32.",
        )
    if index.dtype != "uint16":
        fail(instruction, f"index is {index.dtype}; it must be uint16.")


@check("nc_stream_shuffle")
def _nc_stream_shuffle(instruction: NkiInstruction, _chip: Chip) -> None:
    mask = instruction.attributes["shuffle_mask"]
    if len(mask) != 32:
        fail(instruction, f"shuffle_mask has {len(mask)} entries, not 32.")
    for entry in mask:
        if not (0 <= entry < 32 or entry == 255):
            fail(
                instruction,
                f"shuffle_mask contains {entry}; entries are partitions 0..31 of the quadrant, or "
                "255 to leave a row as it is.",
            )


@check("quantize_mx")
def _quantize_mx(instruction: NkiInstruction, _chip: Chip) -> None:
    src, dst = instruction.inputs["src"], instruction.outputs["dst"]
    if src.dtype not in ("bfloat16", "float16"):
        fail(instruction, f"src is {src.dtype}; bfloat16 and float16 can be quantised.")
    if src.shape[0] % 32 or src.free_elements % 4:
        fail(
            instruction,
            f"src is {src.shape[0]} x {src.free_elements}; partitions come in 32s and free "
            "elements in 4s.",
        )
    if dst.dtype not in ("float8_e5m2_x4", "float8_e4m3fn_x4"):
        fail(instruction, f"dst is {dst.dtype}; use float8_e5m2_x4 or float8_e4m3fn_x4.")
    if dst.free_elements * 4 != src.free_elements:
        fail(
            instruction,
            f"dst has {dst.free_elements} elements per partition; src has {src.free_elements}, so "
            f"it needs {src.free_elements // 4}.",
        )


@check("memset")
def _memset(instruction: NkiInstruction, _chip: Chip) -> None:
    dst, value = instruction.outputs["dst"], instruction.inputs["value"]
    kind = dtypes.row(dst.dtype).kind
    if kind == "packed" and value != 0:
        fail(instruction, f"{dst.dtype} can only be cleared to 0, not set to {value}.")
    if kind in ("int", "uint", "bool") and float(value) != int(value):
        fail(instruction, f"value {value} is not a whole number, and dst is {dst.dtype}.")


@check("rng")
def _rng(instruction: NkiInstruction, chip: Chip) -> None:
    dst = instruction.outputs["dst"]
    if not dtypes.is_integer(dst.dtype):
        fail(instruction, f"dst is {dst.dtype}; random bits need an integer type.")
    if instruction.engine is Engine.gpsimd and chip.generation < 3:
        fail(instruction, "random bits on GpSimd need trn2 or later.")


@check("tensor_partition_reduce")
def _tensor_partition_reduce(instruction: NkiInstruction, _chip: Chip) -> None:
    op = instruction.attributes["op"]
    if op not in ("add", "average", "maximum", "bitwise_or", "bitwise_and"):
        fail(instruction, f"op={op}; use add, average, maximum, bitwise_or or bitwise_and.")
    dst, data = instruction.outputs["dst"], instruction.inputs["data"]
    if dst.shape[0] != 1 or dst.free_elements != data.free_elements:
        fail(
            instruction,
            f"dst is {dst.shape}; reducing the partitions of {data!r} gives (1, "
            f"{data.free_elements}).",
        )


@check("tensor_scalar_cumulative")
def _tensor_scalar_cumulative(instruction: NkiInstruction, _chip: Chip) -> None:
    if instruction.attributes["op1"] not in (
        "add", "subtract", "multiply", "maximum", "minimum"
    ):  # fmt: skip
        fail(instruction, f"op1={instruction.attributes['op1']} cannot run cumulatively.")
    if instruction.inputs["src"].dtype in ("int32", "uint32"):
        fail(instruction, f"src is {instruction.inputs['src'].dtype}; 32-bit integers do not work.")

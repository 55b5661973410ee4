"""Cost rules that instruction rows share: cycles from sizes. One function per published formula.

MIN is the engine's shortest issue interval (~64 cycles), N the elements per partition. The
formulas are averages of back-to-back issue; a scheduler adds the fixed time of dependent
instructions from the chip's engine record.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from neuron_chip.cost.lanes import lane_engine
from neuron_chip.cost.tensor import matmul_passes
from neuron_chip.dtypes import dtype
from neuron_chip.instructions.row import PSUM, CostRule, Issue

if TYPE_CHECKING:
    from neuron_chip.parts import Chip

# GpSimdE takes this long to start a program.
GPSIMD_START_CYCLES = 150
# The DVE transposes, shuffles and exact reciprocals have rates of their own.
RECIPROCAL_CYCLES_PER_ELEMENT = 8.0


def floor(issue: Issue, chip: Chip) -> int:
    """The engine's shortest issue interval in cycles."""
    if issue.engine == "tensor":
        return chip.tensor.min_issue_cycles
    return lane_engine(issue.engine, chip).min_issue_cycles


def fast_mode(issue: Issue, chip: Chip) -> int:
    """Elements per lane and cycle of a one-input instruction.

    VectorE of generation 3 on: fp32 and strided or half-PSUM 16-bit work at 2, contiguous 16-bit
    SBUF work at 4. Other engines: their own maximum for 16-bit work.
    """
    if issue.engine not in ("vector", "scalar"):
        return 1
    top = lane_engine(issue.engine, chip).max_fast_elements_per_lane_cycle
    if top == 1:
        return 1
    if issue.engine == "scalar":
        return top if issue.all_16bit else 1
    in_psum = sum(memory == PSUM for memory in (*issue.in_memories, issue.out_memory))
    if issue.all_16bit and issue.contiguous and in_psum == 0:
        return min(4, top)
    if in_psum == 0 or (issue.all_16bit and in_psum == 1):
        return min(2, top)
    return 1


def per_element(cycles: float = 1.0) -> CostRule:
    """max(MIN, cycles x N), no performance mode."""

    def rule(issue: Issue, chip: Chip) -> float:
        return max(float(floor(issue, chip)), cycles * issue.elements)

    return rule


def one_input(issue: Issue, chip: Chip) -> float:
    """max(MIN, N / mode): copies, tensor_scalar; GpSimd adds its start-up."""
    if issue.dynamic_offset:
        return max(float(chip.dynamic_offset_cycles), issue.elements / fast_mode(issue, chip))
    if issue.engine == "gpsimd":
        return GPSIMD_START_CYCLES + issue.elements
    return max(float(floor(issue, chip)), issue.elements / fast_mode(issue, chip))


def two_inputs(issue: Issue, chip: Chip) -> float:
    """N when one input is in PSUM or everything is 16-bit add, multiply or subtract; else 2N."""
    if issue.engine == "gpsimd":
        return GPSIMD_START_CYCLES + 2.0 * issue.elements
    split = len(issue.in_memories) == 2 and issue.in_memories.count(PSUM) == 1
    simple = issue.op in ("", "add", "subtract", "multiply", "copy")
    narrow = issue.all_16bit and issue.all_sbuf and issue.contiguous and simple
    cycles = 1.0 if split or narrow else 2.0
    return max(float(floor(issue, chip)), cycles * issue.elements)


def scalar_tensor_tensor(issue: Issue, chip: Chip) -> float:
    """N for 16-bit subtract-multiply with an even N, else 2N."""
    fast = issue.all_16bit and issue.op == "subtract_multiply" and issue.elements % 2 == 0
    return max(float(floor(issue, chip)), (1.0 if fast else 2.0) * issue.elements)


def predicated(issue: Issue, chip: Chip) -> float:
    """N when the inputs are split between SBUF and PSUM, else 2N."""
    split = len(issue.in_memories) == 2 and issue.in_memories.count(PSUM) == 1
    return max(float(floor(issue, chip)), (1.0 if split else 2.0) * issue.elements)


def memset(issue: Issue, chip: Chip) -> float:
    """N, or half of it for zeros of 16-bit types."""
    half = issue.value_is_zero and dtype(issue.out_dtype).bits == 16
    cycles = max(float(floor(issue, chip)), issue.elements / (2 if half else 1))
    return cycles + (GPSIMD_START_CYCLES if issue.engine == "gpsimd" else 0)


def reduction(issue: Issue, chip: Chip) -> float:
    """N, or half of it for 16-bit add and max."""
    half = issue.all_16bit and issue.op in ("add", "maximum", "max", "")
    return max(float(floor(issue, chip)), issue.elements / (2 if half else 1))


def with_read_out(rule: CostRule, *, always: bool = False) -> CostRule:
    """Add MIN for reading the reduction register."""

    def extended(issue: Issue, chip: Chip) -> float:
        extra = floor(issue, chip) if always or issue.reads_reduction else 0
        return rule(issue, chip) + extra

    return extended


def activation(issue: Issue, chip: Chip) -> float:
    """One table look-up per lane and cycle; 16-bit work runs in the engine's mode."""
    return max(float(floor(issue, chip)), issue.elements / fast_mode(issue, chip))


def gpsimd_per_element(cycles: float = 1.0) -> CostRule:
    """Start-up, then `cycles` per element."""

    def rule(issue: Issue, chip: Chip) -> float:
        del chip
        return GPSIMD_START_CYCLES + cycles * issue.elements

    return rule


def local_gather(issue: Issue, chip: Chip) -> float:
    """150 + indices x elements / C, C from the element size."""
    del chip
    size = 4
    each = issue.count_elements
    rate = ((28 + size * each) / (size * each)) / min(4 / dtype(issue.out_dtype).bytes, each)
    return GPSIMD_START_CYCLES + issue.count * each / rate


def top_k(issue: Issue, chip: Chip) -> float:
    """4n + k."""
    del chip
    return GPSIMD_START_CYCLES + 4.0 * issue.elements + issue.count


def bn_aggregate(issue: Issue, chip: Chip) -> float:
    """max(MIN, 13 N / 3)."""
    return max(float(floor(issue, chip)), 13.0 * issue.elements / 3.0)


def matmul(issue: Issue, chip: Chip) -> float:
    """max(min(64, stationary columns), moving columns), times the passes of the dtype.

    The gap between a stationary load and its moving pass is part of the interval.
    """
    classes = {dtype(name).matmul_class or "bf16" for name in issue.in_dtypes}
    matmul_class = "fp32" if "fp32" in classes else classes.pop() if len(classes) == 1 else "bf16"
    passes = 1.0
    if matmul_class == "fp32":
        passes = matmul_passes("fp32", chip)
    # One FP8 or MX instruction takes as long as a bf16 one; it covers more rows instead.
    tensor = chip.tensor
    columns = max(min(tensor.min_issue_cycles, issue.stationary_free), issue.elements)
    return passes * columns + tensor.issue_gap_cycles


def tensor_transpose(issue: Issue, chip: Chip) -> float:
    """TensorE: max(P, min(64, F)); VectorE: max(MIN, N)."""
    if issue.engine == "vector":
        return max(float(floor(issue, chip)), float(issue.elements))
    floor_cycles = min(chip.tensor.min_issue_cycles, issue.elements)
    passes = 1.0
    if any(dtype(name).bits == 32 for name in issue.in_dtypes):
        # A 4-byte transpose runs at half the rate of the fp32 product, not a quarter.
        passes = matmul_passes("fp32", chip) / (2 if chip.generation >= 3 else 1)
    return passes * max(issue.partitions, floor_cycles) + chip.tensor.issue_gap_cycles


def sequencer(issue: Issue, chip: Chip) -> float:
    """Register and semaphore instructions: one issue interval."""
    del issue
    return float(chip.scalar.min_issue_cycles)


def exponential(issue: Issue, chip: Chip) -> float:
    """Four elements per lane and cycle."""
    return max(float(floor(issue, chip)), math.ceil(issue.elements / 4))

"""`nki.isa`: one function for each hardware instruction, destination first."""

from __future__ import annotations

from nki.errors import NkiValidationError
from nki.isa import constants
from nki.isa.dma import dma_compute, dma_copy, dma_transpose
from nki.isa.gpsimd import (
    affine_select,
    iota,
    local_gather,
    nc_n_gather,
    nonzero_with_count,
    sequence_bounds,
    tensor_partition_reduce,
    topk,
)
from nki.isa.random import dropout, rand2, rand_get_state, rand_set_state, rng, set_rng_seed
from nki.isa.reduce import (
    bn_aggr,
    bn_stats,
    max8,
    nc_find_index8,
    nc_match_replace8,
    range_select,
    select_reduce,
    tensor_reduce,
    tensor_scalar_cumulative,
    tensor_scalar_reduce,
    tensor_tensor_scan,
)
from nki.isa.scalar import activate2, activation, activation_reduce
from nki.isa.sync import (
    core_barrier,
    register_alloc,
    register_load,
    register_move,
    register_store,
    scalar_load,
    scalar_store,
    sendrecv,
)
from nki.isa.target import get_nc_sub_version, get_nc_version
from nki.isa.tensor import nc_matmul, nc_matmul_mx, nc_transpose
from nki.isa.vector import (
    exponential,
    memset,
    nc_stream_shuffle,
    quantize_mx,
    reciprocal,
    scalar_tensor_tensor,
    tensor_copy,
    tensor_copy_predicated,
    tensor_scalar,
    tensor_tensor,
)
from nki.program import indexing as _indexing
from nki.program.enums import (
    dge_mode,
    dma_engine,
    engine,
    matmul_perf_mode,
    nc_version,
    oob_mode,
    reduce_cmd,
)
from nki.program.ir import NkiInstruction
from nki.program.registers import NkiScalar, VirtualRegister
from nki.program.tensor import NkiTensor as _NkiTensor

tensor_engine = engine.tensor
vector_engine = engine.vector
scalar_engine = engine.scalar
gpsimd_engine = engine.gpsimd
unknown_engine = engine.unknown


def _assign(view: _NkiTensor, value: object) -> None:
    """`tensor[...] = value`: a copy, by DMA when one side is in HBM."""
    if isinstance(value, bool | int | float):
        memset(view, value)
    elif isinstance(value, _NkiTensor) and view.on_chip and value.on_chip:
        tensor_copy(view, value)
    else:
        dma_copy(view, value)  # type: ignore[arg-type]


_indexing.on_assign(_assign)

__all__ = [
    "NkiInstruction",
    "NkiScalar",
    "NkiValidationError",
    "VirtualRegister",
    "activate2",
    "activation",
    "activation_reduce",
    "affine_select",
    "bn_aggr",
    "bn_stats",
    "constants",
    "core_barrier",
    "dge_mode",
    "dma_compute",
    "dma_copy",
    "dma_engine",
    "dma_transpose",
    "dropout",
    "engine",
    "exponential",
    "get_nc_sub_version",
    "get_nc_version",
    "gpsimd_engine",
    "iota",
    "local_gather",
    "matmul_perf_mode",
    "max8",
    "memset",
    "nc_find_index8",
    "nc_match_replace8",
    "nc_matmul",
    "nc_matmul_mx",
    "nc_n_gather",
    "nc_stream_shuffle",
    "nc_transpose",
    "nc_version",
    "nonzero_with_count",
    "oob_mode",
    "quantize_mx",
    "rand2",
    "rand_get_state",
    "rand_set_state",
    "range_select",
    "reciprocal",
    "reduce_cmd",
    "register_alloc",
    "register_load",
    "register_move",
    "register_store",
    "rng",
    "scalar_engine",
    "scalar_load",
    "scalar_store",
    "scalar_tensor_tensor",
    "select_reduce",
    "sendrecv",
    "sequence_bounds",
    "set_rng_seed",
    "tensor_copy",
    "tensor_copy_predicated",
    "tensor_engine",
    "tensor_partition_reduce",
    "tensor_reduce",
    "tensor_scalar",
    "tensor_scalar_cumulative",
    "tensor_scalar_reduce",
    "tensor_tensor",
    "tensor_tensor_scan",
    "topk",
    "unknown_engine",
    "vector_engine",
]

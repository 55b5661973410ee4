"""One row per instruction: engines, operand memories, generation, and what the operands share.

Checks that need more than a row are in `checks`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nki.program.enums import Engine

SBUF, PSUM, HBM = "sbuf", "psum", "hbm"
ON_CHIP = (SBUF, PSUM)
ANY = (SBUF, PSUM, HBM)
MOVABLE = (SBUF, HBM)

_T, _V, _S, _G, _D, _Y = (
    Engine.tensor,
    Engine.vector,
    Engine.scalar,
    Engine.gpsimd,
    Engine.dma,
    Engine.sync,
)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What the hardware allows for one instruction."""

    engines: tuple[Engine, ...]
    memories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Allowed memories by operand role."""
    other_memories: tuple[str, ...] = ON_CHIP
    """Allowed memories of the roles that are not listed."""
    min_generation: int = 2
    same_partitions: tuple[str, ...] = ()
    """Roles whose tensors have equal partition counts."""
    same_elements: tuple[str, ...] = ()
    """Roles whose tensors have equal elements per partition."""
    same_dtype: tuple[str, ...] = ()
    one_psum_at_most: tuple[str, ...] = ()
    """Roles of which at most one may be in PSUM."""
    columns: tuple[str, ...] = ()
    """Roles that are [P, 1] when they are tensors."""
    max_free: int | None = None
    """Most elements per partition of the first input."""
    min_free: int | None = None
    partial_output: bool = False
    """The instruction leaves some of dst as it was."""


def _elementwise(*roles: str, **more: object) -> dict[str, object]:
    return {"same_partitions": roles, "same_elements": roles, **more}


def _sbuf(*roles: str) -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(roles, (SBUF,))


_VSG = (_V, _S, _G)

RULES: dict[str, Rule] = {
    "dma_copy": Rule(engines=(_D,), memories={"dst": MOVABLE, "src": MOVABLE}),
    "dma_transpose": Rule(engines=(_D,), memories={"dst": (SBUF,), "src": MOVABLE}),
    "dma_compute": Rule(engines=(_D,), memories={"dst": MOVABLE, "srcs": MOVABLE}),
    "tensor_copy": Rule(engines=_VSG, **_elementwise("dst", "src")),  # type: ignore[arg-type]
    "memset": Rule(engines=(_V, _G)),
    "tensor_copy_predicated": Rule(
        engines=(_V,),
        same_partitions=("dst", "src", "predicate"),
        same_elements=("dst", "src", "predicate"),
        one_psum_at_most=("src", "predicate"),
        partial_output=True,
    ),
    "nc_matmul": Rule(
        engines=(_T,), memories={"dst": (PSUM,), **_sbuf("stationary", "moving")}
    ),
    "nc_matmul_mx": Rule(
        engines=(_T,),
        memories={
            "dst": (PSUM,),
            **_sbuf("stationary", "moving", "stationary_scale", "moving_scale"),
        },
        min_generation=4,
    ),
    "nc_transpose": Rule(engines=(_T, _V), same_dtype=("dst", "data")),
    "tensor_tensor": Rule(
        engines=(_V, _G),
        same_partitions=("dst", "data1", "data2"),
        same_elements=("dst", "data1", "data2"),
        one_psum_at_most=("data1", "data2"),
    ),
    "tensor_scalar": Rule(
        engines=_VSG,
        same_partitions=("dst", "data", "operand0", "operand1"),
        same_elements=("dst", "data"),
        columns=("operand0", "operand1"),
    ),
    "scalar_tensor_tensor": Rule(
        engines=(_V,),
        same_partitions=("dst", "data", "operand0", "operand1"),
        same_elements=("dst", "data", "operand1"),
        one_psum_at_most=("data", "operand1"),
        columns=("operand0",),
    ),
    "tensor_scalar_reduce": Rule(
        engines=(_V,),
        same_partitions=("dst", "data", "operand0", "reduce_res", "reduce_init"),
        same_elements=("dst", "data"),
        columns=("operand0", "reduce_res", "reduce_init"),
    ),
    "tensor_reduce": Rule(engines=(_V,)),
    "tensor_partition_reduce": Rule(engines=(_G,), memories=_sbuf("dst", "data")),
    "tensor_scalar_cumulative": Rule(
        engines=(_V,),
        same_partitions=("dst", "src", "imm0", "imm1"),
        same_elements=("dst", "src"),
        columns=("imm0", "imm1"),
    ),
    "activation": Rule(
        engines=(_S,),
        same_partitions=("dst", "data", "bias", "scale", "reduce_res"),
        same_elements=("dst", "data"),
        columns=("bias", "scale", "reduce_res"),
    ),
    "activate2": Rule(
        engines=(_S,),
        min_generation=4,
        same_partitions=("dst", "data", "imm0", "imm1", "relu_param", "reduce_res"),
        same_elements=("dst", "data"),
        columns=("imm0", "imm1", "relu_param", "reduce_res"),
    ),
    "exponential": Rule(
        engines=(_V,),
        min_generation=4,
        same_partitions=("dst", "src", "max_value", "reduce_res", "reduce_init"),
        same_elements=("dst", "src"),
        columns=("max_value", "reduce_res", "reduce_init"),
    ),
    "reciprocal": Rule(
        engines=(_V,), same_partitions=("dst", "data"), same_elements=("dst", "data")
    ),
    "iota": Rule(engines=(_G,), memories=_sbuf("dst")),
    "affine_select": Rule(
        engines=(_G,),
        memories=_sbuf("dst", "on_true_tile"),
        same_partitions=("dst", "on_true_tile"),
        same_elements=("dst", "on_true_tile"),
    ),
    "range_select": Rule(
        engines=(_V,),
        min_generation=3,
        same_partitions=("dst", "on_true_tile", "bound0", "bound1", "reduce_res"),
        same_elements=("dst", "on_true_tile"),
        columns=("bound0", "bound1", "reduce_res"),
    ),
    "select_reduce": Rule(
        engines=(_V,),
        same_partitions=("dst", "predicate", "on_true", "on_false", "reduce_res"),
        same_elements=("dst", "predicate", "on_true"),
        one_psum_at_most=("predicate", "on_true"),
        columns=("on_false", "reduce_res"),
    ),
    "tensor_tensor_scan": Rule(
        engines=(_V,),
        same_partitions=("dst", "data0", "data1", "initial"),
        same_elements=("dst", "data0", "data1"),
        one_psum_at_most=("data0", "data1"),
        columns=("initial",),
    ),
    "bn_stats": Rule(engines=(_V,), same_partitions=("dst", "data"), max_free=512),
    "bn_aggr": Rule(engines=(_V,), same_partitions=("dst", "data")),
    "max8": Rule(engines=(_V,), same_partitions=("dst", "src"), min_free=8, max_free=16384),
    "nc_find_index8": Rule(
        engines=(_V,), same_partitions=("dst", "data", "vals"), min_free=8, max_free=16384
    ),
    "nc_match_replace8": Rule(
        engines=(_V,),
        same_partitions=("dst", "data", "vals", "dst_idx"),
        same_elements=("dst", "data"),
        max_free=16384,
        min_free=8,
    ),
    "nc_stream_shuffle": Rule(
        engines=(_V,),
        same_elements=("dst", "src"),
        same_dtype=("dst", "src"),
        partial_output=True,
    ),
    "rng": Rule(engines=(_V, _G)),
    "dropout": Rule(
        engines=(_V,),
        same_partitions=("dst", "data", "prob"),
        same_elements=("dst", "data"),
        same_dtype=("dst", "data"),
        columns=("prob",),
    ),
    "set_rng_seed": Rule(engines=(_V,)),
    "rand_set_state": Rule(engines=(_G, _V), min_generation=3, memories=_sbuf("src_seeds")),
    "rand_get_state": Rule(engines=(_G, _V), min_generation=3),
    "rand2": Rule(
        engines=(_V,),
        min_generation=4,
        same_partitions=("dst", "min", "max"),
        columns=("min", "max"),
    ),
    "local_gather": Rule(
        engines=(_G,), memories=_sbuf("dst", "src_buffer", "index"), partial_output=True
    ),
    "nc_n_gather": Rule(
        engines=(_G,),
        memories=_sbuf("dst", "data", "indices"),
        same_partitions=("dst", "data", "indices"),
        same_elements=("dst", "indices"),
        same_dtype=("dst", "data"),
    ),
    "nonzero_with_count": Rule(
        engines=(_G,), min_generation=3, memories=_sbuf("dst", "src"), partial_output=True
    ),
    "topk": Rule(
        engines=(_G,), memories=_sbuf("val_dst", "idx_dst", "src"), partial_output=True
    ),
    "sequence_bounds": Rule(engines=(_G,), memories=_sbuf("dst", "segment_ids")),
    "quantize_mx": Rule(
        engines=(_V,), min_generation=4, memories=_sbuf("dst", "src", "dst_scale"),
        partial_output=True,
    ),
    "sendrecv": Rule(
        engines=(_D, _G),
        min_generation=3,
        memories=_sbuf("dst", "src"),
        same_dtype=("dst", "src"),
        same_partitions=("dst", "src"),
        same_elements=("dst", "src"),
    ),
    "core_barrier": Rule(engines=(_T, _V, _S, _G, _Y), min_generation=3, memories={"data": (HBM,)}),
    "register_load": Rule(engines=(_Y,), memories={"src": MOVABLE}),
    "register_store": Rule(engines=(_Y,), memories={"dst": MOVABLE}),
    "register_move": Rule(engines=(_Y,)),
    "register_operation": Rule(engines=(_Y,)),
    "device_print": Rule(engines=(_Y,), memories={"tensor": ANY}),
    "collective": Rule(engines=(_D,), other_memories=MOVABLE),
    "rank_id": Rule(engines=(_Y,)),
}  # fmt: skip

# Starting partitions that an engine can address, by how many partitions the access has.
START_PARTITIONS: tuple[tuple[int, tuple[int, ...]], ...] = (
    (32, (0, 32, 64, 96)),
    (64, (0, 64)),
    (128, (0,)),
)


def legal_starts(num_partitions: int) -> tuple[int, ...]:
    """Legal first partitions of a compute-engine access."""
    for most, starts in START_PARTITIONS:
        if num_partitions <= most:
            return starts
    return ()

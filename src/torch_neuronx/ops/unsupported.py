"""Operators that the chip cannot run natively, and why. Dtypes are in `dtypes`.

Sources of the reasons: the error codes of AWS's compiler (`NCC_...`), the limits of the NKI
instructions, and AWS's statement that shapes are fixed when a graph is compiled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class UnsupportedFamily:
    """Operators that share one reason.

    A name stands for all its overloads and for the `out=` form; `namespace::prefix*` stands for
    every operator that starts so; a name with a dot stands for that overload only.
    """

    name: str
    reason: str
    ops: tuple[str, ...]

    def __post_init__(self) -> None:
        assert self.reason.endswith("."), f"the reason of {self.name} is no sentence"
        assert len(set(self.ops)) == len(self.ops), f"{self.name} names an operator twice"
        assert all("::" in op for op in self.ops), f"{self.name}: names start with a namespace"


FAMILIES: tuple[UnsupportedFamily, ...] = (
    UnsupportedFamily(
        name="data-dependent shape",
        reason="The size of the result depends on values, and the chip's programs have fixed "
        "shapes. Use a mask, torch.where, or a padded form such as nonzero_static.",
        ops=(
            "aten::nonzero",
            "aten::nonzero_numpy",
            "aten::masked_select",
            "aten::_unique",
            "aten::_unique2",
            "aten::unique_dim",
            "aten::unique_consecutive",
            "aten::unique_dim_consecutive",
            "aten::bincount",
            "aten::repeat_interleave.Tensor",
            "aten::_pack_padded_sequence",
        ),
    ),
    UnsupportedFamily(
        name="matrix decomposition",
        reason="A host algorithm: it pivots, iterates or branches on values, which a program of "
        "the chip cannot. Decompose on the CPU once, or replace it by matrix products.",
        ops=(
            "aten::_linalg_svd",
            "aten::_linalg_eigh",
            "aten::_linalg_eigvals",
            "aten::linalg_eig",
            "aten::linalg_eigvals",
            "aten::linalg_qr",
            "aten::geqrf",
            "aten::ormqr",
            "aten::linalg_householder_product",
            "aten::linalg_lstsq",
            "aten::linalg_lu",
            "aten::linalg_lu_factor_ex",
            "aten::linalg_lu_solve",
            "aten::lu_unpack",
            "aten::linalg_ldl_factor_ex",
            "aten::linalg_ldl_solve",
            "aten::linalg_cholesky_ex",
            "aten::cholesky",
            "aten::cholesky_inverse",
            "aten::_cholesky_solve_helper",
            "aten::linalg_inv_ex",
            "aten::_linalg_solve_ex",
            "aten::_linalg_det",
            "aten::_linalg_slogdet",
            "aten::linalg_solve_triangular",
            "aten::triangular_solve",
            "aten::linalg_matrix_exp",
        ),
    ),
    UnsupportedFamily(
        name="Fourier transform",
        reason="The compiler has no Fourier transform and no complex dtype (NCC_EVRF004). "
        "Use a matrix product with the transform's matrix.",
        ops=("aten::_fft_c2c", "aten::_fft_c2r", "aten::_fft_r2c"),
    ),
    UnsupportedFamily(
        name="sorting",
        reason="The chip finds the largest values of a row but has no sort. "
        "Use torch.topk where few values are enough.",
        ops=(
            "aten::sort",
            "aten::argsort",
            "aten::kthvalue",
            "aten::median",
            "aten::nanmedian",
            "aten::mode",
        ),
    ),
    UnsupportedFamily(
        name="integer matrix product",
        reason="The tensor engine multiplies floating-point numbers only (NCC_EVRF035). "
        "Use fp8 or bf16.",
        ops=("aten::_int_mm",),
    ),
    UnsupportedFamily(
        name="sparse tensor",
        reason="The chip has dense tensors only. Use .to_dense() or index operations.",
        ops=(
            "aten::_sparse*",
            "aten::sparse_*",
            "aten::_coalesce",
            "aten::_to_sparse*",
            "aten::to_sparse*",
            "aten::_nnz",
            "aten::sspaddmm",
            "aten::hspmm",
        ),
    ),
    UnsupportedFamily(
        name="quantized tensor",
        reason="The chip has no tensors with a built-in scale. Keep integers or fp8 and the "
        "scale apart.",
        ops=(
            "aten::quantize_per_tensor*",
            "aten::quantize_per_channel",
            "aten::dequantize.self",
            "aten::_empty_affine_quantized",
            "aten::_empty_per_channel_affine_quantized",
            "quantized::*",
        ),
    ),
    UnsupportedFamily(
        name="sequence alignment",
        reason="A host algorithm: the dynamic programme walks label lengths that are values.",
        ops=("aten::_ctc_loss", "aten::_ctc_loss_backward"),
    ),
)


def reasons_by_operator(operators: Iterable[str]) -> dict[str, str]:
    """The reason of each of `operators`, full names with overload, that the chip cannot run."""
    exact: dict[str, str] = {}
    prefixes: list[tuple[str, str]] = []
    for family in FAMILIES:
        for op in family.ops:
            if op.endswith("*"):
                prefixes.append((op[:-1], family.reason))
            else:
                exact[op] = family.reason
    starts = tuple(prefix for prefix, _ in prefixes)
    found: dict[str, str] = {}
    for operator in operators:
        reason = exact.get(operator) or exact.get(operator.partition(".")[0])
        if reason is None and operator.startswith(starts):
            reason = next(text for prefix, text in prefixes if operator.startswith(prefix))
        if reason is not None:
            found[operator] = reason
    return found

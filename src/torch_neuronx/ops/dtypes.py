"""Dtypes that the chip lacks, or has in fewer bits than this device. Operators are elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from neuron_chip import Chip


@dataclass(frozen=True, kw_only=True)
class DtypeNote:
    """What the report says of operators on one dtype."""

    dtype: torch.dtype
    reason: str
    exact_here: bool = False
    """The chip runs it in fewer bits: worth a line in the report, no fallback."""


_DOUBLE = "The chip has no 64-bit floating point (NCC_ESPP004); use float32."
_SIGNED_64 = "Exact here; the chip computes 64-bit integers in 32 bits unless native int64 is on."
_COMPLEX = "Exact here; on the chip complex numbers are pairs of real ones, op by op."
_FNUZ = "The compiler refuses the FNUZ variants of fp8 (NCC_EVRF005)."
_QUANTIZED = "The chip has no tensors with a built-in scale."

# fp8 formats under the names of `neuron_chip`, by torch's names.
_OCP_FP8 = {torch.float8_e4m3fn: "float8_e4m3fn", torch.float8_e5m2: "float8_e5m2"}


def dtype_notes(chip: Chip) -> tuple[DtypeNote, ...]:
    """The notes that hold for `chip`."""
    notes = [
        DtypeNote(dtype=torch.float64, reason=_DOUBLE),
        DtypeNote(dtype=torch.complex128, reason=_DOUBLE),
        DtypeNote(dtype=torch.complex32, reason="The compiler has no complex dtype (NCC_EVRF004)."),
        DtypeNote(dtype=torch.complex64, reason=_COMPLEX, exact_here=True),
        DtypeNote(dtype=torch.int64, reason=_SIGNED_64, exact_here=True),
        DtypeNote(dtype=torch.uint64, reason=_SIGNED_64, exact_here=True),
        DtypeNote(dtype=torch.float8_e4m3fnuz, reason=_FNUZ),
        DtypeNote(dtype=torch.float8_e5m2fnuz, reason=_FNUZ),
        DtypeNote(dtype=torch.qint8, reason=_QUANTIZED),
        DtypeNote(dtype=torch.quint8, reason=_QUANTIZED),
        DtypeNote(dtype=torch.qint32, reason=_QUANTIZED),
        DtypeNote(dtype=torch.quint4x2, reason=_QUANTIZED),
    ]
    notes += [
        DtypeNote(
            dtype=dtype,
            reason=f"{chip.name} has no {name} (NCC_EVRF051); it has "
            f"{', '.join(chip.fp8_formats) or 'no fp8'}.",
        )
        for dtype, name in _OCP_FP8.items()
        if name not in chip.fp8_formats
    ]
    return tuple(notes)

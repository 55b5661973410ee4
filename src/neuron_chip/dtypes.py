"""Data types, one row each: layout and names. No casting and no rates (those are chip facts)."""

from __future__ import annotations

from dataclasses import dataclass

from neuron_chip.lookup import find


@dataclass(frozen=True, kw_only=True)
class Dtype:
    """One element type as the chip stores it."""

    name: str
    bits: int
    kind: str
    """"float", "int", "uint", "bool" or "packed" (four small floats in one element)."""
    exponent_bits: int | None = None
    mantissa_bits: int | None = None
    max_finite: float | None = None
    has_infinity: bool | None = None
    matmul_class: str | None = None
    """Rate class on the tensor engine: "fp32", "bf16", "fp8", "mx"; None cannot be multiplied."""
    numpy_name: str | None = None
    torch_name: str | None = None
    aliases: tuple[str, ...] = ()
    min_generation: int = 2
    on_chip: bool = True
    """False for 64-bit types: they exist on the host only and are narrowed for the chip."""

    def __post_init__(self) -> None:
        assert self.kind in ("float", "int", "uint", "bool", "packed"), self.name
        assert self.matmul_class in (None, "fp32", "bf16", "fp8", "mx"), self.name
        if self.exponent_bits is not None and self.mantissa_bits is not None:
            sign_bits = 0 if self.name == "float8_e8m0fnu" else 1
            used = sign_bits + self.exponent_bits + self.mantissa_bits
            # tf32 is the one format stored in a wider word than it uses.
            assert used == self.bits or self.name == "tfloat32", self.name

    @property
    def bytes(self) -> float:
        """Bytes of one element."""
        return self.bits / 8

    @property
    def bytes_per_value(self) -> float:
        """Bytes of one number; a packed element holds four."""
        return self.bytes / (4 if self.kind == "packed" else 1)

    @property
    def is_float(self) -> bool:
        """Whether arithmetic on it is floating point."""
        return self.kind in ("float", "packed")

    @property
    def is_16bit_float(self) -> bool:
        """Whether the fast modes of the vector engine take it."""
        return self.kind == "float" and self.bits == 16


def _int(name: str, bits: int, kind: str, *, on_chip: bool = True) -> Dtype:
    top = 2.0 ** (bits - 1) - 1 if kind == "int" else 2.0**bits - 1
    return Dtype(
        name=name,
        bits=bits,
        kind=kind,
        max_finite=top,
        numpy_name=name,
        torch_name=name,
        on_chip=on_chip,
    )


DTYPES: tuple[Dtype, ...] = (
    Dtype(
        name="float32",
        bits=32,
        kind="float",
        exponent_bits=8,
        mantissa_bits=23,
        max_finite=(2 - 2.0**-23) * 2.0**127,
        has_infinity=True,
        matmul_class="fp32",
        numpy_name="float32",
        torch_name="float32",
        aliases=("fp32", "f32", "float"),
    ),
    Dtype(
        name="tfloat32",
        bits=32,
        kind="float",
        exponent_bits=8,
        mantissa_bits=10,
        max_finite=(2 - 2.0**-10) * 2.0**127,
        has_infinity=True,
        matmul_class="bf16",
        numpy_name="float32",
        aliases=("tf32",),
    ),
    Dtype(
        name="bfloat16",
        bits=16,
        kind="float",
        exponent_bits=8,
        mantissa_bits=7,
        max_finite=(2 - 2.0**-7) * 2.0**127,
        has_infinity=True,
        matmul_class="bf16",
        numpy_name="bfloat16",
        torch_name="bfloat16",
        aliases=("bf16",),
    ),
    Dtype(
        name="float16",
        bits=16,
        kind="float",
        exponent_bits=5,
        mantissa_bits=10,
        max_finite=65504.0,
        has_infinity=True,
        matmul_class="bf16",
        numpy_name="float16",
        torch_name="float16",
        aliases=("fp16", "f16", "half"),
    ),
    Dtype(
        name="float8_e4m3",
        bits=8,
        kind="float",
        exponent_bits=4,
        mantissa_bits=3,
        max_finite=240.0,
        has_infinity=True,
        matmul_class="fp8",
        numpy_name="float8_e4m3",
        aliases=("fp8", "fp8_e4m3"),
    ),
    Dtype(
        name="float8_e4m3fn",
        bits=8,
        kind="float",
        exponent_bits=4,
        mantissa_bits=3,
        max_finite=448.0,
        has_infinity=False,
        matmul_class="fp8",
        numpy_name="float8_e4m3fn",
        torch_name="float8_e4m3fn",
        min_generation=4,
    ),
    Dtype(
        name="float8_e5m2",
        bits=8,
        kind="float",
        exponent_bits=5,
        mantissa_bits=2,
        max_finite=57344.0,
        has_infinity=True,
        matmul_class="fp8",
        numpy_name="float8_e5m2",
        torch_name="float8_e5m2",
        aliases=("fp8_e5m2",),
    ),
    Dtype(
        name="float8_e3m4",
        bits=8,
        kind="float",
        exponent_bits=3,
        mantissa_bits=4,
        max_finite=15.5,
        has_infinity=True,
        matmul_class="bf16",  # the double-row mode takes E4 and E5 only
        numpy_name="float8_e3m4",
    ),
    Dtype(
        name="float8_e8m0fnu",
        bits=8,
        kind="float",
        exponent_bits=8,
        mantissa_bits=0,
        max_finite=2.0**127,
        has_infinity=False,
        numpy_name="float8_e8m0fnu",
        torch_name="float8_e8m0fnu",
        min_generation=4,
    ),
    Dtype(
        name="float8_e4m3fn_x4",
        bits=32,
        kind="packed",
        max_finite=448.0,
        matmul_class="mx",
        min_generation=4,
    ),
    Dtype(
        name="float8_e5m2_x4",
        bits=32,
        kind="packed",
        max_finite=57344.0,
        matmul_class="mx",
        min_generation=4,
    ),
    Dtype(
        name="float4_e2m1fn_x4",
        bits=16,
        kind="packed",
        max_finite=6.0,
        matmul_class="mx",
        aliases=("fp4", "mxfp4"),
        min_generation=4,
    ),
    Dtype(name="bool", bits=8, kind="bool", numpy_name="bool", torch_name="bool"),
    _int("int8", 8, "int"),
    _int("uint8", 8, "uint"),
    _int("int16", 16, "int"),
    _int("uint16", 16, "uint"),
    _int("int32", 32, "int"),
    _int("uint32", 32, "uint"),
    _int("int64", 64, "int", on_chip=False),
    _int("uint64", 64, "uint", on_chip=False),
    Dtype(
        name="float64",
        bits=64,
        kind="float",
        exponent_bits=11,
        mantissa_bits=52,
        max_finite=(2 - 2.0**-52) * 2.0**1023,
        has_infinity=True,
        numpy_name="float64",
        torch_name="float64",
        aliases=("double",),
        on_chip=False,
    ),
    Dtype(name="complex64", bits=64, kind="float", torch_name="complex64", on_chip=False),
    Dtype(name="complex128", bits=128, kind="float", torch_name="complex128", on_chip=False),
)

_BY_NAME: dict[str, Dtype] = {row.name: row for row in DTYPES} | {
    alias: row for row in DTYPES for alias in row.aliases
}


def dtype(name: str) -> Dtype:
    """The row of a dtype by its name, a short name ("bf16") or torch's ("torch.bfloat16")."""
    return find(_BY_NAME, name.removeprefix("torch.").removesuffix("_"), kind="dtype")

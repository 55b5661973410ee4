"""Element-wise functions: each makes a new tile. Their names also serve as operator tokens."""

from __future__ import annotations

import math as _math
from collections.abc import Callable
from typing import Any

from nki import dtypes, isa
from nki.errors import NkiValidationError
from nki.language.allocate import ndarray
from nki.program.enums import Engine
from nki.program.operators import OPERATORS
from nki.program.storage import MemoryRegion
from nki.program.tensor import NkiTensor

Value = NkiTensor | float
Binary = Callable[..., NkiTensor]


def result_tile(x: NkiTensor, dtype: dtypes.DType | None) -> NkiTensor:
    """A new SBUF tile of x's shape."""
    return ndarray(x.shape, x.dtype if dtype is None else dtype)


def _binary_dtype(x: Any, y: Any, dtype: dtypes.DType | None) -> dtypes.DType:
    if dtype is not None:
        return dtype
    kinds = [v.dtype if isinstance(v, NkiTensor) else dtypes.of_scalar(v) for v in (x, y)]
    return dtypes.promote(kinds[0], kinds[1])


def apply_binary(name: str, x: Any, y: Any, dtype: dtypes.DType | None) -> NkiTensor:
    """One tensor_tensor or tensor_scalar instruction into a new tile."""
    x = getattr(x, "nki_tensor", x)
    y = getattr(y, "nki_tensor", y)
    kind = _binary_dtype(x, y, dtype)
    if isinstance(x, NkiTensor) and isinstance(y, NkiTensor):
        if x.shape != y.shape:
            raise NkiValidationError(
                f"nl.{name} needs equal shapes, got {x.shape} and {y.shape}. Use nl.broadcast_to "
                "or nisa.tensor_scalar with a [P, 1] column."
            )
        dst = result_tile(x, kind)
        isa.tensor_tensor(dst, x, y, name)
        return dst
    if isinstance(x, NkiTensor):
        dst = result_tile(x, kind)
        isa.tensor_scalar(dst, x, name, y)
        return dst
    if isinstance(y, NkiTensor):
        dst = result_tile(y, kind)
        isa.tensor_scalar(dst, y, name, x, reverse0=True)
        return dst
    raise NkiValidationError(
        f"nl.{name} needs at least one tile, got {x!r} and {y!r}. Compute numbers in Python."
    )


def _named(function: Any, name: str, doc: str, *, token: bool) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    if token:
        function.nki_operator = name
    return function


def _binary(name: str, doc: str) -> Binary:
    def function(x: Value, y: Value, dtype: dtypes.DType | None = None) -> NkiTensor:
        return apply_binary(name, x, y, dtype)

    assert name in OPERATORS
    named: Binary = _named(function, name, doc, token=True)
    return named


add = _binary("add", "x + y.")
subtract = _binary("subtract", "x - y.")
multiply = _binary("multiply", "x * y.")
divide = _binary("divide", "x / y (simulator only: the hardware has no division of tiles).")
maximum = _binary("maximum", "The larger of x and y.")
minimum = _binary("minimum", "The smaller of x and y.")
abs_max = _binary("abs_max", "The one of larger magnitude; y when they are equal (trn3).")
abs_min = _binary("abs_min", "The one of smaller magnitude; y when they are equal (trn3).")
power = _binary("power", "x ** y, on GpSimd.")
mod = _binary("mod", "x modulo y with the sign of y (simulator only).")
fmod = _binary("fmod", "Remainder of x / y with the sign of x (simulator only).")
equal = _binary("equal", "1.0 where x == y, else 0.0.")
not_equal = _binary("not_equal", "1.0 where x != y, else 0.0.")
less = _binary("less", "1.0 where x < y, else 0.0.")
less_equal = _binary("less_equal", "1.0 where x <= y, else 0.0.")
greater = _binary("greater", "1.0 where x > y, else 0.0.")
greater_equal = _binary("greater_equal", "1.0 where x >= y, else 0.0.")
bitwise_and = _binary("bitwise_and", "Bits set in x and y.")
bitwise_or = _binary("bitwise_or", "Bits set in x or y.")
bitwise_xor = _binary("bitwise_xor", "Bits set in one of x and y.")
left_shift = _binary("left_shift", "x shifted left by y bits.")
right_shift = _binary("right_shift", "x shifted right by y bits, zeros coming in.")
logical_and = _binary("logical_and", "1.0 where both are not 0.")
logical_or = _binary("logical_or", "1.0 where one is not 0.")
logical_xor = _binary("logical_xor", "1.0 where exactly one is not 0.")


def apply_activation(
    name: str, x: NkiTensor, dtype: dtypes.DType | None, *, bias: Any = None, scale: float = 1.0
) -> NkiTensor:
    """One activation instruction into a new tile."""
    dst = result_tile(x, dtype)
    isa.activation(dst, name, x, bias, scale)
    return dst


def _unary(name: str, doc: str) -> Callable[..., NkiTensor]:
    def function(x: NkiTensor, dtype: dtypes.DType | None = None) -> NkiTensor:
        return apply_activation(name, x, dtype)

    named: Callable[..., NkiTensor] = _named(function, name, doc, token=True)
    return named


abs = _unary("abs", "|x|.")
square = _unary("square", "x * x.")
exp = _unary("exp", "e ** x.")
log = _unary("log", "Natural logarithm; the tables reach from 2^-64 to 2^64.")
sqrt = _unary("sqrt", "Square root; the tables reach from 2^-116 to 2^118.")
tanh = _unary("tanh", "Hyperbolic tangent.")
sigmoid = _unary("sigmoid", "1 / (1 + e ** -x).")
relu = _unary("relu", "max(x, 0).")
gelu = _unary("gelu", "x * P(N < x).")
gelu_apprx_sigmoid = _unary("gelu_apprx_sigmoid", "x * sigmoid(1.702 x).")
gelu_apprx_tanh = _unary("gelu_apprx_tanh", "GELU by tanh.")
gelu_dx = _unary("gelu_dx", "Derivative of gelu.")
gelu_apprx_sigmoid_dx = _unary("gelu_apprx_sigmoid_dx", "Derivative of gelu_apprx_sigmoid.")
silu = _unary("silu", "x * sigmoid(x).")
silu_dx = _unary("silu_dx", "Derivative of silu.")
softplus = _unary("softplus", "log(1 + e ** x).")
mish = _unary("mish", "x * tanh(softplus(x)).")
erf = _unary("erf", "Error function.")
erf_dx = _unary("erf_dx", "Derivative of erf.")
arctan = _unary("arctan", "Arc tangent.")
sign = _unary("sign", "-1, 0 or 1.")


def reciprocal(x: NkiTensor, dtype: dtypes.DType | None = None) -> NkiTensor:
    """1 / x, on the vector engine."""
    dst = result_tile(x, dtype)
    isa.reciprocal(dst, x)
    return dst


def rsqrt(x: NkiTensor, dtype: dtypes.DType | None = None) -> NkiTensor:
    """1 / sqrt(x), on GpSimd."""
    dst = result_tile(x, dtype)
    if x.buffer is MemoryRegion.psum:
        isa.activation(dst, "rsqrt", x)
    else:
        isa.tensor_scalar(dst, x, "rsqrt", None)
    return dst


_PI = _math.pi


def sin(x: NkiTensor, dtype: dtypes.DType | None = None) -> NkiTensor:
    """Sine of any x: reduced to [-pi, pi] first."""
    return _sine(x, _PI, dtype)


def cos(x: NkiTensor, dtype: dtypes.DType | None = None) -> NkiTensor:
    """Cosine of any x."""
    return _sine(x, 1.5 * _PI, dtype)


def _sine(x: NkiTensor, shift: float, dtype: dtypes.DType | None) -> NkiTensor:
    turned = result_tile(x, "float32")
    isa.tensor_scalar(turned, x, "add", shift, op1="mod", operand1=2 * _PI)
    isa.tensor_scalar(turned, turned, "subtract", _PI)
    return apply_activation("sin", turned, x.dtype if dtype is None else dtype)


def tan(x: NkiTensor, dtype: dtypes.DType | None = None) -> NkiTensor:
    """Tangent of any x."""
    dst = result_tile(x, dtype)
    inverse = reciprocal(cos(x, "float32"))
    isa.tensor_tensor(dst, sin(x, "float32"), inverse, "multiply")
    return dst


def trunc(x: NkiTensor, dtype: dtypes.DType | None = None) -> NkiTensor:
    """x without its fraction, exact for |x| < 2^31."""
    lower = floor(abs(x, "float32"), "float32")
    dst = result_tile(x, dtype)
    isa.tensor_tensor(dst, lower, sign(x, "float32"), "multiply")
    return dst


def floor(x: NkiTensor, dtype: dtypes.DType | None = None) -> NkiTensor:
    """The next whole number below, exact for |x| < 2^31."""
    return _round(x, "greater", "subtract", dtype)


def ceil(x: NkiTensor, dtype: dtypes.DType | None = None) -> NkiTensor:
    """The next whole number above, exact for |x| < 2^31."""
    return _round(x, "less", "add", dtype)


def _round(x: NkiTensor, wrong: str, repair: str, dtype: dtypes.DType | None) -> NkiTensor:
    whole = result_tile(x, "int32")
    isa.tensor_copy(whole, x)  # rounds to the nearest
    nearest = result_tile(x, "float32")
    isa.tensor_copy(nearest, whole)
    beyond = result_tile(x, "float32")
    isa.tensor_tensor(beyond, nearest, x, wrong)
    dst = result_tile(x, dtype)
    isa.tensor_tensor(dst, nearest, beyond, repair)
    return dst


def negative(x: NkiTensor, dtype: dtypes.DType | None = None) -> NkiTensor:
    """-x."""
    return apply_binary("multiply", x, -1.0, x.dtype if dtype is None else dtype)


def invert(x: NkiTensor, dtype: dtypes.DType | None = None) -> NkiTensor:
    """All bits flipped."""
    dst = result_tile(x, dtype)
    isa.tensor_scalar(dst, x, "bitwise_xor", -1)
    return dst


def logical_not(x: NkiTensor, dtype: dtypes.DType | None = None) -> NkiTensor:
    """1.0 where x is 0, else 0.0."""
    return apply_binary("logical_xor", x, 1, x.dtype if dtype is None else dtype)


for _function, _name in ((reciprocal, "reciprocal"), (rsqrt, "rsqrt"), (sin, "sin"),
                         (invert, "invert")):  # fmt: skip
    _function.nki_operator = _name  # type: ignore[attr-defined]


def where(condition: NkiTensor, x: Value, y: Value, dtype: dtypes.DType | None = None) -> NkiTensor:
    """x where condition is not 0, else y."""
    kind = _binary_dtype(x, y, dtype)
    dst = result_tile(condition, kind)
    if isinstance(y, NkiTensor):
        isa.tensor_copy(dst, y)
    else:
        isa.memset(dst, y)
    predicate = condition
    if not dtypes.is_integer(condition.dtype):
        predicate = apply_binary("not_equal", condition, 0.0, "uint8")
    if isinstance(x, NkiTensor) and x.dtype != kind:
        cast = result_tile(x, kind)
        isa.tensor_copy(cast, x)
        x = cast
    isa.tensor_copy_predicated(dst, x, predicate)
    return dst


def dropout(x: NkiTensor, rate: Any, dtype: dtypes.DType | None = None) -> NkiTensor:
    """x with elements set to 0 with probability rate."""
    dst = result_tile(x, None)
    isa.dropout(dst, x, rate)
    if dtype is None or dtype == x.dtype:
        return dst
    cast = result_tile(x, dtype)
    isa.tensor_copy(cast, dst)
    return cast


def random_seed(seed: NkiTensor) -> None:
    """Seed the generator from a [1, 1] tile."""
    isa.set_rng_seed(seed)


def rand(
    shape: tuple[int, ...],
    dtype: dtypes.DType,
    buffer: MemoryRegion | str = MemoryRegion.sbuf,
    name: str = "",
) -> NkiTensor:
    """Uniform numbers in [0, 1)."""
    bits = ndarray(shape, "uint32")
    isa.rng(bits, engine=Engine.vector)
    isa.tensor_scalar(bits, bits, "right_shift", 8)  # fp32 holds 24 bits exactly
    dst = ndarray(shape, dtype, buffer, name)
    isa.tensor_scalar(dst, bits, "multiply", 2.0**-24)
    return dst

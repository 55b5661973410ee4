"""Where the device may differ from the CPU, each with its reason. All else is equal."""

from __future__ import annotations

import dataclasses
import fnmatch

# Results that depend on a random generator: the device has its own (Philox), so its numbers are
# others. Shapes, dtypes, strides, determinism and distribution are compared instead.
RANDOM = frozenset(
    {
        "bernoulli",
        "cauchy",
        "exponential",
        "geometric",
        "log_normal",
        "multinomial",
        "native_dropout_backward",
        "nn.functional.alpha_dropout",
        "nn.functional.dropout",
        "nn.functional.dropout2d",
        "nn.functional.dropout3d",
        "nn.functional.feature_alpha_dropout",
        "nn.functional.fractional_max_pool2d",
        "nn.functional.fractional_max_pool3d",
        "nn.functional.multi_head_attention_forward",
        "nn.functional.rrelu",
        "nn.functional.scaled_dot_product_attention",
        "normal",
        "normal.in_place",
        "normal.number_mean",
        "pca_lowrank",
        "rand_like",
        "randint",
        "randint_like",
        "randn",
        "randn_like",
        "svd_lowrank",
        "torch.ops.aten._efficient_attention_forward",
        "torch.ops.aten._flash_attention_forward",
        "uniform",
    }
)

# Modules that draw random numbers while training.
RANDOM_MODULES = frozenset(
    {
        "nn.AlphaDropout",
        "nn.Dropout",
        "nn.Dropout1d",
        "nn.Dropout2d",
        "nn.Dropout3d",
        "nn.FeatureAlphaDropout",
        "nn.FractionalMaxPool2d",
        "nn.FractionalMaxPool3d",
        "nn.MultiheadAttention",
        "nn.RReLU",
        "nn.Transformer",
        "nn.TransformerDecoderLayer",
        "nn.TransformerEncoder",
        "nn.TransformerEncoderLayer",
    }
)

# Memory that nobody has written yet: only its metadata can be compared.
UNINITIALISED = frozenset(
    {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
)


# Positions of arguments that PyTorch wants on the CPU whatever the device.
HOST_ARGUMENTS = {"tensor_split": (1,)}

# Ops whose float error the CPU's own error does not bound, in units of the last place of the
# largest result (or of 1), with the reason.
SLACK_ULPS = {
    # A root of a difference of squares: where points are near, the error grows a hundredfold.
    "cdist": 128.0,
    # PyTorch chooses the dtype of the intermediate logits by the device's name.
    "nn.functional.linear_cross_entropy": 8.0,
}


# The same for modules.
MODULE_SLACK_ULPS = {
    # As on other accelerators the gates are summed before their biases are: rounding differs, and
    # a recurrence amplifies it.
    "nn.LSTM": 8.0,
    "nn.GRU": 8.0,
    # Our tanh is within 1.5 units in the last place, the CPU library's within 1; the same holds.
    "nn.RNN": 8.0,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Excluded:
    """Cases of one kind of test that are not run."""

    kind: str
    names: str
    reason: str


EXCEPTIONS: tuple[Excluded, ...] = (
    Excluded(
        kind="optimizer",
        names="SGD-fused-bfloat16",
        reason="PyTorch 2.13's fused CPU step reads a momentum buffer that nobody has written yet",
    ),
    Excluded(
        kind="*",
        names="NumpyExpMarkDirtyAutogradFunction*",
        reason="it writes into the NumPy view of a CPU tensor; a device tensor has no such view",
    ),
    Excluded(
        kind="*",
        names="NumpyNonzeroCustomOp-bool",
        reason="the wheel cannot make its sample inputs",
    ),
)


def exception_for(kind: str, name: str) -> str | None:
    """Why this case is not tested; None if it is."""
    for row in EXCEPTIONS:
        if fnmatch.fnmatchcase(kind, row.kind) and fnmatch.fnmatchcase(name, row.names):
            return row.reason
    return None

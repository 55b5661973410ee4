"""What can be wrong with a kernel, one class per kind of mistake; every message names the fix."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

_PACKAGE = str(Path(__file__).resolve().parent)


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the kernel's own source."""

    path: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} in {self.function}"


def kernel_line(depth: int = 1) -> SourceLine:
    """The innermost line on the call stack that is not part of this package."""
    frame = sys._getframe(depth)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    code = frame.f_code
    return SourceLine(code.co_filename, frame.f_lineno, code.co_name)


class NkiError(Exception):
    """Base of every error about a kernel; carries the kernel line."""

    def __init__(self, message: str, *, source: SourceLine | None = None) -> None:
        self.source = source if source is not None else kernel_line(2)
        super().__init__(f"{message}\n  at {self.source}")


class NkiValidationError(NkiError, ValueError):
    """An instruction or a tensor that the hardware cannot do."""


class ViewError(NkiValidationError):
    """A view that the memory layout does not allow."""


class OutOfBoundsError(NkiValidationError, IndexError):
    """An access outside of its tensor."""


class MemoryLimitError(NkiValidationError):
    """More SBUF or PSUM than the core has, or addresses that collide."""


class UninitializedReadError(NkiValidationError):
    """A read of memory that nothing has written."""


class UnsupportedError(NkiValidationError):
    """Something that this chip generation does not have."""


class TraceError(NkiError, TypeError):
    """A value that is known only on the device steers Python."""


class StrictSubsetError(NkiError, SyntaxError):
    """Python that AWS's kernel compiler does not accept."""


class DeadlockError(NkiError, RuntimeError):
    """Cores wait for one another and none can go on."""


class DeviceTrapError(NkiError, RuntimeError):
    """An access that would stop the device while the kernel runs."""


class NkiWarning(UserWarning):
    """A finding that does not stop the kernel."""

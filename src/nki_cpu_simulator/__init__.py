"""The public kernel test harness looks for its simulator under this name; it finds `nki`."""

from __future__ import annotations

import sys

import nki
import nki.builtin
import nki.compiler
import nki.isa.constants
import nki.language.dtypes
import nki.tensor
import nki.typing

_PREFIX = f"{__name__}.nki"


_ALIASES = {
    _PREFIX: nki,
    f"{_PREFIX}.builtin": nki.builtin,
    f"{_PREFIX}.isa": nki.isa,
    f"{_PREFIX}.isa.constants": nki.isa.constants,
    f"{_PREFIX}.language": nki.language,
    f"{_PREFIX}.language.dtypes": nki.language.dtypes,
    f"{_PREFIX}.compiler": nki.compiler,
    f"{_PREFIX}.tensor": nki.tensor,
    f"{_PREFIX}.typing": nki.typing,
}
for _name, _target in _ALIASES.items():
    sys.modules[_name] = _target

"""Build of the C++ extensions; everything else about the package is in pyproject.toml."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from setuptools import Extension, setup

# A stale extension must not stop the build that replaces it.
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

from torch.utils.cpp_extension import BuildExtension, CppExtension

ROOT = Path(__file__).resolve().parent
CSRC = Path("src/torch_neuronx/csrc")
NKI_CSRC = Path("src/nki/csrc")

COMPILE_FLAGS = [
    "-std=c++20",
    "-O2",
    "-g0",
    "-fvisibility=hidden",
    # Each rounding of the unfused operations is kept: no multiply-add contraction.
    "-ffp-contract=off",
    # ATen's parallel_for is a header; the OpenMP symbols come from the copy that torch has loaded.
    "-fopenmp",
    "-Wall",
    "-Wextra",
    "-Wno-unused-parameter",
    "-Wno-missing-field-initializers",
    "-Wno-unknown-pragmas",
]


class BuildExtensions(BuildExtension):
    """Incremental build in build/ and an atomic replacement of the .so.

    torch puts ccache before the compiler by itself.
    """

    def finalize_options(self) -> None:
        super().finalize_options()
        # An editable install asks for a temporary folder; a fixed one lets ninja see what changed.
        self.build_temp = str(ROOT / "build" / "native")

    def build_extensions(self) -> None:
        os.environ.setdefault("MAX_JOBS", str(os.cpu_count() or 1))
        super().build_extensions()

    def copy_file(self, infile: str, outfile: str, *args: object, **kwargs: object) -> object:
        # Running processes keep the old file; new ones never see half of the new one.
        target = Path(outfile)
        if target.suffix != ".so":
            return super().copy_file(infile, outfile, *args, **kwargs)
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        shutil.copyfile(infile, partial)
        shutil.copymode(infile, partial)
        partial.replace(target)
        return outfile, True


def sources(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*.cpp"))


setup(
    ext_modules=[
        CppExtension(
            "torch_neuronx._C",
            sources=sources(CSRC),
            include_dirs=[str(ROOT / CSRC)],
            extra_compile_args={"cxx": COMPILE_FLAGS},
            extra_link_args=["-Wl,--as-needed"],
        ),
        # A plain library that nki loads through ctypes: neither torch nor Python in it.
        Extension(
            "nki._replay",
            sources=sources(NKI_CSRC),
            include_dirs=[str(ROOT / NKI_CSRC)],
            extra_compile_args={"cxx": [*COMPILE_FLAGS, "-O3"]},
        ),
    ],
    cmdclass={"build_ext": BuildExtensions.with_options(use_ninja=True)},
)

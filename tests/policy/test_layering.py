"""A folder is a layer: who may import whom, in Python and in C++."""

from __future__ import annotations

import sys

import pytest

from policy.sources import SRC, cpp_files, imported_modules, includes, python_files, shown

# package -> our packages that it may import
PACKAGES = {
    "neuron_chip": set(),
    "nki": {"neuron_chip"},
    "nki_cpu_simulator": {"nki"},
    "nkilib": {"nki"},
    "torch_neuronx": {"nkilib", "nki", "neuron_chip"},
    "neuron_explorer": {"neuron_chip"},
    "vllm_neuron": {"torch_neuronx", "nkilib"},
}
# package -> foreign packages that it may import besides the standard library
FOREIGN = {
    "neuron_chip": set(),
    "nki": {"numpy", "ml_dtypes"},
    "nki_cpu_simulator": {"numpy", "ml_dtypes"},
    "nkilib": {"numpy", "ml_dtypes"},
    "torch_neuronx": {"torch", "numpy", "ml_dtypes", "functorch"},
    "neuron_explorer": {"pyarrow"},
    "vllm_neuron": {"torch", "vllm", "numpy", "transformers"},
}
# part of torch_neuronx -> other parts that it may import
BASE = {"_C", "errors", "settings", "version"}
PARTS = {
    "errors": set(),
    "version": set(),
    "allocator_config": {"errors"},
    "settings": {"errors", "allocator_config"},
    "ops": BASE,
    "clock": BASE | {"ops"},
    "dry": BASE,
    "device": BASE | {"clock", "dry"},
    "tile_kernel": BASE | {"device", "ops"},
    "distributed": BASE | {"device"},
    "profiler": BASE | {"device", "ops"},
    "planner": BASE | {"clock", "dry", "device", "ops", "distributed", "registration"},
    "compiler": BASE | {"clock", "device", "ops", "tile_kernel"},
    # These join everything: the public names, and the start-up.
    "__init__": None,
    "registration": None,
}
# C++ folder of torch_neuronx -> folders whose headers it may include
CPP = {
    "runtime": {"runtime"},
    "c10": {"runtime", "c10"},
    "host_kernels": {"runtime", "c10", "host_kernels"},
    "dispatch": {"runtime", "c10", "host_kernels", "dispatch"},
    "distributed": {"runtime", "c10", "distributed"},
    "profiler": {"runtime", "c10", "profiler"},
    "bindings": {
        "runtime",
        "c10",
        "host_kernels",
        "dispatch",
        "distributed",
        "profiler",
        "bindings",
    },
}
CSRC = SRC / "torch_neuronx" / "csrc"


def packages() -> list[str]:
    return sorted(path.name for path in SRC.iterdir() if path.is_dir() and any(path.rglob("*.py")))


@pytest.mark.parametrize("package", packages())
def test_package_imports_only_the_layers_below(package):
    assert package in PACKAGES, f"say in PACKAGES what {package} may import"
    ours = PACKAGES[package] | {package}
    allowed = ours | FOREIGN[package] | set(sys.stdlib_module_names)
    wrong = [
        f"{shown(path)}:{line} imports {name}"
        for path in python_files(f"src/{package}")
        for line, name in imported_modules(path)
        if name.partition(".")[0] not in allowed
    ]
    assert not wrong, "\n".join(wrong)


def test_private_modules_stay_inside_their_package():
    wrong = []
    for package in packages():
        for path in python_files(f"src/{package}"):
            for line, name in imported_modules(path):
                top, *rest = name.split(".")
                if top in PACKAGES and top != package and any(part[0] == "_" for part in rest):
                    wrong.append(f"{shown(path)}:{line} imports {name}")
    assert not wrong, "\n".join(wrong)


def part_of(name: str) -> str | None:
    """The part of torch_neuronx that a dotted name belongs to."""
    top, _, rest = name.partition(".")
    return rest.partition(".")[0] if top == "torch_neuronx" and rest else None


def test_parts_of_torch_neuronx_import_only_what_their_row_allows():
    wrong = []
    for path in python_files("src/torch_neuronx"):
        part = path.relative_to(SRC / "torch_neuronx").with_suffix("").parts[0]
        assert part in PARTS, f"say in PARTS what {part} may import"
        allowed = PARTS[part]
        if allowed is None:
            continue
        wrong += [
            f"{shown(path)}:{line} imports {name}"
            for line, name in imported_modules(path)
            if (other := part_of(name)) is not None and other not in allowed | {part}
        ]
    assert not wrong, "\n".join(wrong)


def test_cpp_includes_only_the_layers_below():
    wrong = []
    for path in cpp_files("src/torch_neuronx/csrc"):
        layer = path.relative_to(CSRC).parts[0]
        assert layer in CPP, f"say in CPP what {layer} may include"
        for quoted, name in includes(path):
            other = name.partition("/")[0]
            if quoted and "/" in name and other not in CPP[layer]:
                wrong.append(f"{shown(path)} includes {name}")
    assert not wrong, "\n".join(wrong)


def test_runtime_includes_the_standard_library_only():
    wrong = [
        f"{shown(path)} includes <{name}>"
        for path in cpp_files("src/torch_neuronx/csrc/runtime")
        for quoted, name in includes(path)
        if not quoted and name.startswith(("torch/", "ATen/", "c10/", "pybind11/", "Python.h"))
    ]
    assert not wrong, "\n".join(wrong)


def test_only_bindings_include_python():
    wrong = [
        f"{shown(path)} includes <{name}>"
        for path in cpp_files("src/torch_neuronx/csrc")
        if path.relative_to(CSRC).parts[0] != "bindings"
        for _, name in includes(path)
        if name == "Python.h"
        or name.startswith("pybind11/")
        or name in ("torch/extension.h", "torch/csrc/utils/pybind.h")
    ]
    assert not wrong, "\n".join(wrong)

// The parts of torch_neuronx._C; each adds its functions to the module.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace neuron::bindings {

void add_device(pybind11::module_& m);
void add_memory(pybind11::module_& m);
void add_tracking(pybind11::module_& m);
void add_host(pybind11::module_& m);
void add_clock(pybind11::module_& m);
void add_origins(pybind11::module_& m);
void add_backward_threads(pybind11::module_& m);
void add_sharing(pybind11::module_& m);

// "file.py:12 in forward" of the innermost Python frame, "" without one.
// Takes the GIL.
std::string current_python_line();

// The number of the calling Python line outside PyTorch and this package, of
// the innermost line if all are inside; 0 where no Python runs.
uint32_t python_line_number();

}  // namespace neuron::bindings

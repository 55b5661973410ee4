// The parts of torch_neuronx._C; each adds its functions to the module.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace neuron::bindings {

void add_device(pybind11::module_& m);
void add_memory(pybind11::module_& m);
void add_tracking(pybind11::module_& m);
void add_host(pybind11::module_& m);

// "file.py:12 in forward" of the innermost Python frame, "" without one.
// Takes the GIL.
std::string current_python_line();

}  // namespace neuron::bindings

// torch_neuronx._C: the list of its parts.
#include "bindings/bindings.h"
#include "dispatch/boxed.h"

PYBIND11_MODULE(_C, m) {
  neuron::register_remaining_ops();
  neuron::bindings::add_device(m);
  neuron::bindings::add_memory(m);
  neuron::bindings::add_tracking(m);
  neuron::bindings::add_host(m);
  neuron::bindings::add_clock(m);
  neuron::bindings::add_origins(m);
  neuron::bindings::add_backward_threads(m);
  neuron::bindings::add_sharing(m);
}

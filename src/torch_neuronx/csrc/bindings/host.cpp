// Running host code on device tensors: what compiled graphs stand on.
#include <torch/csrc/autograd/python_variable.h>

#include "bindings/bindings.h"
#include "dispatch/host_call.h"

namespace neuron::bindings {
namespace py = pybind11;
namespace {

// Calls `function(list)` with the CPU alias of every neuron tensor in
// `inputs`; CPU tensors among the results become tensors of `device`, taking
// over their memory; an alias among them becomes the tensor it aliases.
py::list run_on_host(
    const py::object& function,
    const py::list& inputs,
    int device,
    const std::string& name) {
  static thread_local std::unordered_map<std::string, OpRecord*> records;
  auto*& record = records[name];
  if (record == nullptr) {
    record = &op_record(name);
    record->takes_cpu_tensors = true;
  }
  note_executed(*record);
  HostCall call(*record);
  call.on_device(device_at(device));
  py::list arguments(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    py::object item = inputs[i];
    if (THPVariable_Check(item.ptr())) {
      // Any input may be written: compiled graphs update buffers in place.
      item = py::reinterpret_steal<py::object>(THPVariable_Wrap(
          call.to_host(THPVariable_Unpack(item.ptr()), /*written=*/true)));
    }
    arguments[i] = std::move(item);
  }
  py::object results;
  {
    const HostCall::Scope scope(call);
    results = function(arguments);
  }
  call.finish();
  py::list out;
  for (const auto& item : py::reinterpret_borrow<py::sequence>(results)) {
    if (THPVariable_Check(item.ptr())) {
      const auto& result = THPVariable_Unpack(item.ptr());
      // Held by the sequence and by this loop: nobody keeps it.
      const bool sole = Py_REFCNT(item.ptr()) <= 2 && result.use_count() == 1;
      out.append(
          py::reinterpret_steal<py::object>(
              THPVariable_Wrap(call.to_device(result, sole))));
    } else {
      out.append(item);
    }
  }
  return out;
}

}  // namespace

void add_host(py::module_& m) { m.def("_run_on_host", &run_on_host); }

}  // namespace neuron::bindings

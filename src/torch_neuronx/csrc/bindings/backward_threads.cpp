// Autograd runs the backward of device tensors on a thread per device. Such a
// thread lets go of Python objects after the caller of backward has its result
// or error, and a thread that waits for the GIL while the interpreter ends
// aborts the process.
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/engine.h>

#include <chrono>
#include <future>
#include <thread>

#include "bindings/bindings.h"
#include "c10/device.h"

namespace neuron::bindings {
namespace py = pybind11;
namespace {

namespace autograd = torch::autograd;

// Runs on its device's thread and does nothing. With the lowest sequence
// number it comes after all that a failed backward left in the queue.
struct Last : autograd::Node {
  explicit Last(c10::Device device) : Node(/*sequence_nr=*/0) {
    add_input_metadata(
        c10::TensorOptions().device(device).dtype(c10::kFloat),
        c10::SymIntArrayRef{},
        /*is_tensor_subclass=*/false,
        /*is_nested=*/false,
        c10::kFloat);
  }
  autograd::variable_list apply(autograd::variable_list&&) override {
    return {};
  }
};

// Their common root, run by the caller: hands them no gradient.
struct Fan : autograd::Node {
  explicit Fan(autograd::edge_list&& ends)
      : Node(/*sequence_nr=*/0, std::move(ends)) {}
  autograd::variable_list apply(autograd::variable_list&&) override {
    return autograd::variable_list(num_outputs());
  }
};

// Whether other threads than this one ever entered Python, as backward threads
// do when they start.
bool other_python_threads() {
  PyThreadState* first =
      PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  return first != nullptr && PyThreadState_Next(first) != nullptr;
}

// Waits until every backward thread has finished what was queued before, with
// no Python object in hand. False if that took longer than `seconds`.
bool finish_backward_threads(double seconds) {
  if (!other_python_threads()) {
    return true;
  }
  const py::gil_scoped_release no_gil;
  std::promise<void> finished;
  auto done = finished.get_future();
  // A thread of its own, because the engine's wait has no deadline.
  std::thread([finished = std::move(finished)]() mutable {
    try {
      autograd::edge_list ends;
      for (int i = 0; i < runtime::device_count(); ++i) {
        ends.emplace_back(c10::make_intrusive<Last>(device_at(i)), 0);
      }
      const at::Tensor start = at::zeros({});
      auto fan = c10::make_intrusive<Fan>(std::move(ends));
      fan->add_input_metadata(start);
      autograd::Engine::get_default_engine().execute(
          {autograd::Edge(std::move(fan), 0)},
          {start},
          /*keep_graph=*/false,
          /*create_graph=*/false,
          /*accumulate_grad=*/true);
      finished.set_value();
    } catch (...) {
      finished.set_exception(std::current_exception());
    }
  }).detach();
  if (done.wait_for(std::chrono::duration<double>(seconds)) !=
      std::future_status::ready) {
    return false;
  }
  done.get();
  return true;
}

}  // namespace

void add_backward_threads(py::module_& m) {
  m.def("_finish_backward_threads", &finish_backward_threads);
}

}  // namespace neuron::bindings

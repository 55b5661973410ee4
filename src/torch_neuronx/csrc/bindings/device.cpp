// Devices, streams, generators.
#include <torch/csrc/Event.h>
#include <torch/csrc/Generator.h>

#include "bindings/bindings.h"
#include "c10/device.h"
#include "c10/generator.h"
#include "runtime/clock.h"
#include "runtime/memory.h"

namespace neuron::bindings {
namespace py = pybind11;
namespace {

void configure(
    const std::string& driver,
    const std::vector<std::pair<std::string, int64_t>>& devices,
    bool launch_blocking,
    double wait_deadline_s,
    int64_t max_split_size,
    double memory_fraction) {
  runtime::Config config;
  for (const auto& [name, hbm_bytes] : devices) {
    config.devices.push_back({name, hbm_bytes});
  }
  config.backing = driver == "dry" ? runtime::MemoryBacking::address_only
                                   : runtime::MemoryBacking::committed;
  config.launch_blocking = launch_blocking;
  config.wait_deadline_seconds = wait_deadline_s;
  config.max_split_size = max_split_size;
  with_torch_errors([&] {
    runtime::configure(std::move(config));
    if (memory_fraction < 1.0) {
      for (int device = 0; device < runtime::device_count(); ++device) {
        runtime::set_memory_fraction(device, memory_fraction);
      }
    }
  });
}

int64_t native_handle(int64_t stream_id, int device, bool drain) {
  auto& queue =
      queue_of(c10::Stream(c10::Stream::UNSAFE, device_at(device), stream_id));
  if (drain) {
    py::gil_scoped_release no_gil;
    with_torch_errors([&] { queue.wait_idle(); });
  }
  return reinterpret_cast<int64_t>(&queue);
}

// A thread that blocks lets Python run: what it waits for may need Python.
void* release_python() {
  return Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread()
                                                  : nullptr;
}

void take_python_back(void* saved) {
  if (saved != nullptr) {
    PyEval_RestoreThread(static_cast<PyThreadState*>(saved));
  }
}

}  // namespace

std::string current_python_line() {
  if (!Py_IsInitialized()) {
    return {};
  }
  py::gil_scoped_acquire gil;
  auto* frame = PyEval_GetFrame();
  if (frame == nullptr) {
    return {};
  }
  auto* code = PyFrame_GetCode(frame);
  const auto file = py::str(reinterpret_cast<PyObject*>(code->co_filename))
                        .cast<std::string>();
  const auto name =
      py::str(reinterpret_cast<PyObject*>(code->co_name)).cast<std::string>();
  Py_DECREF(code);
  return file + ":" + std::to_string(PyFrame_GetLineNumber(frame)) + " in " +
         name;
}

void add_device(py::module_& m) {
  runtime::set_wait_hooks(&release_python, &take_python_back);
  m.def("_configure", &configure);
  m.def("_device_count", &runtime::device_count);
  m.def("_current_device", &runtime::current_device);
  m.def("_set_device", [](int device) {
    with_torch_errors([&] { runtime::set_current_device(device); });
  });
  m.def("_exchange_device", [](int device) {
    return with_torch_errors([&] { return runtime::exchange_device(device); });
  });
  m.def("_maybe_exchange_device", [](int device) {
    return device < 0 ? runtime::current_device() : with_torch_errors([&] {
      return runtime::exchange_device(device);
    });
  });
  m.def("_synchronize", [](int device) {
    py::gil_scoped_release no_gil;
    with_torch_errors([&] {
      runtime::synchronize_device(checked_index(device_at(device)));
      runtime::clock::synchronize(checked_index(device_at(device)));
    });
  });
  m.def("_is_in_bad_fork", &runtime::in_bad_fork);
  m.def("_is_used", &runtime::used);
  m.def("_default_generator", [](int device) {
    return py::reinterpret_steal<py::object>(
        THPGenerator_initDefaultGenerator(default_generator(device)));
  });
  m.def("_stream_native_handle", &native_handle);
  // torch.Event.elapsed_time refuses subclasses.
  m.def(
      "_event_elapsed_ms", [](const py::object& start, const py::object& end) {
        return reinterpret_cast<THPEvent*>(start.ptr())
            ->event.elapsedTime(reinterpret_cast<THPEvent*>(end.ptr())->event);
      });
}

}  // namespace neuron::bindings

// Where calls and allocations come from: Python lines and modules.
#include <mutex>
#include <unordered_map>

#include "bindings/bindings.h"
#include "c10/device.h"
#include "dispatch/observer.h"
#include "runtime/memory.h"
#include "runtime/op.h"
#include "runtime/segment.h"

namespace neuron::bindings {
namespace py = pybind11;
namespace {

struct Place {
  PyCodeObject* code;
  int instruction;
  bool operator==(const Place&) const = default;
};

struct PlaceHash {
  size_t operator()(const Place& place) const noexcept {
    return std::hash<const void*>()(place.code) * 31 +
           static_cast<size_t>(place.instruction);
  }
};

// Guarded by the GIL. Code objects are kept, so that addresses stay theirs.
struct Lines {
  std::vector<std::string> library_folders;
  std::unordered_map<PyCodeObject*, bool> is_library;
  std::unordered_map<Place, uint32_t, PlaceHash> numbers;
  std::vector<std::string> texts{""};
};

Lines& lines() {
  static auto* leaked = new Lines();
  return *leaked;
}

bool is_library(PyCodeObject* code) {
  auto& all = lines();
  const auto [found, added] = all.is_library.try_emplace(code, false);
  if (added) {
    Py_INCREF(code);
    const auto file = py::str(reinterpret_cast<PyObject*>(code->co_filename))
                          .cast<std::string>();
    for (const auto& folder : all.library_folders) {
      found->second |= file.rfind(folder, 0) == 0;
    }
    found->second |=
        file.rfind("<", 0) == 0 && file != "<string>" && file != "<stdin>";
  }
  return found->second;
}

uint32_t number_of(PyFrameObject* frame, PyCodeObject* code) {
  auto& all = lines();
  const auto [found, added] = all.numbers.try_emplace(
      {code, PyFrame_GetLasti(frame)}, static_cast<uint32_t>(all.texts.size()));
  if (added) {
    is_library(code);  // keeps it
    all.texts.push_back(
        py::str(reinterpret_cast<PyObject*>(code->co_filename))
            .cast<std::string>() +
        ":" + std::to_string(PyFrame_GetLineNumber(frame)) + " in " +
        py::str(reinterpret_cast<PyObject*>(code->co_name))
            .cast<std::string>());
  }
  return found->second;
}

std::shared_ptr<void> gather_origin() {
  return std::make_shared<std::pair<observer::Origin, uint32_t>>(
      observer::current_origin(), observer::current_op());
}

py::tuple origin_tuple(const std::shared_ptr<void>& context) {
  if (context == nullptr) {
    return py::make_tuple(0, 0, false, "");
  }
  const auto& [origin, op] =
      *static_cast<const std::pair<observer::Origin, uint32_t>*>(context.get());
  return py::make_tuple(
      origin.line,
      origin.module,
      origin.backward,
      op == 0 ? "" : runtime::op_name(op));
}

// (address, bytes) of what is allocated now.
py::list live_blocks(int device) {
  py::list rows;
  for (const auto& segment :
       runtime::memory_snapshot(checked_index(device_at(device)))) {
    auto address = segment.address;
    for (const auto& block : segment.blocks) {
      if (block.allocated) {
        rows.append(
            py::make_tuple(
                address, runtime::rounded_size(block.requested_size)));
      }
      address += block.size;
    }
  }
  return rows;
}

// (position; bytes, negative when freed; address; origin) in order.
py::list allocations(int device) {
  py::list rows;
  size_t position = 0;
  for (const auto& entry :
       runtime::memory_trace(checked_index(device_at(device)))) {
    const auto size = static_cast<int64_t>(entry.size);
    ++position;
    if (entry.action == runtime::TraceAction::alloc) {
      rows.append(
          py::make_tuple(
              position, size, entry.address, origin_tuple(entry.context)));
    } else if (entry.action == runtime::TraceAction::free_requested) {
      rows.append(py::make_tuple(position, -size, entry.address, py::none()));
    }
  }
  return rows;
}

}  // namespace

uint32_t python_line_number() {
  // Operators run without Python's lock; a thread that never ran Python has
  // no line.
  if (!Py_IsInitialized() || PyGILState_GetThisThreadState() == nullptr) {
    return 0;
  }
  const py::gil_scoped_acquire gil;
  auto* frame = PyEval_GetFrame();
  if (frame == nullptr) {
    return 0;
  }
  Py_INCREF(frame);
  uint32_t innermost = 0;
  while (frame != nullptr) {
    auto* code = PyFrame_GetCode(frame);
    const bool ours = !is_library(code);
    uint32_t number = 0;
    if (ours || innermost == 0) {
      number = number_of(frame, code);
      innermost = innermost == 0 ? number : innermost;
    }
    Py_DECREF(code);
    if (ours) {
      Py_DECREF(frame);
      return number;
    }
    auto* outer = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = outer;
  }
  return innermost;
}

void add_origins(py::module_& m) {
  observer::set_line_hook(&python_line_number);
  m.def("_set_library_folders", [](std::vector<std::string> folders) {
    lines().library_folders = std::move(folders);
    lines().is_library.clear();
  });
  m.def("_python_lines", [] { return lines().texts; });
  m.def("_set_module", &observer::set_module);
  m.def("_record_allocations", [](bool enabled) {
    if (enabled) {
      runtime::start_memory_trace(SIZE_MAX, &gather_origin);
    } else {
      runtime::stop_memory_trace();
    }
  });
  m.def("_live_blocks", &live_blocks);
  m.def("_allocations", &allocations);
  m.def("_num_allocator_events", [](int device) {
    return runtime::memory_trace_length(checked_index(device_at(device)));
  });
}

}  // namespace neuron::bindings

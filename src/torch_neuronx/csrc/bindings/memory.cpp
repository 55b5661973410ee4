// Memory statistics, limits, snapshots.
#include "runtime/memory.h"
#include "bindings/bindings.h"
#include "c10/device.h"

namespace neuron::bindings {
namespace py = pybind11;
namespace {

py::dict to_dict(const runtime::Stat& stat) {
  py::dict out;
  out["current"] = stat.current;
  out["peak"] = stat.peak;
  out["allocated"] = stat.allocated;
  out["freed"] = stat.freed;
  return out;
}

py::dict to_dict(const runtime::StatArray& stats) {
  constexpr std::array<const char*, 3> pools{"all", "small_pool", "large_pool"};
  py::dict out;
  for (size_t i = 0; i < pools.size(); ++i) {
    out[pools[i]] = to_dict(stats[i]);
  }
  return out;
}

// The nesting of torch._C._cuda_memoryStats.
py::dict memory_stats(int device) {
  const auto stats = runtime::memory_stats(checked_index(device_at(device)));
  py::dict out;
  out["num_alloc_retries"] = stats.num_alloc_retries;
  out["num_ooms"] = stats.num_ooms;
  out["num_sync_all_streams"] = 0;
  out["num_device_alloc"] = stats.num_device_alloc;
  out["num_device_free"] = stats.num_device_free;
  out["allocation"] = to_dict(stats.allocation);
  out["segment"] = to_dict(stats.segment);
  out["active"] = to_dict(stats.active);
  out["inactive_split"] = to_dict(stats.inactive_split);
  out["allocated_bytes"] = to_dict(stats.allocated_bytes);
  out["reserved_bytes"] = to_dict(stats.reserved_bytes);
  out["active_bytes"] = to_dict(stats.active_bytes);
  out["inactive_split_bytes"] = to_dict(stats.inactive_split_bytes);
  out["requested_bytes"] = to_dict(stats.requested_bytes);
  return out;
}

// Python frames of an allocation, innermost first: (file, line, function).
struct Frames {
  std::vector<std::tuple<std::string, int, std::string>> frames;
};

std::shared_ptr<void> gather_frames() {
  if (!Py_IsInitialized()) {
    return nullptr;
  }
  py::gil_scoped_acquire gil;
  auto gathered = std::make_shared<Frames>();
  auto* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame != nullptr) {
    auto* code = PyFrame_GetCode(frame);
    gathered->frames.emplace_back(
        py::str(reinterpret_cast<PyObject*>(code->co_filename)),
        PyFrame_GetLineNumber(frame),
        py::str(reinterpret_cast<PyObject*>(code->co_name)));
    Py_DECREF(code);
    auto* outer = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = outer;
  }
  return gathered;
}

py::list to_list(const std::shared_ptr<void>& context) {
  py::list out;
  if (const auto* gathered = static_cast<const Frames*>(context.get())) {
    for (const auto& [file, line, name] : gathered->frames) {
      py::dict frame;
      frame["filename"] = file;
      frame["line"] = line;
      frame["name"] = name;
      out.append(frame);
    }
  }
  return out;
}

py::dict to_dict(const runtime::SegmentInfo& segment) {
  py::dict out;
  out["device"] = segment.device;
  out["address"] = segment.address;
  out["total_size"] = segment.total_size;
  out["allocated_size"] = segment.allocated_size;
  out["active_size"] = segment.active_size;
  out["requested_size"] = segment.requested_size;
  out["stream"] = segment.queue;
  out["segment_type"] = segment.is_large ? "large" : "small";
  out["segment_pool_id"] = py::make_tuple(0, 0);
  out["is_expandable"] = false;
  out["frames"] = py::list();
  py::list blocks;
  auto address = segment.address;
  for (const auto& block : segment.blocks) {
    py::dict row;
    row["address"] = address;
    row["size"] = block.size;
    row["requested_size"] = block.requested_size;
    row["state"] = block.allocated
                       ? "active_allocated"
                       : (block.active ? "active_pending_free" : "inactive");
    row["frames"] = to_list(block.context);
    blocks.append(row);
    address += block.size;
  }
  out["blocks"] = blocks;
  return out;
}

const char* action_name(runtime::TraceAction action) {
  switch (action) {
    case runtime::TraceAction::alloc:
      return "alloc";
    case runtime::TraceAction::free_requested:
      return "free_requested";
    case runtime::TraceAction::free_completed:
      return "free_completed";
    case runtime::TraceAction::segment_alloc:
      return "segment_alloc";
    case runtime::TraceAction::segment_free:
      return "segment_free";
    case runtime::TraceAction::oom:
      return "oom";
  }
  return "unknown";
}

py::dict memory_snapshot() {
  py::list segments;
  py::list traces;
  for (int device = 0; device < runtime::device_count(); ++device) {
    for (const auto& segment : runtime::memory_snapshot(device)) {
      segments.append(to_dict(segment));
    }
    py::list trace;
    for (const auto& entry : runtime::memory_trace(device)) {
      py::dict row;
      row["action"] = action_name(entry.action);
      row[entry.action == runtime::TraceAction::oom ? "device_free" : "addr"] =
          entry.address;
      row["size"] = entry.size;
      row["stream"] = entry.queue;
      row["time_us"] = entry.time_us;
      row["frames"] = to_list(entry.context);
      trace.append(row);
    }
    traces.append(trace);
  }
  py::dict out;
  out["segments"] = segments;
  out["device_traces"] = traces;
  return out;
}

}  // namespace

void add_memory(py::module_& m) {
  m.def("_memory_stats", &memory_stats);
  m.def("_reset_peak_memory_stats", [](int device) {
    runtime::reset_peak_memory_stats(checked_index(device_at(device)));
  });
  m.def("_reset_accumulated_memory_stats", [](int device) {
    runtime::reset_accumulated_memory_stats(checked_index(device_at(device)));
  });
  m.def("_empty_cache", [] {
    py::gil_scoped_release no_gil;
    with_torch_errors([] {
      for (int device = 0; device < runtime::device_count(); ++device) {
        runtime::empty_cache(device);
      }
    });
  });
  m.def("_memory_info", [](int device) {
    return runtime::memory_info(checked_index(device_at(device)));
  });
  m.def("_set_memory_fraction", [](int device, double fraction) {
    with_torch_errors([&] {
      runtime::set_memory_fraction(checked_index(device_at(device)), fraction);
    });
  });
  m.def("_get_memory_fraction", [](int device) {
    return runtime::memory_fraction(checked_index(device_at(device)));
  });
  m.def("_memory_snapshot", &memory_snapshot);
  m.def(
      "_record_memory_history",
      [](bool enabled, size_t max_entries, bool stacks) {
        if (enabled) {
          runtime::start_memory_trace(
              max_entries, stacks ? &gather_frames : nullptr);
        } else {
          runtime::stop_memory_trace();
        }
      });
}

}  // namespace neuron::bindings

// The observer of ops, the modelled clock, and the dry driver's questions.
#include "runtime/clock.h"

#include <c10/core/ScalarType.h>
#include <torch/csrc/Event.h>
#include <torch/csrc/Exceptions.h>

#include "bindings/bindings.h"
#include "c10/allocator.h"
#include "c10/device.h"
#include "dispatch/dry.h"
#include "dispatch/observer.h"
#include "runtime/event.h"
#include "runtime/memory.h"
#include "runtime/op.h"

namespace neuron::bindings {
namespace py = pybind11;
namespace {

// Leaked with the interpreter; set once.
py::object& price_function() {
  static auto* leaked = new py::object();
  return *leaked;
}

py::object& supply_function() {
  static auto* leaked = new py::object();
  return *leaked;
}

observer::Price ask_price(uint32_t signature) {
  const py::gil_scoped_acquire gil;
  const auto [launch_ns, work_ns, host_waits] =
      price_function()(signature).cast<std::tuple<int64_t, int64_t, bool>>();
  return {launch_ns, work_ns, host_waits};
}

double ask_user(const std::string& op, dry::Needs needs) {
  const py::gil_scoped_acquire gil;
  try {
    return supply_function()(op, needs == dry::Needs::size).cast<double>();
  } catch (py::error_already_set& error) {
    // The form in which PyTorch carries Python's errors through C++.
    python_error carried;
    error.restore();
    carried.persist();
    throw carried;
  }
}

std::vector<int64_t> slice(const SignatureKey& key, size_t& at, size_t length) {
  const auto first = key.begin() + static_cast<std::ptrdiff_t>(at);
  at += length;
  return {first, first + static_cast<std::ptrdiff_t>(length)};
}

py::object decode(const SignatureKey& key, size_t& at) {
  const auto tag = static_cast<SignatureTag>(key.at(at++));
  switch (tag) {
    case SignatureTag::integer:
      return py::int_(key.at(at++));
    case SignatureTag::boolean:
      return py::bool_(key.at(at++) != 0);
    case SignatureTag::number:
      return py::float_(0.0);
    case SignatureTag::text: {
      const auto length = static_cast<size_t>(key.at(at++));
      const auto letters = slice(key, at, length);
      return py::str(std::string(letters.begin(), letters.end()));
    }
    case SignatureTag::list: {
      py::list items;
      for (auto left = key.at(at++); left > 0; --left) {
        items.append(decode(key, at));
      }
      return items;
    }
    case SignatureTag::tensor: {
      const auto device = key.at(at++);
      const auto dtype = static_cast<c10::ScalarType>(key.at(at++));
      const auto rank = static_cast<size_t>(key.at(at++));
      const auto sizes = slice(key, at, rank);
      const auto strides = slice(key, at, rank);
      return py::make_tuple(
          device == static_cast<int64_t>(SignatureDevice::neuron),
          c10::getDtypeNames(dtype).first,
          py::tuple(py::cast(sizes)),
          py::tuple(py::cast(strides)));
    }
    default:
      return py::none();
  }
}

// (op, arguments, results); a tensor is (on neuron, dtype, sizes, strides).
py::tuple signature_parts(uint32_t id) {
  const auto key = signature(id);
  py::list arguments;
  py::list results;
  auto* into = &arguments;
  size_t at = 1;
  while (at < key.size()) {
    if (key[at] == static_cast<int64_t>(SignatureTag::results)) {
      into = &results;
      ++at;
      continue;
    }
    into->append(decode(key, at));
  }
  return py::make_tuple(
      runtime::op_name(static_cast<uint32_t>(key.at(0))), arguments, results);
}

py::list counts() {
  py::list rows;
  for (const auto& row : observer::counts()) {
    rows.append(
        py::make_tuple(
            row.signature,
            row.origin.line,
            row.origin.module,
            row.origin.backward,
            row.calls));
  }
  return rows;
}

void add_work(
    const std::string& name,
    const std::vector<int64_t>& integers,
    int device,
    uint32_t queue) {
  SignatureKey key{runtime::op_id(name)};
  for (const auto integer : integers) {
    key.push_back(static_cast<int64_t>(SignatureTag::integer));
    key.push_back(integer);
  }
  observer::add(key, device, queue);
}

int64_t event_ns(const py::object& event) {
  TORCH_CHECK(
      THPEvent_Check(event.ptr()),
      "expected a torch.Event or torch.neuron.Event");
  const auto* recorded = static_cast<const runtime::Event*>(
      reinterpret_cast<THPEvent*>(event.ptr())->event.eventId());
  return recorded == nullptr ? -1 : recorded->modelled_ns();
}

// The device that something is allocated on, and how many bytes; -1 for none.
std::pair<int, int64_t> allocated_somewhere() {
  for (int device = 0; device < runtime::device_count(); ++device) {
    runtime::empty_cache(device);
    const auto stats = runtime::memory_stats(device);
    if (stats.active_bytes[0].current != 0 ||
        stats.reserved_bytes[0].current != 0) {
      return {device, stats.active_bytes[0].current};
    }
  }
  return {-1, 0};
}

// Only while nothing is allocated: memory of one driver means nothing to the
// other.
void set_driver(const std::string& driver) {
  const auto [device, nbytes] = allocated_somewhere();
  TORCH_CHECK(
      device < 0,
      nbytes,
      " bytes of tensors are alive on neuron:",
      device,
      ". Delete them before the driver changes: memory of one driver means "
      "nothing to another. A function's tensors go when it returns.");
  runtime::set_backing(
      driver == "dry" ? runtime::MemoryBacking::address_only
                      : runtime::MemoryBacking::committed);
  set_release_hook(nullptr);
}

// Goes from "dry" back to "host" with the last tensor. Nothing is queued
// under "dry", so this may happen wherever that one is released.
void leave_dry_when_free() {
  set_release_hook([] {
    if (runtime::is_dry() && allocated_somewhere().first < 0) {
      observer::stop();
      set_driver("host");
    }
  });
}

}  // namespace

void add_clock(py::module_& m) {
  m.def("_set_driver", [](const std::string& driver) {
    with_torch_errors([&] { set_driver(driver); });
  });
  m.def("_leave_dry_when_free", &leave_dry_when_free);
  m.def("_is_dry", &runtime::is_dry);
  m.def("_set_supply_hook", [](py::object function) {
    supply_function() = std::move(function);
    dry::set_supply_hook(&ask_user);
  });
  m.def("_set_price_hook", [](py::object function) {
    price_function() = std::move(function);
    observer::set_price_hook(&ask_price);
  });
  m.def("_observer_start", &observer::start);
  m.def("_observer_stop", &observer::stop);
  m.def("_observer_on", &observer::on);
  m.def("_observer_counts", &counts);
  m.def("_observe", &add_work);
  m.def("_signature", &signature_parts);
  m.def("_clock_now", [](int device) {
    return runtime::clock::now(checked_index(device_at(device)));
  });
  m.def("_clock_queue_now", [](int device, uint32_t queue) {
    return runtime::clock::now(device, queue);
  });
  m.def("_clock_wait", &runtime::clock::wait);
  m.def("_event_modelled_ns", &event_ns);
}

}  // namespace neuron::bindings

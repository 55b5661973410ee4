#include "dispatch/op_record.h"

#include <c10/util/Exception.h>

#include <map>
#include <mutex>
#include <string_view>

#include "runtime/op.h"

namespace neuron {

std::atomic<uint64_t> noted_dtypes{0};

namespace {

// Operators whose contract lets some tensors stay on the CPU while others are
// on the device: lengths, offsets, indices.
constexpr std::string_view kTakesCpuTensors[] = {
    "aten::index",
    "aten::_unsafe_index",
    "aten::index_put",
    "aten::index_put_",
    "aten::_index_put_impl",
    "aten::_index_put_impl_",
    "aten::_unsafe_index_put",
    "aten::_pack_padded_sequence",
    "aten::_pack_padded_sequence_backward",
    "aten::_ctc_loss",
    "aten::_ctc_loss_backward",
    "aten::_nested_tensor_from_mask",
    "aten::_nested_view_from_buffer",
    "aten::_nested_view_from_buffer_copy",
    "aten::_nested_from_padded",
    "aten::tensor_split",
    "aten::empty_quantized",
    "aten::_empty_affine_quantized",
    "aten::_empty_per_channel_affine_quantized",
    "aten::_foreach_add",
    "aten::_foreach_add_",
    "aten::_foreach_mul",
    "aten::_foreach_mul_",
    "aten::_foreach_div",
    "aten::_foreach_div_",
    "aten::_foreach_addcdiv",
    "aten::_foreach_addcdiv_",
    "aten::_foreach_addcmul",
    "aten::_foreach_addcmul_",
};

struct State {
  std::mutex mutex;
  std::unordered_map<std::string, OpRecord*> records;
  std::map<std::pair<std::string, std::string>, Fallback> fallbacks;
  std::array<DtypeReason, 64> dtypes;
  std::atomic<FallbackMode> mode{FallbackMode::record};
  std::atomic<std::string (*)()> line_hook{nullptr};
};

// Leaked: ops may run in destructors at exit.
State& state() {
  static auto* leaked = new State();
  return *leaked;
}

void fill_from_schema(OpRecord& record, const c10::FunctionSchema& schema) {
  const auto& arguments = schema.arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto* alias = arguments[i].alias_info();
    // Normalisation ops update running statistics without saying so.
    const bool running = arguments[i].name().rfind("running_", 0) == 0;
    if (((alias != nullptr && alias->isWrite()) || running) && i < 64) {
      record.written |= uint64_t{1} << i;
    }
    const auto* type = arguments[i].type().get();
    if (type->str().rfind("Generator", 0) == 0) {
      record.generator = static_cast<int>(i);
    }
  }
  record.takes_masks = schema.name().find("index") != std::string::npos;
  for (const auto name : kTakesCpuTensors) {
    record.takes_cpu_tensors |= schema.name() == name;
  }
}

std::string fallback_error(const std::string& op, const std::string& reason) {
  return op + " would not run on the chip: " + reason +
         " Strict mode refuses it; leave strict mode, or replace the op.";
}

void file(const OpRecord& op, const std::string& reason, bool exact_note) {
  auto& all = state();
  if (!exact_note && all.mode.load() == FallbackMode::raise) {
    TORCH_CHECK(false, fallback_error(op.name, reason));
  }
  {
    std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = all.fallbacks.find({op.name, reason});
    if (found != all.fallbacks.end()) {
      ++found->second.count;
      return;
    }
  }
  // Outside the lock: the hook takes the GIL.
  auto line = python_line();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto& entry = all.fallbacks[{op.name, reason}];
  entry.op = op.name;
  entry.reason = reason;
  entry.exact_note = exact_note;
  if (entry.count++ == 0) {
    entry.python_line = std::move(line);
  }
}

}  // namespace

OpRecord& op_record(const std::string& name) {
  auto& all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto& slot = all.records[name];
  if (slot == nullptr) {
    auto record = std::make_unique<OpRecord>();
    record->name = name;
    record->id = runtime::op_id(name);
    record->executed = &runtime::executed(record->id);
    const auto dot = name.find('.');
    const auto op = c10::Dispatcher::singleton().findSchema(
        {name.substr(0, dot),
         dot == std::string::npos ? "" : name.substr(dot + 1)});
    if (op.has_value()) {
      fill_from_schema(*record, op->schema());
    }
    slot = record.release();
  }
  return *slot;
}

OpRecord& op_record(const c10::OperatorHandle& op) {
  // An operator's name object lives as long as the operator: its address
  // identifies it.
  const auto* key = &op.operator_name();
  struct Slot {
    const void* key = nullptr;
    OpRecord* record = nullptr;
  };
  constexpr size_t slots = 1024;
  static thread_local std::array<Slot, slots> cache;
  auto& slot = cache[(reinterpret_cast<uintptr_t>(key) >> 4) % slots];
  if (C10_UNLIKELY(slot.key != key)) {
    slot = {key, &op_record(c10::toString(*key))};
  }
  return *slot.record;
}

void note_reason(const OpRecord& op) {
  if (const auto* reason = op.reason.load()) {
    file(op, *reason, /*exact_note=*/false);
  }
}

void note_dtype(const OpRecord& op, c10::ScalarType dtype) {
  const auto& row = state().dtypes[static_cast<size_t>(dtype)];
  file(op, row.reason, row.exact_note);
}

void note_mask(const OpRecord& op) {
  static auto& nonzero = op_record("aten::nonzero");
  if (const auto* reason = nonzero.reason.load()) {
    file(op, *reason, /*exact_note=*/false);
  }
}

void set_fallback_mode(FallbackMode mode) { state().mode = mode; }

void set_op_reasons(const std::unordered_map<std::string, std::string>& rows) {
  for (const auto& [name, reason] : rows) {
    // Leaked with its record.
    op_record(name).reason = new std::string(reason);
  }
}

void set_dtype_reasons(
    const std::unordered_map<c10::ScalarType, DtypeReason>& rows) {
  uint64_t mask = 0;
  for (const auto& [dtype, row] : rows) {
    state().dtypes[static_cast<size_t>(dtype)] = row;
    mask |= uint64_t{1} << static_cast<int>(dtype);
  }
  noted_dtypes = mask;
}

void set_python_line_hook(std::string (*hook)()) { state().line_hook = hook; }

std::string python_line() {
  auto* hook = state().line_hook.load();
  return hook != nullptr ? hook() : std::string();
}

std::vector<std::pair<std::string, uint64_t>> executed_ops() {
  auto& all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  std::vector<std::pair<std::string, uint64_t>> ops;
  for (const auto& [name, record] : all.records) {
    if (const auto count = record->executed->load(); count > 0) {
      ops.emplace_back(name, count);
    }
  }
  return ops;
}

std::vector<Fallback> fallbacks() {
  auto& all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  std::vector<Fallback> rows;
  for (const auto& [key, row] : all.fallbacks) {
    rows.push_back(row);
  }
  return rows;
}

void clear_op_tracking() {
  auto& all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.fallbacks.clear();
  for (const auto& [name, record] : all.records) {
    record->executed->store(0);
  }
}

}  // namespace neuron

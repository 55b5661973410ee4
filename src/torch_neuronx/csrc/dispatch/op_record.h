// What dispatch knows of an operator, and the account of what ran: executed
// ops, and fallbacks (ops that the chip itself could not run).
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/ScalarType.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "dispatch/observer.h"

namespace neuron {

struct OpRecord {
  std::string name;  // "aten::add.Tensor"
  uint32_t id = 0;   // runtime::op_id(name)
  std::atomic<uint64_t>* executed = nullptr;
  uint64_t written = 0;            // bit i: argument i is written
  int generator = -1;              // position of its Generator argument
  bool takes_cpu_tensors = false;  // by contract, not only 0-dim ones
  bool takes_masks = false;  // a boolean index makes its shape depend on data
  // Why the chip cannot run it, or null. Set from the rows in ops/.
  std::atomic<const std::string*> reason{nullptr};
};

// The record of `name`, made on first use; the reference is for ever.
OpRecord& op_record(const std::string& name);
// The same by handle: a few nanoseconds.
OpRecord& op_record(const c10::OperatorHandle& op);

// bit per ScalarType that has a note; tested on every op.
extern std::atomic<uint64_t> noted_dtypes;
// The slow half of `note`: files the fallback, or raises in strict mode.
void note_reason(const OpRecord& op);
void note_dtype(const OpRecord& op, c10::ScalarType dtype);
// `op` got a boolean index: it is a nonzero() in disguise.
void note_mask(const OpRecord& op);

inline void note_executed(const OpRecord& op) {
  op.executed->fetch_add(1, std::memory_order_relaxed);
  observer::executed(op.id);
  if (C10_UNLIKELY(op.reason.load(std::memory_order_relaxed) != nullptr)) {
    note_reason(op);
  }
}

inline void note(const OpRecord& op, c10::ScalarType dtype) {
  note_executed(op);
  const auto bit = uint64_t{1} << static_cast<int>(dtype);
  if (C10_UNLIKELY(noted_dtypes.load(std::memory_order_relaxed) & bit)) {
    note_dtype(op, dtype);
  }
}

enum class FallbackMode { record, raise };

struct Fallback {
  std::string op;
  std::string reason;
  bool exact_note = false;  // narrower on the chip, but no fallback
  uint64_t count = 0;
  std::string python_line;  // where it was first called, "" if unknown
};

struct DtypeReason {
  std::string reason;
  bool exact_note = false;
};

void set_fallback_mode(FallbackMode mode);
void set_op_reasons(const std::unordered_map<std::string, std::string>& rows);
void set_dtype_reasons(
    const std::unordered_map<c10::ScalarType, DtypeReason>& rows);
// Gives the Python line that is calling, "" outside Python.
void set_python_line_hook(std::string (*hook)());
std::string python_line();

std::vector<std::pair<std::string, uint64_t>> executed_ops();
std::vector<Fallback> fallbacks();
void clear_op_tracking();

}  // namespace neuron

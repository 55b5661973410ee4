// What ran, what the chip could not have run, and the launch recorder.
#include <torch/csrc/Dtype.h>

#include "bindings/bindings.h"
#include "dispatch/op_record.h"
#include "runtime/op.h"
#include "runtime/recorder.h"

namespace neuron::bindings {
namespace py = pybind11;
namespace {

using Rows = std::vector<std::tuple<py::object, std::string, bool>>;

void set_dtype_reasons(const Rows& rows) {
  std::unordered_map<c10::ScalarType, DtypeReason> reasons;
  for (const auto& [dtype, reason, exact_note] : rows) {
    TORCH_CHECK(THPDtype_Check(dtype.ptr()), "expected a torch.dtype");
    reasons[reinterpret_cast<THPDtype*>(dtype.ptr())->scalar_type] = {
        reason, exact_note};
  }
  neuron::set_dtype_reasons(reasons);
}

py::list fallback_rows() {
  py::list rows;
  for (const auto& row : fallbacks()) {
    rows.append(
        py::make_tuple(
            row.op, row.reason, row.count, row.python_line, row.exact_note));
  }
  return rows;
}

py::tuple recorder_stop() {
  py::list rows;
  const auto stopped = runtime::recorder::stop();
  for (const auto& record : stopped.records) {
    rows.append(
        py::make_tuple(
            runtime::op_name(record.op),
            record.queue,
            record.device,
            record.submit_ns,
            record.start_ns,
            record.end_ns,
            record.frame >= 0
                ? stopped.frames.at(static_cast<size_t>(record.frame))
                : std::string()));
  }
  return py::make_tuple(rows, stopped.dropped);
}

}  // namespace

void add_tracking(py::module_& m) {
  set_python_line_hook(&current_python_line);
  runtime::recorder::set_frame_hook(&current_python_line);
  m.def("_executed_ops", &executed_ops);
  m.def("_fallbacks", &fallback_rows);
  m.def("_clear_op_tracking", &clear_op_tracking);
  m.def("_set_fallback_mode", [](const std::string& mode) {
    set_fallback_mode(
        mode == "raise" ? FallbackMode::raise : FallbackMode::record);
  });
  m.def("_set_op_reasons", &set_op_reasons);
  m.def("_set_dtype_reasons", &set_dtype_reasons);
  m.def("_recorder_start", [](bool with_frames, size_t capacity) {
    runtime::recorder::start(with_frames, capacity);
  });
  m.def("_recorder_stop", &recorder_stop);
}

}  // namespace neuron::bindings

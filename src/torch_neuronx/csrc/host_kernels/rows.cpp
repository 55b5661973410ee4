#include "host_kernels/rows.h"

#include <algorithm>
#include <array>
#include <vector>

#include "host_kernels/isa.h"

namespace neuron::host_kernels {
namespace {

#if defined(__x86_64__)
// ATen has these for AVX2 only, and the lanes decide the order of additions.
RowKernels with_avx2_order(RowKernels kernels, const RowKernels& avx2) {
  std::copy_n(avx2.reduce, static_cast<int>(RowReduction::end), kernels.reduce);
  kernels.column_sum = avx2.column_sum;
  kernels.layer_norm = avx2.layer_norm;
  kernels.layer_norm_backward = avx2.layer_norm_backward;
  return kernels;
}
#endif

const detail::RowTable& table() {
#if defined(__x86_64__)
  if (host_isa() >= Isa::avx512) {
    static const auto mixed = [] {
      const auto& wide = detail::rows_avx512();
      const auto& avx2 = detail::rows_avx2();
      return detail::RowTable{
          with_avx2_order(wide.fp32, avx2.fp32),
          with_avx2_order(wide.bf16, avx2.bf16),
          with_avx2_order(wide.fp16, avx2.fp16)};
    }();
    return mixed;
  }
  if (host_isa() >= Isa::avx2) {
    return detail::rows_avx2();
  }
#endif
  return detail::rows_baseline();
}

}  // namespace

const RowKernels* row_kernels(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Float:
      return &table().fp32;
    case c10::ScalarType::BFloat16:
      return &table().bf16;
    case c10::ScalarType::Half:
      return &table().fp16;
    default:
      return nullptr;
  }
}

float* row_buffer(int slot, int64_t count) {
  // Leaked with its thread's exit order in mind: trivially destroyed.
  static thread_local auto* buffers =
      new std::array<std::vector<float>, kRowBuffers>();
  auto& buffer = (*buffers)[static_cast<size_t>(slot)];
  if (buffer.size() < static_cast<size_t>(count)) {
    buffer.resize(static_cast<size_t>(count));
  }
  return buffer.data();
}

}  // namespace neuron::host_kernels

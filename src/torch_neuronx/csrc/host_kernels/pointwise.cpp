#include "host_kernels/pointwise.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <limits>

#include "host_kernels/isa.h"
#include "host_kernels/parallel.h"
#include "host_kernels/pointwise_table.h"

// MKL's vector functions, which ATen uses for these on contiguous memory;
// absent where PyTorch was built without MKL.
extern "C" {
[[gnu::weak]] void vmsExp(int, const float*, float*, long long);
[[gnu::weak]] void vmsLn(int, const float*, float*, long long);
[[gnu::weak]] void vmsTanh(int, const float*, float*, long long);
[[gnu::weak]] void vmsSqrt(int, const float*, float*, long long);
[[gnu::weak]] void vmdSqrt(int, const double*, double*, long long);
}

namespace neuron::host_kernels {
namespace {

// High accuracy, denormals kept, no error callbacks.
constexpr long long kVectorMathMode = 0x00000002 | 0x00140000 | 0x00000100;

template <class T, auto kFunction>
void vector_math(void* out, const void* in, int64_t count) {
  constexpr int64_t most = int64_t{1} << 30;
  const auto* from = static_cast<const T*>(in);
  auto* to = static_cast<T*>(out);
  for (int64_t i = 0; i < count; i += most) {
    kFunction(
        static_cast<int>(std::min(most, count - i)),
        from + i,
        to + i,
        kVectorMathMode);
  }
}

PointwiseTable choose_table() {
#if defined(__x86_64__)
  auto table = host_isa() >= Isa::avx512 ? pointwise_avx512()
               : host_isa() >= Isa::avx2 ? pointwise_avx2()
                                         : pointwise_baseline();
#else
  auto table = pointwise_baseline();
#endif
  constexpr auto fp32 = c10::ScalarType::Float;
  constexpr auto fp64 = c10::ScalarType::Double;
  const auto replace = [&](Unary op, c10::ScalarType dtype, UnaryLoop loop) {
    table.unary[static_cast<int>(op)][column_of(dtype)] = loop;
  };
  if (vmsExp != nullptr) {
    replace(Unary::exp, fp32, vector_math<float, vmsExp>);
  }
  if (vmsLn != nullptr) {
    replace(Unary::log, fp32, vector_math<float, vmsLn>);
  }
  if (vmsSqrt != nullptr) {
    replace(Unary::sqrt, fp32, vector_math<float, vmsSqrt>);
  }
  if (vmdSqrt != nullptr) {
    replace(Unary::sqrt, fp64, vector_math<double, vmdSqrt>);
  }
  return table;
}

const PointwiseTable& table() {
  static const auto* chosen = new PointwiseTable(choose_table());
  return *chosen;
}

}  // namespace

UnaryLoop unary_loop(Unary op, c10::ScalarType dtype) {
  const int column = column_of(dtype);
  return column < 0 ? nullptr : table().unary[static_cast<int>(op)][column];
}

const BinaryLoops& binary_loops(Binary op, c10::ScalarType dtype) {
  static constexpr BinaryLoops none;
  const int column = column_of(dtype);
  return column < 0 ? none : table().binary[static_cast<int>(op)][column];
}

TernaryLoop ternary_loop(Ternary op, c10::ScalarType dtype) {
  const int column = column_of(dtype);
  return column < 0 ? nullptr : table().ternary[static_cast<int>(op)][column];
}

CastLoop cast_loop(c10::ScalarType from, c10::ScalarType to) {
  const int row = column_of(from);
  const int column = column_of(to);
  return row < 0 || column < 0 ? nullptr : table().cast[row][column];
}

ComputeValue widen(const void* data, c10::ScalarType dtype) {
  ComputeValue value{};
  switch (dtype) {
    case c10::ScalarType::BFloat16:
      value.as_float = *static_cast<const c10::BFloat16*>(data);
      break;
    case c10::ScalarType::Half:
      value.as_float = *static_cast<const c10::Half*>(data);
      break;
    case c10::ScalarType::Float:
      value.as_float = *static_cast<const float*>(data);
      break;
    case c10::ScalarType::Double:
      value.as_double = *static_cast<const double*>(data);
      break;
    case c10::ScalarType::Long:
      value.as_int64 = *static_cast<const int64_t*>(data);
      break;
    default:
      value.as_int32 = *static_cast<const int32_t*>(data);
      break;
  }
  return value;
}

void binary_rows(
    const BinaryLoops& loops,
    c10::ScalarType dtype,
    int64_t out_itemsize,
    void* out,
    const Operand& a,
    const Operand& b,
    int64_t rows,
    int64_t columns,
    double parameter) {
  const auto itemsize = static_cast<int64_t>(c10::elementSize(dtype));
  const auto part = [&](int64_t row, int64_t begin, int64_t end) {
    auto* to = static_cast<char*>(out) + (row * columns + begin) * out_itemsize;
    const auto* x = static_cast<const char*>(a.data) + row * a.row_bytes;
    const auto* y = static_cast<const char*>(b.data) + row * b.row_bytes;
    if (b.one_per_row) {
      const auto value = widen(y, dtype);
      loops.right_value(
          to, x + begin * itemsize, &value, end - begin, parameter);
    } else if (a.one_per_row) {
      const auto value = widen(x, dtype);
      loops.left_value(
          to, &value, y + begin * itemsize, end - begin, parameter);
    } else {
      loops.both(
          to,
          x + begin * itemsize,
          y + begin * itemsize,
          end - begin,
          parameter);
    }
  };
  if (rows == 1) {
    in_parts(columns, [&](int64_t begin, int64_t end) { part(0, begin, end); });
    return;
  }
  const auto some_rows = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      part(row, 0, columns);
    }
  };
  if (rows * columns <= kGrain) {
    some_rows(0, rows);
  } else {
    at::parallel_for(
        0, rows, std::max<int64_t>(1, kGrain / columns), some_rows);
  }
}

}  // namespace neuron::host_kernels

#include "host_kernels/sgemm.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

extern "C" [[gnu::weak]] void sgemm_(
    const char* transpose_a,
    const char* transpose_b,
    const int* m,
    const int* n,
    const int* k,
    const float* alpha,
    const float* a,
    const int* a_stride,
    const float* b,
    const int* b_stride,
    const float* beta,
    float* c,
    const int* c_stride);

namespace neuron::host_kernels {
namespace {

// A matrix as BLAS wants it: one stride is 1, the other reaches over a line.
struct BlasMatrix {
  const float* data;
  int stride;
  bool row_major;
  std::unique_ptr<float[]> packed;
};

bool fits_blas(int64_t line, int64_t lines, int64_t stride) {
  return stride <= std::numeric_limits<int>::max() &&
         (stride >= std::max<int64_t>(1, line) || lines <= 1);
}

BlasMatrix blas_matrix(
    const float* data, int64_t rows, int64_t columns, const MatrixIn& matrix) {
  const auto as_stride = [](int64_t stride, int64_t line) {
    return static_cast<int>(std::max({stride, line, int64_t{1}}));
  };
  if ((matrix.column_stride == 1 || columns == 1) &&
      fits_blas(columns, rows, matrix.row_stride)) {
    return {
        data,
        as_stride(rows <= 1 ? 0 : matrix.row_stride, columns),
        true,
        nullptr};
  }
  if ((matrix.row_stride == 1 || rows == 1) &&
      fits_blas(rows, columns, matrix.column_stride)) {
    return {
        data,
        as_stride(columns <= 1 ? 0 : matrix.column_stride, rows),
        false,
        nullptr};
  }
  BlasMatrix packed{nullptr, as_stride(0, columns), true, nullptr};
  packed.packed = std::make_unique<float[]>(rows * columns);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      packed.packed[row * columns + column] =
          data[row * matrix.row_stride + column * matrix.column_stride];
    }
  }
  packed.data = packed.packed.get();
  return packed;
}

void place_addend(float* out, const GemmArgs& args, const float* addend) {
  const auto& from = args.addend;
  const auto& to = args.out;
  for (int64_t row = 0; row < args.m; ++row) {
    auto* line = out + row * to.row_stride;
    const auto* source = addend + row * from.row_stride;
    if (to.column_stride == 1 && from.column_stride == 1) {
      std::memcpy(line, source, static_cast<size_t>(args.n) * sizeof(float));
    } else {
      for (int64_t column = 0; column < args.n; ++column) {
        line[column * to.column_stride] = source[column * from.column_stride];
      }
    }
  }
}

void one_product(const GemmArgs& args, int64_t index) {
  const auto at = [index](const auto& matrix) {
    return static_cast<const float*>(matrix.data) + index * matrix.batch_stride;
  };
  auto* out =
      static_cast<float*>(args.out.data) + index * args.out.batch_stride;
  if (args.addend.data != nullptr) {
    const auto* addend = at(args.addend);
    if (addend != out) {
      place_addend(out, args, addend);
    }
  }
  const float beta = args.addend.data == nullptr ? 0.0f : args.beta;
  const auto a = blas_matrix(at(args.a), args.m, args.k, args.a);
  const auto b = blas_matrix(at(args.b), args.k, args.n, args.b);
  const int m = static_cast<int>(args.m);
  const int n = static_cast<int>(args.n);
  const int k = static_cast<int>(args.k);
  // BLAS is column-major: a row-major output is the transposed product.
  const bool row_major = args.out.column_stride == 1 || args.n == 1;
  const int stride = static_cast<int>(std::max<int64_t>(
      row_major ? std::max(args.out.row_stride, args.n)
                : std::max(args.out.column_stride, args.m),
      1));
  if (row_major) {
    const char* first = b.row_major ? "n" : "t";
    const char* second = a.row_major ? "n" : "t";
    sgemm_(
        first,
        second,
        &n,
        &m,
        &k,
        &args.alpha,
        b.data,
        &b.stride,
        a.data,
        &a.stride,
        &beta,
        out,
        &stride);
  } else {
    const char* first = a.row_major ? "t" : "n";
    const char* second = b.row_major ? "t" : "n";
    sgemm_(
        first,
        second,
        &m,
        &n,
        &k,
        &args.alpha,
        a.data,
        &a.stride,
        b.data,
        &b.stride,
        &beta,
        out,
        &stride);
  }
}

}  // namespace

bool has_sgemm() { return sgemm_ != nullptr; }

void sgemm(const GemmArgs& args) {
  for (int64_t index = 0; index < args.batch; ++index) {
    one_product(args, index);
  }
}

}  // namespace neuron::host_kernels

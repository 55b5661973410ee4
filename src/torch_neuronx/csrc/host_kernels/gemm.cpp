#include "host_kernels/gemm.h"

#include <c10/util/Exception.h>

#include <utility>

#include "host_kernels/gemm_paths.h"
#include "host_kernels/kernel_table.h"

namespace neuron::host_kernels {

namespace {

// Up to here, reading the weight as it lies beats packing it.
constexpr int64_t kSkinnyRows = 16;

template <class Matrix>
void transpose(Matrix& matrix) {
  std::swap(matrix.row_stride, matrix.column_stride);
}

// out^T = b^T a^T
GemmArgs transposed(GemmArgs args) {
  std::swap(args.m, args.n);
  std::swap(args.a, args.b);
  std::swap(args.row_scale, args.column_scale);
  transpose(args.a);
  transpose(args.b);
  transpose(args.out);
  transpose(args.addend);
  return args;
}

// A batch that shares b and has evenly spaced rows is one taller product.
void fold_batch(GemmArgs& args) {
  const auto even = [&](const auto& matrix) {
    return matrix.batch_stride == args.m * matrix.row_stride;
  };
  if (args.batch > 1 && args.b.batch_stride == 0 && even(args.a) &&
      even(args.out) && (args.addend.data == nullptr || even(args.addend)) &&
      args.row_scale == nullptr) {
    args.m *= args.batch;
    args.batch = 1;
  }
}

void check(const GemmArgs& args) {
  for (const auto dtype : {args.a.dtype, args.b.dtype}) {
    TORCH_CHECK_VALUE(
        gemm_takes(dtype),
        "A matrix product has an operand of dtype ",
        dtype,
        ". It takes float32, bfloat16, float16, float8_e4m3fn, float8_e5m2 "
        "and int8; convert the operand first.");
  }
  TORCH_CHECK_VALUE(
      gemm_gives(args.out.dtype) &&
          (args.addend.data == nullptr || gemm_gives(args.addend.dtype)),
      "A matrix product has output dtype ",
      args.out.dtype,
      " and addend dtype ",
      args.addend.dtype,
      ". Both must be float32, bfloat16 or float16.");
}

}  // namespace

bool exact_in_bf16(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::BFloat16:
    case c10::ScalarType::Float8_e4m3fn:
    case c10::ScalarType::Float8_e5m2:
    case c10::ScalarType::Char:
      return true;
    default:
      return false;
  }
}

bool gemm_takes(c10::ScalarType operand) {
  return exact_in_bf16(operand) || operand == c10::ScalarType::Half ||
         operand == c10::ScalarType::Float;
}

bool gemm_gives(c10::ScalarType output) {
  return output == c10::ScalarType::Float ||
         output == c10::ScalarType::BFloat16 || output == c10::ScalarType::Half;
}

const void* advance(const void* data, c10::ScalarType dtype, int64_t offset) {
  const auto size = static_cast<int64_t>(c10::elementSize(dtype));
  return data == nullptr ? nullptr
                         : static_cast<const char*>(data) + offset * size;
}

Epilogue epilogue_of(const GemmArgs& args, int64_t batch) {
  return {
      const_cast<void*>(advance(
          args.out.data, args.out.dtype, batch * args.out.batch_stride)),
      args.out.dtype,
      args.out.row_stride,
      args.out.column_stride,
      args.beta == 0.0f ? nullptr
                        : advance(
                              args.addend.data,
                              args.addend.dtype,
                              batch * args.addend.batch_stride),
      args.addend.dtype,
      args.addend.row_stride,
      args.addend.column_stride,
      args.alpha,
      args.beta,
      args.row_scale,
      args.column_scale};
}

void gemm(const GemmArgs& given) {
  check(given);
  if (given.batch == 0 || given.m == 0 || given.n == 0) {
    return;
  }
  auto args = given;
  fold_batch(args);
  const bool few_columns = args.n <= kSkinnyRows && args.n < args.m;
  const bool few_rows = args.m <= kSkinnyRows && !few_columns;
  const bool by_columns =
      args.out.row_stride == 1 && args.out.column_stride != 1 && !few_rows;
  if (few_columns || by_columns) {
    args = transposed(args);
  }
  const auto& kernels = kernel_table().gemm;
  const bool pairs = kernels.bf16_pairs.pack != nullptr &&
                     exact_in_bf16(args.a.dtype) && exact_in_bf16(args.b.dtype);
  const auto& panels = pairs ? kernels.bf16_pairs : kernels.fp32;
  const bool streamable = args.b.row_stride == 1 || args.b.column_stride == 1;
  if (args.m <= kSkinnyRows && streamable && args.k > 0) {
    gemm_skinny(args, kernels, panels);
  } else {
    gemm_tiles(args, kernels, panels);
  }
}

}  // namespace neuron::host_kernels

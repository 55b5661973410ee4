#include "dispatch/matmul.h"
#include "host_kernels/gemm.h"
#include "host_kernels/sgemm.h"

namespace neuron {
namespace {

using host_kernels::GemmArgs;
using host_kernels::MatrixIn;

template <class Matrix>
Matrix matrix_of(const at::Tensor& tensor, decltype(Matrix::data) data) {
  const auto strides = tensor.strides();
  const auto dims = strides.size();
  Matrix matrix;
  matrix.data = data;
  matrix.dtype = tensor.scalar_type();
  matrix.batch_stride = dims == 3 ? strides[0] : 0;
  matrix.row_stride = strides[dims - 2];
  matrix.column_stride = strides[dims - 1];
  return matrix;
}

// An addend that broadcasts over the output: missing dims and 1s repeat.
MatrixIn addend_of(const at::Tensor& addend, const at::Tensor& out) {
  MatrixIn matrix;
  matrix.data = input(addend);
  matrix.dtype = addend.scalar_type();
  const auto stride = [&](int64_t from_end) -> int64_t {
    const auto dim = addend.dim() - from_end;
    return dim < 0 || addend.size(dim) == 1 ? 0 : addend.stride(dim);
  };
  matrix.column_stride = stride(1);
  matrix.row_stride = stride(2);
  matrix.batch_stride = out.dim() == 3 ? stride(3) : 0;
  return matrix;
}

void launch_gemm(
    const OpRecord& record, const at::Tensor& out, const GemmArgs& args) {
  const bool fp32 = out.scalar_type() == at::kFloat;
  launch_on(record, out, [args, fp32] {
    if (fp32) {
      host_kernels::sgemm(args);
    } else {
      host_kernels::gemm(args);
    }
  });
}

}  // namespace

bool is_matrix(const at::Tensor& tensor, int64_t dims) {
  constexpr c10::DispatchKeySet lazy(
      {c10::DispatchKey::Conjugate,
       c10::DispatchKey::Negative,
       c10::DispatchKey::ZeroTensor});
  const auto keys = tensor.key_set();
  return keys.has(c10::DispatchKey::PrivateUse1) && !keys.has_any(lazy) &&
         tensor.dim() == dims;
}

bool multiplies(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Float:
      return host_kernels::has_sgemm();
    case c10::ScalarType::BFloat16:
    case c10::ScalarType::Half:
      return true;
    default:
      return false;
  }
}

void launch_matmul(
    const OpRecord& record,
    const at::Tensor& out,
    const at::Tensor& a,
    const at::Tensor& b,
    const at::Tensor& addend,
    double alpha,
    double beta) {
  GemmArgs args;
  const auto dims = out.dim();
  args.batch = dims == 3 ? out.size(0) : 1;
  args.m = out.size(dims - 2);
  args.n = out.size(dims - 1);
  args.k = a.size(dims - 1);
  args.a = matrix_of<MatrixIn>(a, input(a));
  args.b = matrix_of<MatrixIn>(b, input(b));
  args.out = matrix_of<host_kernels::MatrixOut>(out, output(out));
  args.alpha = static_cast<float>(alpha);
  if (addend.defined() && beta != 0) {
    args.addend = addend_of(addend, out);
    args.beta = static_cast<float>(beta);
  }
  launch_gemm(record, out, args);
}

void launch_linear(
    const OpRecord& record,
    const at::Tensor& out,
    const at::Tensor& self,
    const at::Tensor& weight,
    const at::Tensor& bias) {
  const auto dtype = self.scalar_type();
  GemmArgs args;
  args.k = weight.size(1);
  args.n = weight.size(0);
  args.m = self.numel() / args.k;
  args.a = {input(self), dtype, 0, args.k, 1};
  args.b = {input(weight), dtype, 0, weight.stride(1), weight.stride(0)};
  args.out = {output(out), dtype, 0, args.n, 1};
  if (bias.defined()) {
    args.addend = {input(bias), dtype, 0, 0, 1};
    args.beta = 1;
  }
  launch_gemm(record, out, args);
}

}  // namespace neuron

// Copies: device to device, host to device and back, casts, scalars.
#include <ATen/ExpandUtils.h>
#include <ATen/Parallel.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/copy.h>
#include <torch/library.h>

#include <cstring>

#include "dispatch/copy.h"
#include "dispatch/dry.h"
#include "dispatch/factories.h"
#include "dispatch/host_call.h"
#include "runtime/launch.h"

namespace neuron {
namespace {

bool is_neuron(const at::Tensor& tensor) {
  return tensor.device().type() == kNeuron;
}

// Same dtype, order and shape, no pending conj or neg: bytes can be moved.
bool is_plain(const at::Tensor& self, const at::Tensor& source) {
  return self.scalar_type() == source.scalar_type() &&
         self.sizes() == source.sizes() && self.strides() == source.strides() &&
         self.is_non_overlapping_and_dense() &&
         self.is_conj() == source.is_conj() &&
         self.is_neg() == source.is_neg() && is_dense(source) && is_dense(self);
}

// The CPU's own copy of host aliases: casts, strides, conj and neg, overlap.
void copy_aliases(const at::Tensor& self, const at::Tensor& source) {
  at::Tensor to = self;
  to.copy_(source);
}

// The queue whose order a copy must keep; other devices are waited for.
runtime::Queue& queue_for(const at::Tensor& self, const at::Tensor& source) {
  if (!is_neuron(self)) {
    return runtime::current_queue(source.device().index());
  }
  if (is_neuron(source) && source.device() != self.device()) {
    with_torch_errors(
        [&] { runtime::current_queue(source.device().index()).wait_idle(); });
  }
  return runtime::current_queue(self.device().index());
}

at::Tensor host_of(const at::Tensor& tensor, HostCall& call, bool written) {
  return is_neuron(tensor) ? call.to_host(tensor, written) : tensor;
}

// Only the host holds values: what it gets from the device is what the user
// supplies.
void copy_without_memory(
    const OpRecord& record, at::Tensor& self, const at::Tensor& source) {
  TORCH_CHECK(
      at::is_expandable_to(source.sizes(), self.sizes()),
      "copy_: a tensor of ",
      source.sizes(),
      " does not expand to ",
      self.sizes(),
      ".");
  if (!is_neuron(self)) {
    self.fill_(dry::supplied(record, dry::Needs::value));
  }
}

void copy_slow(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  static auto& record = op_record("aten::copy_");
  if (runtime::is_dry()) {
    copy_without_memory(record, self, source);
    return;
  }
  // Two calls: the two sides may live on two devices.
  HostCall to(record);
  HostCall from(record);
  auto self_host = host_of(self, to, true);
  auto source_host = host_of(source, from, false);
  auto& queue = queue_for(self, source);
  // A pageable source may be freed or changed as soon as we return, and a CPU
  // result must be there when we do: only pinned memory copies late.
  const bool may_defer =
      non_blocking && is_dense(self) && is_dense(source) &&
      (is_neuron(self) ? (is_neuron(source) || source.is_pinned())
                       : self.is_pinned()) &&
      (!is_neuron(self) || !is_neuron(source) ||
       self.device() == source.device());
  if (may_defer && !queue.may_run_inline()) {
    const at::Tensor keep = is_neuron(source) ? self : source;
    runtime::launch(record.id, queue, [self_host, source_host, keep] {
      const c10::impl::ExcludeDispatchKeyGuard exclude(
          c10::autograd_dispatch_keyset_with_ADInplaceOrView);
      copy_aliases(self_host, source_host);
    });
    return;
  }
  {
    const HostCall::Scope scope(is_neuron(self) ? to : from);
    copy_aliases(self_host, source_host);
  }
  to.finish();
}

at::Tensor& copy_(
    at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  static auto& record = op_record("aten::copy_");
  // Moving bytes is no work for the chip's engines; casting them is.
  if (self.scalar_type() == source.scalar_type()) {
    note_executed(record);
  } else {
    note(record, self.scalar_type());
  }
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) {
    return self;
  }
  TORCH_CHECK(
      (is_neuron(self) || self.is_cpu()) &&
          (is_neuron(source) || source.is_cpu()),
      "Copies go between neuron and cpu, got ",
      source.device(),
      " to ",
      self.device(),
      ". Go through .cpu().");
  if (self.device() == source.device() && is_plain(self, source) &&
      self.numel() > 0 &&
      self.storage().unsafeGetStorageImpl() !=
          source.storage().unsafeGetStorageImpl()) {
    auto* to = static_cast<char*>(self.mutable_data_ptr());
    const auto* from = static_cast<const char*>(source.const_data_ptr());
    const size_t nbytes = self.nbytes();
    auto& queue = runtime::current_queue(self.device().index());
    with_torch_errors([&] {
      runtime::launch(record.id, queue, [to, from, nbytes] {
        copy_bytes(to, from, nbytes);
      });
    });
    return self;
  }
  copy_slow(self, source, non_blocking);
  return self;
}

at::Tensor copy_from(
    const at::Tensor& self, const at::Tensor& destination, bool non_blocking) {
  at::Tensor to = destination;
  copy_(to, self, non_blocking);
  return to;
}

at::Tensor copy_from_and_resize(
    const at::Tensor& self, const at::Tensor& destination) {
  at::Tensor to = destination;
  to.resize_(self.sizes());
  copy_(to, self, /*non_blocking=*/false);
  return to;
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  static auto& record = op_record("aten::_local_scalar_dense");
  note_executed(record);
  if (runtime::is_dry()) {
    const double value = dry::supplied(record, dry::Needs::value);
    if (self.scalar_type() == at::kBool) {
      return value != 0;
    }
    return at::isIntegralType(self.scalar_type(), /*includeBool=*/false)
               ? at::Scalar(static_cast<int64_t>(value))
               : at::Scalar(value);
  }
  HostCall call(record);
  auto host = call.to_host(self, /*written=*/false);
  const HostCall::Scope scope(call);
  return at::_local_scalar_dense(host);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("copy_", TORCH_FN(copy_));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
}

TORCH_LIBRARY_IMPL(aten, QuantizedPrivateUse1, m) {
  m.impl("copy_", TORCH_FN(copy_));
}

// The copy resolves conj and neg bits itself. Without these lines the
// Conjugate and Negative fallbacks clone, which copies, which falls back.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}

}  // namespace

void copy_bytes(char* to, const char* from, size_t nbytes) {
  constexpr size_t grain = size_t{1} << 20;
  if (nbytes <= grain || at::get_num_threads() == 1) {
    std::memcpy(to, from, nbytes);
    return;
  }
  at::parallel_for(
      0, static_cast<int64_t>(nbytes), grain, [&](int64_t begin, int64_t end) {
        std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
      });
}

}  // namespace neuron

// What direct kernels share. A direct kernel decides all metadata itself,
// allocates, and launches a loop over raw memory; whatever it does not take
// goes to OnHost<...>::run, so that checks and errors stay the CPU's.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/string_view.h>

#include "dispatch/factories.h"
#include "dispatch/on_host.h"
#include "runtime/launch.h"

namespace neuron {

// A contiguous strided tensor of this device whose bytes are its values.
inline bool is_direct(const at::Tensor& tensor) {
  constexpr c10::DispatchKeySet lazy(
      {c10::DispatchKey::Conjugate,
       c10::DispatchKey::Negative,
       c10::DispatchKey::ZeroTensor});
  const auto* impl = tensor.unsafeGetTensorImpl();
  const auto keys = impl->key_set();
  return keys.has(c10::DispatchKey::PrivateUse1) && !keys.has_any(lazy) &&
         impl->is_contiguous();
}

inline bool same_device(const at::Tensor& a, const at::Tensor& b) {
  return a.device() == b.device();
}

inline const void* input(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->data();
}

inline void* output(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->mutable_data();
}

inline bool same_storage(const at::Tensor& a, const at::Tensor& b) {
  return a.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl() ==
         b.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

// Writing `out` elementwise from `in` is safe: not shared, or the same bytes.
inline bool may_write(const at::Tensor& out, const at::Tensor& in) {
  return !same_storage(out, in) ||
         (input(out) == input(in) && out.nbytes() == in.nbytes());
}

// A fresh contiguous tensor of the sizes and device of `like`.
inline at::Tensor empty_as(const at::Tensor& like, c10::ScalarType dtype) {
  const auto meta = c10::scalarTypeToTypeMeta(dtype);
  return make_tensor(
      like.sizes(),
      meta,
      like.device().index(),
      static_cast<size_t>(like.numel()) * meta.itemsize());
}

inline at::Tensor empty_as(const at::Tensor& like) {
  return make_tensor(
      like.sizes(), like.dtype(), like.device().index(), like.nbytes());
}

// The record of an operator that has a static name.
template <class Op>
OpRecord& record_of() {
  static auto& record = op_record(
      std::string(Op::name) +
      (*Op::overload_name ? "." + std::string(Op::overload_name) : ""));
  return record;
}

// Notes the op, then runs `work` in the order of the device's current queue.
template <class F>
void launch_on(const OpRecord& record, const at::Tensor& tensor, F&& work) {
  note(record, tensor.scalar_type());
  with_torch_errors([&] {
    runtime::launch(
        record.id,
        runtime::current_queue(tensor.device().index()),
        std::forward<F>(work));
  });
}

}  // namespace neuron

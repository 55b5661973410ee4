// Direct kernels that write one value or a copy: fill_, zero_, clone, casts.
#include "dispatch/direct.h"

#include <ATen/ops/_to_copy_native.h>
#include <ATen/ops/_to_copy_ops.h>
#include <ATen/ops/clone_native.h>
#include <ATen/ops/clone_ops.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/zero_ops.h>
#include <c10/core/Scalar.h>
#include <torch/library.h>

#include <cstring>

#include "dispatch/copy.h"
#include "host_kernels/parallel.h"
#include "host_kernels/pointwise.h"

namespace neuron {
namespace {

using at::Scalar;
using at::Tensor;

// The bytes of `value` as one element; false for a dtype that is not taken.
bool element_of(const Scalar& value, c10::ScalarType dtype, uint64_t& bits) {
  const auto put = [&bits](auto element) {
    bits = 0;
    std::memcpy(&bits, &element, sizeof(element));
    return true;
  };
  switch (dtype) {
    case c10::ScalarType::Float:
      return put(value.to<float>());
    case c10::ScalarType::Double:
      return put(value.to<double>());
    case c10::ScalarType::BFloat16:
      return put(value.to<c10::BFloat16>());
    case c10::ScalarType::Half:
      return put(value.to<c10::Half>());
    case c10::ScalarType::Long:
      return put(value.to<int64_t>());
    case c10::ScalarType::Int:
      return put(value.to<int32_t>());
    case c10::ScalarType::Bool:
      return put(value.to<bool>());
    default:
      return false;
  }
}

template <class T>
void fill_with(void* out, uint64_t bits, int64_t count) {
  T element;
  std::memcpy(&element, &bits, sizeof(element));
  host_kernels::in_parts(count, [=](int64_t begin, int64_t end) {
    std::fill(
        static_cast<T*>(out) + begin, static_cast<T*>(out) + end, element);
  });
}

void fill_elements(void* out, uint64_t bits, int64_t count, size_t itemsize) {
  switch (itemsize) {
    case 1:
      return fill_with<uint8_t>(out, bits, count);
    case 2:
      return fill_with<uint16_t>(out, bits, count);
    case 4:
      return fill_with<uint32_t>(out, bits, count);
    default:
      return fill_with<uint64_t>(out, bits, count);
  }
}

Tensor& fill_(Tensor& self, const Scalar& value) {
  using Op = at::_ops::fill__Scalar;
  uint64_t bits = 0;
  if (!is_direct(self) || self.numel() == 0 || value.isComplex() ||
      value.isSymbolic() || !element_of(value, self.scalar_type(), bits)) {
    return OnHost<Op>::run(self, value);
  }
  auto* to = output(self);
  const auto count = self.numel();
  const auto itemsize = self.itemsize();
  launch_on(
      record_of<Op>(), self, [=] { fill_elements(to, bits, count, itemsize); });
  return self;
}

Tensor& zero_(Tensor& self) {
  using Op = at::_ops::zero_;
  if (!is_direct(self) || self.numel() == 0) {
    return OnHost<Op>::run(self);
  }
  auto* to = static_cast<char*>(output(self));
  const auto nbytes = static_cast<int64_t>(self.nbytes());
  launch_on(record_of<Op>(), self, [=] {
    constexpr int64_t grain = 1 << 20;
    if (nbytes <= grain) {
      std::memset(to, 0, static_cast<size_t>(nbytes));
      return;
    }
    at::parallel_for(0, nbytes, grain, [=](int64_t begin, int64_t end) {
      std::memset(to + begin, 0, static_cast<size_t>(end - begin));
    });
  });
  return self;
}

bool keeps_layout(std::optional<at::MemoryFormat> format) {
  const auto wanted = format.value_or(at::MemoryFormat::Preserve);
  return wanted == at::MemoryFormat::Preserve ||
         wanted == at::MemoryFormat::Contiguous;
}

Tensor clone(const Tensor& self, std::optional<at::MemoryFormat> format) {
  if (!is_direct(self) || self.numel() == 0 || !keeps_layout(format)) {
    return at::native::clone(self, format);
  }
  auto result = empty_as(self);
  const auto* from = static_cast<const char*>(input(self));
  auto* to = static_cast<char*>(output(result));
  const auto nbytes = self.nbytes();
  launch_on(record_of<at::_ops::clone>(), self, [=] {
    copy_bytes(to, from, nbytes);
  });
  return result;
}

Tensor to_copy(
    const Tensor& self,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout> layout,
    std::optional<at::Device> device,
    std::optional<bool> pin_memory,
    bool non_blocking,
    std::optional<at::MemoryFormat> format) {
  const auto target = dtype.value_or(self.scalar_type());
  auto* cast = is_direct(self) && self.numel() > 0
                   ? host_kernels::cast_loop(self.scalar_type(), target)
                   : nullptr;
  const bool stays = !device.has_value() || *device == self.device() ||
                     (device->type() == kNeuron && !device->has_index() &&
                      self.device().index() == runtime::current_device());
  if (cast == nullptr || !stays || !keeps_layout(format) ||
      layout.value_or(at::kStrided) != at::kStrided ||
      pin_memory.value_or(false)) {
    return at::native::_to_copy(
        self, dtype, layout, device, pin_memory, non_blocking, format);
  }
  auto result = empty_as(self, target);
  const auto* from = static_cast<const char*>(input(self));
  auto* to = static_cast<char*>(output(result));
  const auto count = self.numel();
  const auto from_size = static_cast<int64_t>(self.itemsize());
  const auto to_size = static_cast<int64_t>(result.itemsize());
  launch_on(record_of<at::_ops::_to_copy>(), self, [=] {
    host_kernels::in_parts(count, [=](int64_t begin, int64_t end) {
      cast(to + begin * to_size, from + begin * from_size, end - begin);
    });
  });
  return result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("fill_.Scalar", TORCH_FN(fill_));
  m.impl("zero_", TORCH_FN(zero_));
  m.impl("clone", TORCH_FN(clone));
  m.impl("_to_copy", TORCH_FN(to_copy));
}

}  // namespace
}  // namespace neuron

#include "dispatch/boxed.h"

#include <ATen/core/List.h>
#include <torch/library.h>

#include "dispatch/host_call.h"
#include "dispatch/random.h"

namespace neuron {
namespace {

using c10::IValue;
using torch::jit::Stack;

bool holds_tensors(const IValue& value) {
  if (!value.isList()) {
    return false;
  }
  const auto type = value.toList().elementType();
  const auto kind = type->kind();
  if (kind == c10::TypeKind::TensorType) {
    return true;
  }
  return kind == c10::TypeKind::OptionalType &&
         type->castRaw<c10::OptionalType>()->getElementType()->kind() ==
             c10::TypeKind::TensorType;
}

// Replaces the tensors in a list, keeping its element type.
template <class F>
IValue map_tensors(const IValue& value, F&& change) {
  const auto list = value.toList();
  c10::impl::GenericList changed(list.elementType());
  changed.reserve(list.size());
  for (const auto& item : value.toListRef()) {
    changed.push_back(item.isTensor() ? IValue(change(item.toTensor())) : item);
  }
  return changed;
}

struct Boxed {
  const OpRecord& record;
  HostCall call;
  c10::ScalarType dtype = c10::ScalarType::Undefined;

  at::Tensor host(at::Tensor tensor, bool written) {
    if (dtype == c10::ScalarType::Undefined && tensor.defined()) {
      dtype = tensor.scalar_type();
    }
    return call.to_host(std::move(tensor), written);
  }

  void to_host(IValue& value, bool written) {
    if (value.isTensor()) {
      value = host(std::move(value).toTensor(), written);
    } else if (value.isDevice()) {
      const auto device = value.toDevice();
      if (device.type() == kNeuron) {
        call.on_device(device);
        value = c10::Device(c10::DeviceType::CPU);
      } else if (device.type() == c10::DeviceType::CPU) {
        call.results_on_cpu();
      }
    } else if (value.isList() && holds_tensors(value)) {
      value = map_tensors(value, [&](const at::Tensor& tensor) {
        call.note_if_mask(tensor);
        return host(tensor, written);
      });
    }
  }

  void to_device(IValue& value) {
    if (value.isTensor()) {
      value = call.to_device(std::move(value).toTensor());
    } else if (value.isList() && holds_tensors(value)) {
      auto list = std::move(value).toList();
      c10::impl::GenericList changed(list.elementType());
      changed.reserve(list.size());
      for (size_t i = 0; i < list.size(); ++i) {
        // Out of the list, so that a fresh result has one holder.
        IValue item = list.extract(i);
        changed.push_back(
            item.isTensor() ? IValue(call.to_device(std::move(item).toTensor()))
                            : std::move(item));
      }
      value = std::move(changed);
    }
  }
};

}  // namespace

void run_boxed(
    const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  auto& record = op_record(op);
  Boxed boxed{record, HostCall(record)};
  const size_t num_arguments = op.schema().arguments().size();
  const size_t first = stack->size() - num_arguments;
  for (size_t i = 0; i < num_arguments; ++i) {
    boxed.to_host(
        (*stack)[first + i], i < 64 && ((record.written >> i) & 1) != 0);
  }
  if (boxed.dtype != c10::ScalarType::Undefined) {
    note(record, boxed.dtype);
  } else {
    note_executed(record);
  }
  if (C10_UNLIKELY(record.generator >= 0)) {
    auto& value = (*stack)[first + static_cast<size_t>(record.generator)];
    value =
        host_generator(value.toOptional<at::Generator>(), boxed.call.device());
  }
  {
    HostCall::Scope scope(boxed.call);
    op.callBoxed(stack);
  }
  boxed.call.finish();
  const size_t num_returns = op.schema().returns().size();
  for (size_t i = stack->size() - num_returns; i < stack->size(); ++i) {
    boxed.to_device((*stack)[i]);
  }
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_boxed>());
}

TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_boxed>());
}

TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_boxed>());
}

TORCH_LIBRARY_IMPL(_, QuantizedPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_boxed>());
}

TORCH_LIBRARY_IMPL(_, NestedTensorPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_boxed>());
}

}  // namespace neuron

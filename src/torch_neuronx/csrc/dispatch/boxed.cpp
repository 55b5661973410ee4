#include "dispatch/boxed.h"

#include <ATen/core/List.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "dispatch/dry.h"
#include "dispatch/factories.h"
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
        value = c10::Device(
            runtime::is_dry() ? c10::DeviceType::Meta : c10::DeviceType::CPU);
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

// The result of a data-dependent op from what the user supplies.
void run_supplied(
    const OpRecord& record, const c10::OperatorHandle& op, Stack* stack) {
  const auto first = stack->size() - op.schema().arguments().size();
  const auto self = (*stack)[first].toTensor();
  note(record, self.scalar_type());
  if (record.name == "aten::equal") {
    const bool equal = dry::supplied(record, dry::Needs::value) != 0;
    torch::jit::drop(*stack, op.schema().arguments().size());
    torch::jit::push(*stack, equal);
    return;
  }
  const auto count =
      static_cast<int64_t>(dry::supplied(record, dry::Needs::size));
  const int device = self.device().index();
  torch::jit::drop(*stack, op.schema().arguments().size());
  if (record.name == "aten::nonzero") {
    torch::jit::push(*stack, empty({count, self.dim()}, at::kLong, device));
    return;
  }
  // The first result has `count` entries of the input's dtype; the others
  // are positions, of the input's shape or as many.
  const auto& returns = op.schema().returns();
  const bool positions = record.name == "aten::repeat_interleave.Tensor" ||
                         record.name == "aten::bincount";
  torch::jit::push(
      *stack,
      empty({count}, positions ? at::kLong : self.scalar_type(), device));
  for (size_t i = 1; i < returns.size(); ++i) {
    torch::jit::push(
        *stack,
        i == 1 ? empty(self.sizes(), at::kLong, device)
               : empty({count}, at::kLong, device));
  }
}

void run_boxed(
    const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  auto& record = op_record(op);
  if (C10_UNLIKELY(runtime::is_dry() && dry::is_data_dependent(record))) {
    run_supplied(record, op, stack);
    return;
  }
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
    value = host_generator(
        value.toOptional<at::Generator>(), boxed.call.named_device());
  }
  const bool drops_statistics =
      runtime::is_dry() && dry::drops_statistics(record, *stack, first);
  {
    HostCall::Scope scope(boxed.call);
    op.callBoxed(stack);
  }
  if (C10_UNLIKELY(drops_statistics)) {
    for (size_t i = stack->size() - 2; i < stack->size(); ++i) {
      auto& saved = (*stack)[i];
      saved = at::empty({0}, saved.toTensor().options());
    }
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

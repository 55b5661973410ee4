#include <c10/core/Scalar.h>

#include "dispatch/foreach.h"

namespace neuron {

bool one_of_a_kind(at::TensorList list) {
  if (list.empty() || !is_direct(list[0])) {
    return false;
  }
  const auto dtype = list[0].scalar_type();
  for (const auto& tensor : list) {
    if (!is_direct(tensor) || tensor.scalar_type() != dtype ||
        !same_device(tensor, list[0]) || tensor.numel() == 0) {
      return false;
    }
  }
  return true;
}

bool match(at::TensorList list, at::TensorList other) {
  if (other.size() != list.size()) {
    return false;
  }
  for (size_t i = 0; i < list.size(); ++i) {
    if (!is_direct(other[i]) ||
        other[i].scalar_type() != list[i].scalar_type() ||
        !same_device(other[i], list[i]) ||
        other[i].sizes() != list[i].sizes() || !may_write(list[i], other[i])) {
      return false;
    }
  }
  return true;
}

ListWork::ListWork(at::TensorList out, std::initializer_list<at::TensorList> in)
    : items_(out.size()), itemsize_(static_cast<int64_t>(out[0].itemsize())) {
  for (size_t i = 0; i < out.size(); ++i) {
    auto& item = items_[i];
    item = {output(out[i]), {nullptr, nullptr}, out[i].numel(), {}, 0};
    size_t operand = 0;
    for (const auto& list : in) {
      item.in[operand++] = input(list[i]);
    }
  }
}

void ListWork::set_values(
    at::ArrayRef<at::Scalar> scalars, c10::ScalarType dtype, bool rounded) {
  for (size_t i = 0; i < items_.size(); ++i) {
    items_[i].value =
        compute_value(scalars[scalars.size() == 1 ? 0 : i], dtype, rounded);
  }
}

void ListWork::set_parameters(at::ArrayRef<at::Scalar> scalars) {
  for (size_t i = 0; i < items_.size(); ++i) {
    items_[i].parameter = scalars[scalars.size() == 1 ? 0 : i].toDouble();
  }
}

}  // namespace neuron

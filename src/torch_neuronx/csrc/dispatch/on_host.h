// An op's CPU kernel with its C++ signature: the boxed path without boxes,
// and what direct kernels call for the cases that they do not take.
//
//   m.impl("cumsum", TORCH_FN((OnHost<at::_ops::cumsum>::run)));
#pragma once

#include <ATen/core/IListRef.h>
#include <ATen/core/Tensor.h>

#include <array>
#include <tuple>
#include <vector>

#include "dispatch/host_call.h"
#include "dispatch/random.h"

namespace neuron {
namespace on_host {

// Each argument type says how it crosses to the host; the value lives until
// the kernel returned. The primary template passes anything but tensors.
template <class T>
struct Argument {
  T value;
  Argument(HostCall&, T given, c10::ScalarType&)
      : value(std::forward<T>(given)) {}
  T pass() { return std::forward<T>(value); }
};

inline at::Tensor cross(
    HostCall& call,
    const at::Tensor& tensor,
    bool written,
    c10::ScalarType& dtype) {
  if (dtype == c10::ScalarType::Undefined && tensor.defined()) {
    dtype = tensor.scalar_type();
  }
  return call.to_host(tensor, written);
}

template <>
struct Argument<const at::Tensor&> {
  at::Tensor value;
  Argument(HostCall& call, const at::Tensor& given, c10::ScalarType& dtype)
      : value(cross(call, given, false, dtype)) {}
  const at::Tensor& pass() { return value; }
};

template <>
struct Argument<at::Tensor&> {
  at::Tensor value;
  Argument(HostCall& call, at::Tensor& given, c10::ScalarType& dtype)
      : value(cross(call, given, true, dtype)) {}
  at::Tensor& pass() { return value; }
};

template <>
struct Argument<const std::optional<at::Tensor>&> {
  std::optional<at::Tensor> value;
  Argument(
      HostCall& call,
      const std::optional<at::Tensor>& given,
      c10::ScalarType& dtype) {
    if (given.has_value()) {
      value = cross(call, *given, false, dtype);
    }
  }
  const std::optional<at::Tensor>& pass() { return value; }
};

template <>
struct Argument<at::TensorList> {
  std::vector<at::Tensor> value;
  Argument(HostCall& call, at::TensorList given, c10::ScalarType& dtype) {
    value.reserve(given.size());
    for (const auto& tensor : given) {
      value.push_back(cross(call, tensor, false, dtype));
    }
  }
  at::TensorList pass() { return value; }
};

template <>
struct Argument<const at::ITensorListRef&> {
  std::vector<at::Tensor> value;
  at::ITensorListRef list;
  Argument(
      HostCall& call, const at::ITensorListRef& given, c10::ScalarType& dtype) {
    value.reserve(given.size());
    for (const auto& tensor : given) {
      value.push_back(cross(call, tensor, false, dtype));
    }
    list = at::ITensorListRef(value);
  }
  const at::ITensorListRef& pass() { return list; }
};

template <>
struct Argument<const c10::List<std::optional<at::Tensor>>&> {
  c10::List<std::optional<at::Tensor>> value;
  Argument(
      HostCall& call,
      const c10::List<std::optional<at::Tensor>>& given,
      c10::ScalarType& dtype) {
    value.reserve(given.size());
    for (size_t i = 0; i < given.size(); ++i) {
      const std::optional<at::Tensor> item = given.get(i);
      call.note_if_mask(item);
      if (runtime::is_dry() && item.has_value() && item->defined() &&
          item->scalar_type() == c10::ScalarType::Bool) {
        for (auto& index : call.indices_of_mask(*item)) {
          value.push_back(std::move(index));
        }
        continue;
      }
      value.push_back(
          item.has_value() ? std::optional(cross(call, *item, false, dtype))
                           : item);
    }
  }
  const c10::List<std::optional<at::Tensor>>& pass() { return value; }
};

template <>
struct Argument<std::optional<at::Generator>> {
  std::optional<at::Generator> value;
  HostCall& call;
  Argument(HostCall& c, std::optional<at::Generator> given, c10::ScalarType&)
      : value(std::move(given)), call(c) {}
  std::optional<at::Generator> pass() {
    return host_generator(value, call.named_device());
  }
};

inline at::Tensor back(HostCall& call, at::Tensor&& result) {
  return call.to_device(std::move(result));
}
inline std::vector<at::Tensor> back(
    HostCall& call, std::vector<at::Tensor>&& results) {
  for (auto& result : results) {
    result = call.to_device(std::move(result));
  }
  return std::move(results);
}
template <class... Ts>
std::tuple<Ts...> back(HostCall& call, std::tuple<Ts...>&& results) {
  return std::apply(
      [&](auto&&... each) {
        return std::tuple<Ts...>(back(call, std::move(each))...);
      },
      std::move(results));
}
template <class T>
T back(HostCall&, T&& plain) {
  return std::forward<T>(plain);
}

}  // namespace on_host

template <class Op, class Schema = typename Op::schema>
struct OnHost;

template <class Op, class Return, class... Args>
struct OnHost<Op, Return(Args...)> {
  static Return run(Args... args) {
    static auto& record = op_record(
        std::string(Op::name) +
        (*Op::overload_name ? "." + std::string(Op::overload_name) : ""));
    HostCall call(record);
    auto dtype = c10::ScalarType::Undefined;
    // Braces order the evaluation: the first tensor names the device.
    std::tuple<on_host::Argument<Args>...> crossed{
        on_host::Argument<Args>(call, std::forward<Args>(args), dtype)...};
    if (dtype == c10::ScalarType::Undefined) {
      note_executed(record);
    } else {
      note(record, dtype);
    }
    auto kernel = [&](auto&... each) -> decltype(auto) {
      const HostCall::Scope scope(call);
      return Op::call(each.pass()...);
    };
    if constexpr (std::is_void_v<Return>) {
      std::apply(kernel, crossed);
      call.finish();
    } else if constexpr (std::is_same_v<Return, at::Tensor&>) {
      std::apply(kernel, crossed);
      call.finish();
      return written(args...);
    } else {
      auto result = std::apply(kernel, crossed);
      call.finish();
      return on_host::back(call, std::move(result));
    }
  }

 private:
  // The one mutable tensor: self of an in-place op, out of an out= op.
  template <class First, class... Rest>
  static at::Tensor& written(First&& first, Rest&&... rest) {
    if constexpr (std::is_same_v<First&&, at::Tensor&>) {
      return first;
    } else {
      return written(std::forward<Rest>(rest)...);
    }
  }
};

}  // namespace neuron

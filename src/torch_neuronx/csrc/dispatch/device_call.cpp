// Kernels of this device as operators of host code: the inverse of HostCall.
// A compiled graph computes on CPU aliases of device memory; where it needs
// the device's own kernel it calls `neuron::mm`, which has the schema of
// `aten::mm`, takes and returns CPU tensors, and copies nothing.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "c10/generator.h"
#include "dispatch/host_call.h"

namespace neuron {
namespace {

using c10::IValue;
using torch::jit::Stack;

// Operators for which this device has kernels that a CPU's BLAS, oneDNN or
// flash attention cannot replace.
constexpr std::array<std::string_view, 9> kProducts{
    "aten::mm",
    "aten::addmm",
    "aten::bmm",
    "aten::baddbmm",
    "aten::convolution",
    "aten::convolution_backward",
    "aten::_scaled_mm",
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
};

bool is_product(const c10::OperatorHandle& op) {
  return std::find(kProducts.begin(), kProducts.end(), op.schema().name()) !=
         kProducts.end();
}

// Flash attention has the tag for a dropout that the CPU's does not do.
bool is_random(const c10::OperatorHandle& op) {
  return op.hasTag(at::Tag::nondeterministic_seeded) && !is_product(op);
}

// Heads of attention are laid out like an input; all other results are
// contiguous.
bool keeps_layout(const c10::OperatorHandle& op, const at::Tensor& result) {
  return result.dim() == 4 &&
         op.schema().name().find("flash_attention") != std::string::npos;
}

at::Tensor same_metadata(
    const at::Tensor& like, c10::Storage storage, c10::DispatchKey key) {
  auto* from = like.unsafeGetTensorImpl();
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(key), from->dtype());
  auto* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(
      from->sizes(), from->strides(), from->storage_offset());
  impl->_set_conj(from->is_conj());
  impl->_set_neg(from->is_neg());
  if (from->is_wrapped_number()) {
    impl->set_wrapped_number(true);
  }
  return tensor;
}

// The memory of a result's storage as a CPU storage; taken out of it if the
// `sole` result is all that holds it.
c10::Storage to_host_storage(c10::Storage device, bool sole) {
  const auto nbytes = device.nbytes();
  const c10::Device cpu(c10::DeviceType::CPU);
  c10::DataPtr memory;
  constexpr size_t held_here_and_by_result = 2;
  if (sole && device.use_count() == held_here_and_by_result) {
    auto taken = device.set_data_ptr(c10::DataPtr(nullptr, device.device()));
    void* data = taken.get();
    const auto deleter = taken.get_deleter();
    memory = c10::DataPtr(data, taken.release_context(), deleter, cpu);
  } else {
    void* data = device.mutable_data();
    memory = c10::DataPtr(
        data,
        new c10::Storage(std::move(device)),
        [](void* kept) { delete static_cast<c10::Storage*>(kept); },
        cpu);
  }
  return c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      nbytes,
      std::move(memory),
      scoped_host_allocator(),
      /*resizable=*/true);
}

// One call: CPU tensors become tensors of `device` over the same memory, and
// results come back.
class Crossing {
 public:
  explicit Crossing(int device) : device_(device) {}

  at::Tensor to_device(const at::Tensor& host) {
    if (!host.defined() || host.device().type() != c10::DeviceType::CPU) {
      return host;
    }
    const auto& storage = host.storage();
    for (const auto& [from, to] : lent_) {
      if (from.is_alias_of(storage)) {
        return same_metadata(host, to, c10::DispatchKey::PrivateUse1);
      }
    }
    c10::Storage borrowed(
        c10::make_intrusive<NeuronStorage>(
            c10::StorageImpl::use_byte_size_t(),
            storage.nbytes(),
            c10::DataPtr(const_cast<void*>(storage.data()), device_at(device_)),
            /*allocator=*/nullptr,
            /*resizable=*/false));
    lent_.emplace_back(storage, borrowed);
    return same_metadata(
        host, std::move(borrowed), c10::DispatchKey::PrivateUse1);
  }

  at::Tensor to_host(at::Tensor result) {
    if (!result.defined() || result.device().type() != kNeuron) {
      return result;
    }
    for (const auto& [from, to] : lent_) {
      if (to.is_alias_of(result.storage())) {
        return same_metadata(result, from, c10::DispatchKey::CPU);
      }
    }
    const bool sole = result.use_count() == 1;
    return same_metadata(
        result, to_host_storage(result.storage(), sole), c10::DispatchKey::CPU);
  }

 private:
  int device_;
  c10::SmallVector<std::pair<c10::Storage, c10::Storage>, 4> lent_;
};

// Draws from a given state instead of the default generator's.
class StateOf {
 public:
  StateOf(int device, const std::optional<at::Tensor>& state) {
    if (state.has_value() && state->defined()) {
      generator_ = default_generator(device);
      kept_ = generator_.get_state();
      generator_.set_state(*state);
    }
  }
  ~StateOf() {
    if (generator_.defined()) {
      generator_.set_state(kept_);
    }
  }
  StateOf(const StateOf&) = delete;
  StateOf& operator=(const StateOf&) = delete;

 private:
  at::Generator generator_;
  at::Tensor kept_;
};

int current_scope_device() {
  const int scoped = host_scope_device();
  return scoped >= 0 ? scoped : runtime::current_device();
}

class DeviceKernel final : public c10::OperatorKernel {
 public:
  explicit DeviceKernel(c10::OperatorHandle op) : op_(std::move(op)) {}

  void operator()(
      const c10::OperatorHandle&, c10::DispatchKeySet, Stack* stack) const {
    const int device = current_scope_device();
    Crossing crossing(device);
    std::optional<at::Tensor> rng_state;
    if (is_random(op_)) {
      rng_state = torch::jit::pop(*stack).toOptional<at::Tensor>();
    }
    const auto arguments = op_.schema().arguments().size();
    for (size_t i = stack->size() - arguments; i < stack->size(); ++i) {
      auto& value = (*stack)[i];
      if (value.isTensor()) {
        value = crossing.to_device(value.toTensor());
      } else if (value.isDevice()) {
        value = device_at(device);
      }
    }
    {
      const StateOf state(device, rng_state);
      op_.callBoxed(stack);
    }
    auto& queue = runtime::current_queue(device);
    if (C10_UNLIKELY(!queue.idle())) {
      with_torch_errors([&] { queue.wait_idle(); });
    }
    const auto returns = op_.schema().returns().size();
    for (size_t i = stack->size() - returns; i < stack->size(); ++i) {
      auto& value = (*stack)[i];
      if (value.isTensor()) {
        auto result = std::move(value).toTensor();
        if (result.defined() && !keeps_layout(op_, result)) {
          result = result.contiguous();
        }
        value = crossing.to_host(std::move(result));
      }
    }
  }

 private:
  c10::OperatorHandle op_;
};

at::Tensor rng_state() {
  return default_generator(current_scope_device()).get_state();
}

// `neuron::mm` for `aten::mm`. Random operators take one argument more: the
// state to draw from, None for the device's generator.
void define(torch::Library& m, const c10::OperatorHandle& op) {
  const auto& schema = op.schema();
  const auto name = "neuron::" + schema.name().substr(sizeof("aten::") - 1);
  auto arguments = schema.arguments();
  std::vector<at::Tag> tags{at::Tag::needs_exact_strides};
  if (is_random(op)) {
    tags = {
        at::Tag::needs_fixed_stride_order, at::Tag::nondeterministic_seeded};
    arguments.emplace_back(
        "rng_state",
        c10::OptionalType::create(c10::TensorType::get()),
        std::nullopt,
        IValue(),
        /*kwarg_only=*/true);
  }
  m.def(
      schema.cloneWithName(name, schema.overload_name())
          .cloneWithArguments(std::move(arguments)),
      std::as_const(tags));
  m.impl(
      op.operator_name().overload_name.empty()
          ? name.c_str()
          : (name + "." + schema.overload_name()).c_str(),
      c10::DispatchKey::CompositeExplicitAutograd,
      torch::CppFunction::makeFromBoxedFunctor(
          std::make_unique<DeviceKernel>(op)));
}

TORCH_LIBRARY(neuron, m) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto name : kProducts) {
    define(m, dispatcher.findSchemaOrThrow(name.data(), ""));
  }
  // Composite ones are made of others before a graph is compiled.
  for (const auto& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0) {
      continue;
    }
    const auto op = dispatcher.findSchema(name);
    if (op.has_value() && is_random(*op) && !op->schema().is_mutable() &&
        !op->hasKernelForDispatchKey(
            c10::DispatchKey::CompositeImplicitAutograd)) {
      define(m, *op);
    }
  }
  m.def("rng_state() -> Tensor", {at::Tag::nondeterministic_seeded});
  m.impl(
      "rng_state",
      c10::DispatchKey::CompositeExplicitAutograd,
      TORCH_FN(rng_state));
}

}  // namespace
}  // namespace neuron

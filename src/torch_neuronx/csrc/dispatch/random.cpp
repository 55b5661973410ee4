#include "dispatch/random.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Dispatch.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/DistributionTemplates.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/view_as_real.h>
#include <torch/library.h>

#include "c10/device.h"
#include "dispatch/op_record.h"
#include "host_kernels/random.h"
#include "runtime/launch.h"

namespace neuron {
namespace {

using at::Tensor;
using Generator = std::optional<at::Generator>;

// SplitMix64: nearby (seed, offset) pairs give unrelated host seeds.
uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

// A neuron generator brings operators here even if all tensors are elsewhere.
void check_neuron(const c10::Device& device) {
  TORCH_CHECK(
      device.type() == kNeuron,
      "Expected a '",
      device.type(),
      "' device type for generator but found 'neuron'. Create the tensor with "
      "device=\"neuron\", or the generator with torch.Generator(\"",
      device.type(),
      "\").");
}

// Reserves the numbers now, in program order, then launches `kernel` on the
// elements of `self`; strided tensors go through a contiguous buffer.
template <class F>
Tensor& fill_random(
    const OpRecord& record,
    Tensor& self,
    const Generator& generator,
    F kernel,
    bool wide = false) {
  check_neuron(self.device());
  note(record, self.scalar_type());
  if (self.numel() == 0) {
    return self;
  }
  at::assert_no_internal_overlap(self);
  const int device = self.device().index();
  const auto count = self.numel();
  const auto draws =
      host_kernels::draws_for(wide ? at::kLong : self.scalar_type(), count);
  const auto range = reserve_random(generator, device, draws);
  const bool direct = self.is_contiguous();
  Tensor target =
      direct ? self : at::empty_like(self, at::MemoryFormat::Contiguous);
  const host_kernels::RandomOutput out{
      target.mutable_data_ptr(),
      self.scalar_type(),
      count,
      range.seed,
      range.offset};
  with_torch_errors([&] {
    runtime::launch(record.id, runtime::current_queue(device), [out, kernel] {
      kernel(out);
    });
  });
  if (!direct) {
    self.copy_(target);
  }
  return self;
}

// Complex numbers are pairs of real ones.
Tensor real_view(const Tensor& self) {
  return self.is_complex() ? at::view_as_real(self) : self;
}

Tensor& uniform_(Tensor& self, double from, double to, Generator generator) {
  static auto& record = op_record("aten::uniform_");
  TORCH_CHECK(
      from <= to,
      "uniform_ expects to return a [from, to) range, but found from=",
      from,
      " > to=",
      to);
  TORCH_CHECK(
      self.is_floating_point() || self.is_complex(),
      "uniform_ needs a floating-point tensor, got ",
      self.scalar_type(),
      ". Use random_ for integers.");
  auto target = real_view(self);
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf,
      at::kBFloat16,
      target.scalar_type(),
      "check_uniform_bounds",
      [&] {
        const double limit =
            static_cast<double>(std::numeric_limits<scalar_t>::max());
        TORCH_CHECK(
            from >= -limit && from <= limit && to >= -limit && to <= limit &&
                to - from <= limit,
            "uniform_ bounds [",
            from,
            ", ",
            to,
            ") do not fit ",
            target.scalar_type(),
            ".");
      });
  fill_random(record, target, generator, [from, to](const auto& out) {
    host_kernels::uniform(out, from, to);
  });
  return self;
}

Tensor& normal_(Tensor& self, double mean, double std, Generator generator) {
  static auto& record = op_record("aten::normal_");
  TORCH_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std);
  TORCH_CHECK(
      self.is_floating_point() || self.is_complex(),
      "normal_ needs a floating-point tensor, got ",
      self.scalar_type(),
      ".");
  auto target = real_view(self);
  // Real and imaginary part share the variance.
  const double each = self.is_complex() ? std / std::sqrt(2.0) : std;
  fill_random(record, target, generator, [mean, each](const auto& out) {
    host_kernels::normal(out, mean, each);
  });
  return self;
}

Tensor& exponential_(Tensor& self, double lambda, Generator generator) {
  static auto& record = op_record("aten::exponential_");
  TORCH_CHECK(
      lambda > 0.0,
      "exponential_ expects lambda > 0.0, but found lambda=",
      lambda);
  TORCH_CHECK(
      self.is_floating_point(),
      "Exponential distribution is a continuous probability distribution. "
      "dtype must be a floating point but you specified ",
      self.dtype());
  return fill_random(record, self, generator, [lambda](const auto& out) {
    host_kernels::exponential(out, lambda);
  });
}

Tensor& cauchy_(
    Tensor& self, double median, double sigma, Generator generator) {
  static auto& record = op_record("aten::cauchy_");
  TORCH_CHECK(
      sigma > 0.0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  TORCH_CHECK(
      self.is_floating_point(),
      "Cauchy distribution is a continuous probability distribution. dtype "
      "must be a floating point but you specified ",
      self.dtype());
  return fill_random(record, self, generator, [median, sigma](const auto& out) {
    host_kernels::cauchy(out, median, sigma);
  });
}

Tensor& log_normal_(
    Tensor& self, double mean, double std, Generator generator) {
  static auto& record = op_record("aten::log_normal_");
  TORCH_CHECK(std > 0.0, "log_normal_ expects std > 0.0, but found std=", std);
  TORCH_CHECK(
      self.is_floating_point(),
      "log_normal_ needs a floating-point tensor, got ",
      self.scalar_type(),
      ".");
  return fill_random(record, self, generator, [mean, std](const auto& out) {
    host_kernels::log_normal(out, mean, std);
  });
}

Tensor& geometric_(Tensor& self, double p, Generator generator) {
  static auto& record = op_record("aten::geometric_");
  TORCH_CHECK(
      0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  return fill_random(record, self, generator, [p](const auto& out) {
    host_kernels::geometric(out, p);
  });
}

Tensor& bernoulli_(Tensor& self, double p, Generator generator) {
  static auto& record = op_record("aten::bernoulli_.float");
  TORCH_CHECK(
      0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  return fill_random(record, self, generator, [p](const auto& out) {
    host_kernels::bernoulli(out, p);
  });
}

Tensor& bernoulli_tensor_(Tensor& self, const Tensor& p, Generator generator) {
  static auto& record = op_record("aten::bernoulli_.Tensor");
  TORCH_CHECK(
      p.is_floating_point(),
      "expected probabilities tensor to have floating type, got ",
      p.scalar_type());
  auto chances =
      p.to(self.device(), at::kDouble).expand(self.sizes()).contiguous();
  if (chances.numel() > 0 && !runtime::is_dry()) {
    const auto low = chances.min().item<double>();
    const auto high = chances.max().item<double>();
    TORCH_CHECK(
        low >= 0 && high <= 1,
        "bernoulli_ expects all probabilities in [0, 1], got values from ",
        low,
        " to ",
        high,
        ".");
  }
  const auto* values = chances.const_data_ptr<double>();
  return fill_random(record, self, generator, [values](const auto& out) {
    host_kernels::bernoulli(out, values);
  });
}

Tensor bernoulli(const Tensor& self, Generator generator) {
  auto result = at::empty_like(self, at::MemoryFormat::Contiguous);
  return bernoulli_tensor_(result, self, std::move(generator));
}

Tensor& random_range(
    const OpRecord& record,
    Tensor& self,
    uint64_t range,
    int64_t base,
    const Generator& generator) {
  const bool wide = range == 0 || range > (uint64_t{1} << 32);
  return fill_random(
      record,
      self,
      generator,
      [range, base](const auto& out) {
        host_kernels::integers(out, range, base);
      },
      wide);
}

// Largest integer up to which a dtype holds every integer.
int64_t last_exact_integer(at::ScalarType dtype) {
  if (at::isFloatingType(dtype)) {
    int64_t last = 0;
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::kHalf, at::kBFloat16, dtype, "random_", [&] {
          last = int64_t{1} << std::numeric_limits<scalar_t>::digits;
        });
    return last;
  }
  switch (dtype) {
    case at::kBool:
      return 1;
    case at::kByte:
      return std::numeric_limits<uint8_t>::max();
    case at::kChar:
      return std::numeric_limits<int8_t>::max();
    case at::kShort:
      return std::numeric_limits<int16_t>::max();
    case at::kUInt16:
      return std::numeric_limits<uint16_t>::max();
    case at::kInt:
      return std::numeric_limits<int32_t>::max();
    case at::kUInt32:
      return std::numeric_limits<uint32_t>::max();
    default:
      return std::numeric_limits<int64_t>::max();
  }
}

Tensor& random_(Tensor& self, Generator generator) {
  static auto& record = op_record("aten::random_");
  const auto last =
      static_cast<uint64_t>(last_exact_integer(self.scalar_type()));
  return random_range(record, self, last + 1, 0, generator);
}

Tensor& random_from(
    Tensor& self,
    int64_t from,
    std::optional<int64_t> to,
    Generator generator) {
  static auto& record = op_record("aten::random_.from");
  uint64_t range = 0;
  if (to.has_value()) {
    TORCH_CHECK(
        from < *to,
        "random_ expects 'from' to be less than 'to', but got from=",
        from,
        " >= to=",
        *to);
    at::native::templates::check_from_to_in_range(from, *to - 1, self.dtype());
    range = static_cast<uint64_t>(*to) - static_cast<uint64_t>(from);
  } else if (from != std::numeric_limits<int64_t>::lowest()) {
    const auto last = last_exact_integer(self.scalar_type());
    at::native::templates::check_from_to_in_range(from, last, self.dtype());
    range = static_cast<uint64_t>(last) - static_cast<uint64_t>(from) + 1;
  }
  return random_range(record, self, range, from, generator);
}

Tensor& random_to(Tensor& self, int64_t to, Generator generator) {
  return random_from(self, 0, to, std::move(generator));
}

std::tuple<Tensor, Tensor> native_dropout(
    const Tensor& input, double p, std::optional<bool> train) {
  static auto& record = op_record("aten::native_dropout");
  if (!train.value_or(true)) {
    return {
        input.clone(), at::ones_like(input, input.options().dtype(at::kBool))};
  }
  TORCH_CHECK(
      0 <= p && p <= 1,
      "dropout probability has to be between 0 and 1, but got ",
      p);
  const auto from = input.contiguous();
  auto result = at::empty_like(from);
  auto mask = at::empty_like(from, from.options().dtype(at::kBool));
  const void* values = from.const_data_ptr();
  auto* keep = mask.mutable_data_ptr<bool>();
  fill_random(record, result, std::nullopt, [=](const auto& out) {
    host_kernels::dropout(out, values, keep, p);
  });
  return {result, mask};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("uniform_", TORCH_FN(uniform_));
  m.impl("normal_", TORCH_FN(normal_));
  m.impl("exponential_", TORCH_FN(exponential_));
  m.impl("cauchy_", TORCH_FN(cauchy_));
  m.impl("log_normal_", TORCH_FN(log_normal_));
  m.impl("geometric_", TORCH_FN(geometric_));
  m.impl("bernoulli", TORCH_FN(bernoulli));
  m.impl("bernoulli_.float", TORCH_FN(bernoulli_));
  m.impl("bernoulli_.Tensor", TORCH_FN(bernoulli_tensor_));
  m.impl("random_", TORCH_FN(random_));
  m.impl("random_.from", TORCH_FN(random_from));
  m.impl("random_.to", TORCH_FN(random_to));
  m.impl("native_dropout", TORCH_FN(native_dropout));
}

}  // namespace

at::Generator host_generator(const Generator& generator, int device) {
  constexpr uint64_t one_block = 4;
  if (device < 0) {
    check_neuron(c10::DeviceType::CPU);  // only the generator is ours
  }
  const auto range = reserve_random(generator, device, one_block);
  return at::detail::createCPUGenerator(mix(range.seed ^ mix(range.offset)));
}

}  // namespace neuron

#include "c10/generator.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Utils.h>
#include <ATen/core/Tensor.h>

#include <cstring>
#include <deque>
#include <mutex>

#include "c10/device.h"

namespace neuron {

struct NeuronGenerator::State {
  uint64_t seed = c10::default_rng_seed_val;
  uint64_t offset = 0;
};

namespace {
constexpr int64_t kStateBytes = 2 * sizeof(uint64_t);
constexpr uint64_t kBlock = 4;  // numbers that one Philox round yields
}  // namespace

NeuronGenerator::NeuronGenerator(int device)
    : c10::GeneratorImpl(
          device_at(device),
          c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
      state_(std::make_shared<State>()) {}

c10::DeviceType NeuronGenerator::device_type() { return kNeuron; }

void NeuronGenerator::set_current_seed(uint64_t seed) {
  state_->seed = seed;
  state_->offset = 0;
}

void NeuronGenerator::set_offset(uint64_t offset) {
  TORCH_CHECK(
      offset % kBlock == 0,
      "The Philox offset must be a multiple of ",
      kBlock,
      ", got ",
      offset,
      ".");
  state_->offset = offset;
}

uint64_t NeuronGenerator::get_offset() const { return state_->offset; }

uint64_t NeuronGenerator::current_seed() const { return state_->seed; }

uint64_t NeuronGenerator::seed() {
  const auto random = c10::detail::getNonDeterministicRandom();
  set_current_seed(random);
  return random;
}

c10::intrusive_ptr<c10::TensorImpl> NeuronGenerator::get_state() const {
  // Below the dispatcher: also where PyTorch traces with fake tensors.
  at::Tensor tensor = at::detail::empty_cpu({kStateBytes}, at::kByte);
  auto* bytes = tensor.mutable_data_ptr<uint8_t>();
  std::memcpy(bytes, &state_->seed, sizeof(uint64_t));
  std::memcpy(bytes + sizeof(uint64_t), &state_->offset, sizeof(uint64_t));
  return tensor.getIntrusivePtr();
}

void NeuronGenerator::set_state(const c10::TensorImpl& state) {
  at::detail::check_rng_state(state);
  TORCH_CHECK(
      state.numel() == kStateBytes,
      "A neuron RNG state has ",
      kStateBytes,
      " bytes (seed, offset), got ",
      state.numel(),
      ". Pass what torch.neuron.get_rng_state() returned.");
  uint64_t seed = 0;
  uint64_t offset = 0;
  const auto* bytes = static_cast<const uint8_t*>(state.data());
  std::memcpy(&seed, bytes, sizeof(seed));
  std::memcpy(&offset, bytes + sizeof(seed), sizeof(offset));
  set_current_seed(seed);
  set_offset(offset);
}

void NeuronGenerator::graphsafe_set_state(
    const c10::intrusive_ptr<c10::GeneratorImpl>& state) {
  auto* other = dynamic_cast<NeuronGenerator*>(state.get());
  TORCH_CHECK(other != nullptr, "Expected the state of a neuron generator.");
  state_ = other->state_;
}

c10::intrusive_ptr<c10::GeneratorImpl> NeuronGenerator::graphsafe_get_state()
    const {
  auto copy = c10::make_intrusive<NeuronGenerator>(device_.index());
  copy->state_ = state_;
  return copy;
}

NeuronGenerator* NeuronGenerator::clone_impl() const {
  auto* copy = new NeuronGenerator(device_.index());
  *copy->state_ = *state_;
  return copy;
}

PhiloxRange reserve_random(
    const std::optional<at::Generator>& generator, int device, uint64_t draws) {
  const auto& chosen = generator.has_value() && generator->defined()
                           ? *generator
                           : default_generator(device);
  auto* philox =
      dynamic_cast<NeuronGenerator*>(chosen.unsafeGetGeneratorImpl());
  TORCH_CHECK(
      philox != nullptr,
      "Expected a 'neuron' device type for generator but found '",
      chosen.device().type(),
      "'. Create it with torch.Generator(\"neuron\").");
  std::lock_guard<std::mutex> lock(philox->mutex_);
  auto& state = *philox->state_;
  const PhiloxRange range{state.seed, state.offset};
  state.offset += (draws + kBlock - 1) / kBlock * kBlock;
  return range;
}

at::Generator new_generator(int device) {
  return at::make_generator<NeuronGenerator>(device);
}

const at::Generator& default_generator(int device) {
  // Leaked; a deque keeps references valid while it grows.
  static auto* generators = new std::deque<at::Generator>();
  static auto* mutex = new std::mutex();
  const int index = checked_index(device_at(device));
  std::lock_guard<std::mutex> lock(*mutex);
  while (static_cast<int>(generators->size()) <= index) {
    generators->push_back(new_generator(static_cast<int>(generators->size())));
    // Every device starts from the same seed, as CUDA's do.
    generators->back().set_current_seed(c10::default_rng_seed_val);
  }
  return (*generators)[static_cast<size_t>(index)];
}

}  // namespace neuron

// Philox random numbers of a neuron device.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

namespace neuron {

// A piece of one generator's sequence. Offsets count 32-bit numbers and move
// in whole Philox blocks of 4, as CUDA's do.
struct PhiloxRange {
  uint64_t seed;
  uint64_t offset;
};

// A counter-based generator: the numbers of an op depend on (seed, offset)
// only, and the offset is taken when the op is called, so neither the stream
// nor fusion can change them. State: 16 bytes, seed then offset, as CUDA's.
class NeuronGenerator final : public c10::GeneratorImpl {
 public:
  explicit NeuronGenerator(int device);

  void set_current_seed(uint64_t seed) override;
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override;
  uint64_t current_seed() const override;
  uint64_t seed() override;
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;
  void graphsafe_set_state(
      const c10::intrusive_ptr<c10::GeneratorImpl>& state) override;
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override;

  static c10::DeviceType device_type();

 private:
  NeuronGenerator* clone_impl() const override;

  struct State;
  std::shared_ptr<State> state_;
  friend PhiloxRange reserve_random(
      const std::optional<at::Generator>&, int, uint64_t);
};

// Takes enough of the sequence for `draws` 32-bit numbers from `generator`,
// or from the default one of `device`.
PhiloxRange reserve_random(
    const std::optional<at::Generator>& generator, int device, uint64_t draws);

const at::Generator& default_generator(int device);
at::Generator new_generator(int device);

}  // namespace neuron

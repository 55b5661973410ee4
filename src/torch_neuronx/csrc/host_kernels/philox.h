// The Philox 4x32-10 counter-based generator (Salmon et al., SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace neuron::host_kernels {

// Four 32-bit numbers, a pure function of (seed, block index).
inline std::array<uint32_t, 4> philox(uint64_t seed, uint64_t block) {
  constexpr uint32_t multiplier_a = 0xD2511F53;
  constexpr uint32_t multiplier_b = 0xCD9E8D57;
  constexpr uint32_t weyl_a = 0x9E3779B9;
  constexpr uint32_t weyl_b = 0xBB67AE85;
  std::array<uint32_t, 4> counter{
      static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0};
  auto key_a = static_cast<uint32_t>(seed);
  auto key_b = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{multiplier_a} * counter[0];
    const uint64_t b = uint64_t{multiplier_b} * counter[2];
    counter = {
        static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key_a,
        static_cast<uint32_t>(b),
        static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key_b,
        static_cast<uint32_t>(a)};
    key_a += weyl_a;
    key_b += weyl_b;
  }
  return counter;
}

}  // namespace neuron::host_kernels

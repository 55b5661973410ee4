// Random numbers into contiguous memory. Element i depends on (seed, offset,
// i) only, never on the number of threads.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace neuron::host_kernels {

// The 32-bit numbers that `count` elements take: two for 8-byte elements.
uint64_t draws_for(c10::ScalarType dtype, int64_t count);

struct RandomOutput {
  void* data;
  c10::ScalarType dtype;
  int64_t count;
  uint64_t seed;
  uint64_t offset;  // in 32-bit numbers, a multiple of 4
};

// [from, to), with as many random bits as the dtype's mantissa has.
void uniform(const RandomOutput& out, double from, double to);
void normal(const RandomOutput& out, double mean, double std);
void exponential(const RandomOutput& out, double lambda);
void cauchy(const RandomOutput& out, double median, double sigma);
void log_normal(const RandomOutput& out, double mean, double std);
// The number of trials to the first success of probability p.
void geometric(const RandomOutput& out, double p);
void bernoulli(const RandomOutput& out, double p);
// p given per element, as contiguous double.
void bernoulli(const RandomOutput& out, const double* p);
// Integers base + [0, range); range 0 means all 2^64.
void integers(const RandomOutput& out, uint64_t range, int64_t base);

// out = input * mask / (1 - p); mask is 1 with probability 1 - p.
void dropout(const RandomOutput& out, const void* input, bool* mask, double p);

}  // namespace neuron::host_kernels

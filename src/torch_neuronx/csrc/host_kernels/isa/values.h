// Choice of the value type of a loop, and loops over whole vectors.
#pragma once

#include "host_kernels/isa/vec.h"

namespace neuron::host_kernels::NEURON_ISA_NAMESPACE {

// Calls function with a null pointer to float, bfloat16 or half.
template <class Function>
inline void with_value_type(c10::ScalarType dtype, Function function) {
  switch (dtype) {
    case c10::ScalarType::BFloat16:
      return function(static_cast<c10::BFloat16*>(nullptr));
    case c10::ScalarType::Half:
      return function(static_cast<c10::Half*>(nullptr));
    default:
      return function(static_cast<float*>(nullptr));
  }
}

// The same for a pair: the second is the first or float.
template <class Function>
inline void with_value_types(
    c10::ScalarType dtype, c10::ScalarType other, Function function) {
  with_value_type(dtype, [&]<class T>(T* value) {
    if (other == dtype) {
      function(value, value);
    } else {
      function(value, static_cast<float*>(nullptr));
    }
  });
}

// body(i, lanes) for i in [0, count) by whole vectors; the rest is one call
// with fewer lanes.
template <class Body>
inline void for_vectors(int64_t count, Body body) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    body(i, int64_t{kLanes});
  }
  if (i < count) {
    body(i, count - i);
  }
}

// Lanes at and after `count` become `other`.
inline F32 keep_lanes(F32 value, int64_t count, float other) {
  if (count >= kLanes) {
    return value;
  }
  alignas(64) float lanes[kLanes];
  store(lanes, value);
  for (int64_t i = count; i < kLanes; ++i) {
    lanes[i] = other;
  }
  return load(lanes);
}

}  // namespace neuron::host_kernels::NEURON_ISA_NAMESPACE

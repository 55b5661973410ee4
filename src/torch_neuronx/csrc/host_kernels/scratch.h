// Working memory of one thread, kept from call to call.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace neuron::host_kernels {

// Each Tag has its own memory, valid until the same thread asks again for the
// same Tag. It grows to the largest request, which every kernel bounds.
template <class Tag>
float* scratch(std::size_t count) {
  struct Free {
    void operator()(float* data) const { std::free(data); }
  };
  thread_local std::unique_ptr<float, Free> data;
  thread_local std::size_t capacity = 0;
  if (capacity < count) {
    constexpr std::size_t kAlignment = 64;
    const auto bytes =
        (count * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
    data.reset();
    capacity = 0;
    data.reset(static_cast<float*>(std::aligned_alloc(kAlignment, bytes)));
    if (data == nullptr) {
      throw std::bad_alloc();
    }
    capacity = count;
  }
  return data.get();
}

}  // namespace neuron::host_kernels

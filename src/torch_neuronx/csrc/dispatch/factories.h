// Fresh tensors on the device, for kernels.
#pragma once

#include <ATen/core/Tensor.h>

namespace neuron {

// Uninitialised, contiguous, owned by the current queue of `device`.
at::Tensor empty(at::IntArrayRef size, at::ScalarType dtype, int device);

at::Tensor empty_strided(
    at::IntArrayRef size,
    at::IntArrayRef stride,
    at::ScalarType dtype,
    int device);

// The same when the caller has the byte count already.
at::Tensor make_tensor(
    at::IntArrayRef size, caffe2::TypeMeta dtype, int device, size_t nbytes);

}  // namespace neuron

// Moving bytes.
#pragma once

#include <cstddef>

namespace neuron {

// memcpy on all threads.
void copy_bytes(char* to, const char* from, size_t nbytes);

}  // namespace neuron

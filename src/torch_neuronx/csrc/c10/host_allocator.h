// Pinned host memory. The host driver's "DMA" can read any host page, so
// pinned means: known to us, page-aligned, and kept until the queues that
// read it have passed.
#pragma once

#include <c10/core/Allocator.h>

namespace neuron {

c10::Allocator* pinned_allocator();
bool is_pinned(const void* data);

}  // namespace neuron

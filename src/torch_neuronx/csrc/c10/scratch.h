// Which device blocks stand behind the CPU allocations of host kernels.
#pragma once

#include <cstddef>

namespace neuron::runtime {
struct Block;
}

namespace neuron::scratch {

// CPU allocators identify memory by its address alone (raw_deallocate), so
// each scratch allocation is filed under it: in a list of the thread while
// its scope lives, in a shared map afterwards.
void file(void* data, runtime::Block* block);

// The block behind `data`, no longer filed; null if it is not in the thread's
// list or the shared map.
runtime::Block* take(void* data) noexcept;

// Frees scratch that is certainly ours, whatever thread filed it.
void release(void* data) noexcept;

// A call's entries are those filed since `mark`; leaving moves what is still
// filed to the shared map.
size_t mark() noexcept;
void leave(size_t mark) noexcept;

}  // namespace neuron::scratch

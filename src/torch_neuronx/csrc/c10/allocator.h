// The allocators that PyTorch sees: modelled HBM and, inside a host scope,
// the host's own CPU allocations.
#pragma once

#include <c10/core/Allocator.h>

#include "c10/device.h"

namespace neuron {

// Device memory on `device`, owned by the current queue there. Never null.
c10::Allocator* device_allocator();
c10::DataPtr allocate_on(int device, size_t nbytes);

// Called after every release of device memory; null for nothing.
void set_release_hook(void (*hook)());

// While one lives, CPU allocations of this thread come from device memory of
// `device` as uncounted scratch; `adopt` counts the one that became an
// output. This is how a host kernel's result is born in device memory. Who
// opens one calls scratch::leave when the results are adopted.
class HostScope {
 public:
  explicit HostScope(int device) noexcept;
  ~HostScope();
  HostScope(const HostScope&) = delete;
  HostScope& operator=(const HostScope&) = delete;

 private:
  int previous_;
};

// The device whose scope is open in this thread, -1 for none.
int host_scope_device() noexcept;

// Turns a CPU pointer into one of `device` without copying, and counts it.
c10::DataPtr adopt(c10::DataPtr host, size_t nbytes, int device);

// The allocator that host aliases resize with.
c10::Allocator* scoped_host_allocator();

}  // namespace neuron

// Random ops on the device's Philox sequence.
#pragma once

#include "c10/generator.h"

namespace neuron {

// A CPU generator for an op that only has a CPU kernel, seeded by the next
// piece of the device's sequence: reproducible from the device's seed alone.
// `device` is -1 where no argument is on a neuron device.
at::Generator host_generator(
    const std::optional<at::Generator>& generator, int device);

}  // namespace neuron

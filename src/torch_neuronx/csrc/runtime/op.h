// Names of ops as small numbers, and how often each ran.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace neuron::runtime {

// The number of `name`, given on first use. 0 is "unnamed work".
uint32_t op_id(std::string_view name);
// References are for ever.
const std::string& op_name(uint32_t id);
std::atomic<uint64_t>& executed(uint32_t id);

}  // namespace neuron::runtime

#include "runtime/error.h"

#include <array>
#include <atomic>
#include <cstdio>

namespace neuron::runtime {
namespace {

std::string out_of_memory_text(const OutOfMemory::Facts& facts) {
  std::string text =
      "Out of memory on neuron:" + std::to_string(facts.device) +
      ": tried to allocate " + format_bytes(facts.requested) +
      ". The modelled HBM of this core holds " + format_bytes(facts.capacity) +
      ", of which " + format_bytes(facts.allocated) +
      " are allocated by tensors and " + format_bytes(facts.reserved) +
      " reserved by the allocator (largest free block " +
      format_bytes(facts.largest_free) + ").";
  if (facts.limit < facts.capacity) {
    text += " The memory fraction limits this process to " +
            format_bytes(facts.limit) +
            "; raise it with torch.neuron.set_per_process_memory_fraction.";
  }
  if (facts.host_failed) {
    return text +
           " The modelled HBM has room, but this host has not that much memory "
           "left. Use a smaller batch or a larger host, or plan without memory "
           "with NEURON_DRIVER=dry.";
  }
  text +=
      " Use a smaller batch, delete tensors that are no longer needed, spread "
      "the model over more cores, or choose an instance with more memory with "
      "NEURON_INSTANCE_TYPE.";
  return text;
}

std::string async_text(
    const std::string& op, const std::string& frame, const std::string& what) {
  return op + (frame.empty() ? "" : ", called at " + frame + ",") +
         " failed on its stream: " + what +
         (what.empty() || what.back() != '.' ? "." : "") +
         " Run with NEURON_LAUNCH_BLOCKING=1 to see it raised where it is "
         "called.";
}

std::string device_text(int index, int count) {
  if (count == 0) {
    return "There is no neuron device: the runtime is not configured. Import "
           "torch_neuronx, or unset TORCH_DEVICE_BACKEND_AUTOLOAD=0.";
  }
  return "neuron:" + std::to_string(index) +
         " does not exist: this process sees " + std::to_string(count) +
         " logical core" + (count == 1 ? "" : "s") +
         ", neuron:0 to neuron:" + std::to_string(count - 1) +
         ". Use one of these, or set NEURON_RT_VISIBLE_CORES or "
         "NEURON_INSTANCE_TYPE for more.";
}

std::atomic<DescribeError> describe_error{nullptr};

}  // namespace

OutOfMemory::OutOfMemory(const Facts& given)
    : std::runtime_error(out_of_memory_text(given)), facts(given) {}

void describe_errors_with(DescribeError describe) {
  describe_error.store(describe);
}

std::string describe(const std::exception& error) {
  const auto chosen = describe_error.load();
  return chosen == nullptr ? error.what() : chosen(error);
}

AsyncError::AsyncError(
    std::string failed_op, std::string frame, const std::string& what)
    : std::runtime_error(async_text(failed_op, frame, what)),
      op(std::move(failed_op)),
      python_frame(std::move(frame)) {}

BadFork::BadFork()
    : std::runtime_error(
          "Cannot re-initialize neuron in forked subprocess: its streams do "
          "not survive fork. To use neuron with multiprocessing, you must use "
          "the 'spawn' start method: "
          "torch.multiprocessing.set_start_method(\"spawn\").") {}

InvalidDevice::InvalidDevice(int index, int count)
    : std::runtime_error(device_text(index, count)) {}

std::string format_bytes(int64_t nbytes) {
  constexpr std::array<const char*, 5> units{
      "bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(nbytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) {
    return std::to_string(nbytes) + " bytes";
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f %s", value, units[unit]);
  return std::string(text.data()) + " (" + std::to_string(nbytes) + " bytes)";
}

}  // namespace neuron::runtime

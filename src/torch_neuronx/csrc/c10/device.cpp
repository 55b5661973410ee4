#include "c10/device.h"

#include <c10/util/Exception.h>

#include "runtime/error.h"

namespace neuron {
namespace {

// PyTorch's what() ends with a C++ backtrace.
std::string without_backtrace(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return torch_error == nullptr ? error.what()
                                : torch_error->what_without_backtrace();
}

[[maybe_unused]] const bool described = [] {
  runtime::describe_errors_with(&without_backtrace);
  return true;
}();

}  // namespace

int checked_index(c10::Device device) {
  TORCH_CHECK(
      device.type() == kNeuron, "Expected a neuron device, got ", device, ".");
  const int index =
      device.has_index() ? device.index() : runtime::current_device();
  if (index < 0 || index >= runtime::device_count()) {
    with_torch_errors([&] { (void)runtime::device_spec(index); });
  }
  return index;
}

runtime::Queue& queue_of(c10::Stream stream) {
  return with_torch_errors([&]() -> runtime::Queue& {
    return runtime::queue_by_id(
        checked_index(stream.device()), static_cast<uint32_t>(stream.id()));
  });
}

c10::Stream stream_of(const runtime::Queue& queue) {
  return c10::Stream(
      c10::Stream::UNSAFE,
      device_at(queue.device()),
      static_cast<c10::StreamId>(queue.id()));
}

void rethrow_as_torch() {
  try {
    throw;
  } catch (const c10::Error&) {
    throw;
  } catch (const runtime::OutOfMemory& error) {
    TORCH_CHECK_WITH(OutOfMemoryError, false, error.what());
  } catch (const runtime::InvalidDevice& error) {
    TORCH_CHECK(false, error.what());
  } catch (const runtime::DeadlineExceeded& error) {
    TORCH_CHECK(false, error.what());
  } catch (const runtime::BadFork& error) {
    TORCH_CHECK(false, error.what());
  } catch (const runtime::AsyncError& error) {
    TORCH_CHECK(false, error.what());
  }
  // Anything else passes through as it is.
  throw;
}

}  // namespace neuron

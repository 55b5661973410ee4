#include "dispatch/observer.h"

#include <ATen/record_function.h>

#include <deque>
#include <mutex>
#include <unordered_map>

#include "c10/device.h"
#include "runtime/clock.h"
#include "runtime/op.h"

namespace neuron::observer {
namespace {

// One call on this thread's stack.
struct Frame {
  SignatureKey key;
  Origin origin;
  uint32_t op = 0;  // 0: not executed here
  int device = -1;  // -1: no tensor of ours among the arguments
  const char* name = nullptr;
  bool is_backward_node = false;
};

struct Stack {
  std::deque<Frame> frames;  // a deque: frames keep their buffers for reuse
  size_t depth = 0;
  uint32_t module = 0;

  Frame& push() {
    if (depth == frames.size()) {
      frames.emplace_back();
    }
    auto& frame = frames[depth++];
    frame.key.clear();
    frame.key.push_back(0);
    frame.origin = {};
    frame.op = 0;
    frame.device = -1;
    frame.name = nullptr;
    frame.is_backward_node = false;
    return frame;
  }
};

Stack& stack() {
  static thread_local auto* mine = new Stack();  // ops run at thread exit
  return *mine;
}

struct CountKey {
  uint32_t signature;
  Origin origin;
  bool operator==(const CountKey&) const = default;
};

struct CountHash {
  size_t operator()(const CountKey& key) const noexcept {
    const auto place = (uint64_t{key.origin.line} << 32) |
                       (key.origin.module << 1) | (key.origin.backward ? 1 : 0);
    return (place ^ (uint64_t{key.signature} << 20)) * 0x9e3779b97f4a7c15ULL;
  }
};

// Forward calls by autograd's number, for the backward of each. A ring: what
// is older than its size has no origin.
struct Forward {
  uint64_t thread = 0;
  int64_t sequence = -1;
  Origin origin;
};
constexpr size_t kForwards = size_t{1} << 18;

struct State {
  std::mutex mutex;
  std::unordered_map<CountKey, uint64_t, CountHash> counts;
  std::vector<Price> prices;
  std::vector<bool> priced;
  std::vector<Forward> forwards;
  at::CallbackHandle handle = 0;
  std::atomic<uint32_t (*)()> line_hook{nullptr};
  std::atomic<Price (*)(uint32_t)> price_hook{nullptr};
};

State& state() {
  static auto* leaked = new State();
  return *leaked;
}

Price price_of(uint32_t signature) {
  auto& all = state();
  {
    std::lock_guard<std::mutex> lock(all.mutex);
    if (signature < all.priced.size() && all.priced[signature]) {
      return all.prices[signature];
    }
  }
  // Outside the lock: the hook takes Python's.
  auto* hook = all.price_hook.load();
  const Price price = hook != nullptr ? hook(signature) : Price{0, 0, false};
  std::lock_guard<std::mutex> lock(all.mutex);
  if (signature >= all.priced.size()) {
    all.priced.resize(signature + 1, false);
    all.prices.resize(signature + 1);
  }
  all.priced[signature] = true;
  all.prices[signature] = price;
  return price;
}

void file(
    const SignatureKey& key, const Origin& origin, int device, uint32_t queue) {
  const auto id = signature_id(key);
  const auto price = price_of(id);
  runtime::clock::advance(device, queue, price.launch_ns, price.work_ns);
  if (price.host_waits) {
    runtime::clock::host_wait(runtime::clock::now(device, queue));
  }
  auto& all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  ++all.counts[{id, origin}];
}

Forward& forward_slot(uint64_t thread, int64_t sequence) {
  const auto mixed =
      static_cast<uint64_t>(sequence) + thread * 0x9e3779b97f4a7c15ULL;
  return state().forwards[mixed % kForwards];
}

// The innermost backward node that runs in this thread.
const Frame* backward_node(const Stack& mine) {
  for (size_t i = mine.depth; i-- > 0;) {
    if (mine.frames[i].is_backward_node) {
      return &mine.frames[i];
    }
  }
  return nullptr;
}

Origin origin_here(const Stack& mine) {
  if (mine.depth > 0 && mine.frames[mine.depth - 1].device >= 0) {
    return mine.frames[mine.depth - 1].origin;  // inside another call
  }
  const auto* node = backward_node(mine);
  Origin origin;
  auto* hook = state().line_hook.load();
  origin.line = hook != nullptr ? hook() : 0;
  origin.module = mine.module;
  if (node == nullptr) {
    return origin;
  }
  // Python inside a node is a hook or a custom function; recomputation has
  // modules of its own.
  if (origin.line == 0) {
    origin.line = node->origin.line;
  }
  if (origin.module == 0) {
    origin.module = node->origin.module;
  }
  origin.backward = true;
  return origin;
}

int device_of(const c10::IValue& value) {
  if (value.isTensor()) {
    const auto& tensor = value.toTensor();
    return tensor.defined() && tensor.device().type() == kNeuron
               ? tensor.device().index()
               : -1;
  }
  if (value.isTensorList() || value.isOptionalTensorList()) {
    for (const auto& item : value.toListRef()) {
      if (const int device = device_of(item); device >= 0) {
        return device;
      }
    }
  }
  return -1;
}

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& call) {
  if (detail::paused > 0) {
    return nullptr;
  }
  auto& mine = stack();
  if (call.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    auto& frame = mine.push();
    frame.is_backward_node = true;
    frame.origin.backward = true;
    auto& all = state();
    std::lock_guard<std::mutex> lock(all.mutex);
    const auto& seen = forward_slot(call.forwardThreadId(), call.seqNr());
    if (seen.sequence == call.seqNr() &&
        seen.thread == call.forwardThreadId()) {
      frame.origin.line = seen.origin.line;
      frame.origin.module = seen.origin.module;
    }
    return nullptr;
  }
  const auto inputs = call.inputs();
  int device = -1;
  for (const auto& input : inputs) {
    if ((device = device_of(input)) >= 0) {
      break;
    }
  }
  const auto origin = device >= 0 ? origin_here(mine) : Origin{};
  auto& frame = mine.push();
  frame.device = device;
  frame.name = call.name();
  if (device < 0) {
    return nullptr;
  }
  frame.origin = origin;
  for (const auto& input : inputs) {
    append(frame.key, input);
  }
  if (call.seqNr() >= 0 && !origin.backward) {
    auto& all = state();
    std::lock_guard<std::mutex> lock(all.mutex);
    forward_slot(call.threadId(), call.seqNr()) = {
        call.threadId(), call.seqNr(), origin};
  }
  return nullptr;
}

void leave(const at::RecordFunction& call, at::ObserverContext*) {
  auto& mine = stack();
  if (detail::paused > 0 || mine.depth == 0) {
    return;
  }
  auto& frame = mine.frames[--mine.depth];
  if (frame.op == 0 || frame.device < 0) {
    return;
  }
  frame.key[0] = frame.op;
  frame.key.push_back(static_cast<int64_t>(SignatureTag::results));
  for (const auto& output : call.outputs()) {
    append(frame.key, output);
  }
  file(
      frame.key,
      frame.origin,
      frame.device,
      runtime::current_queue(frame.device).id());
}

}  // namespace

namespace detail {

void executed(uint32_t op) {
  auto& mine = stack();
  if (paused == 0 && mine.depth > 0 && mine.frames[mine.depth - 1].op == 0) {
    mine.frames[mine.depth - 1].op = op;
  }
}

}  // namespace detail

void start() {
  auto& all = state();
  {
    std::lock_guard<std::mutex> lock(all.mutex);
    if (all.handle != 0) {
      return;
    }
    all.forwards.resize(kForwards);
  }
  auto callback =
      at::RecordFunctionCallback(&enter, &leave)
          .needsInputs(true)
          .needsOutputs(true)
          .scopes(
              {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION});
  all.handle = at::addGlobalCallback(callback);
  detail::is_on = true;
  runtime::clock::set_running(true);
}

void stop() {
  auto& all = state();
  if (all.handle != 0) {
    at::removeCallback(all.handle);
    all.handle = 0;
  }
  detail::is_on = false;
  runtime::clock::set_running(false);
}

std::vector<Count> counts() {
  auto& all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  std::vector<Count> rows;
  rows.reserve(all.counts.size());
  for (const auto& [key, calls] : all.counts) {
    rows.push_back({key.signature, key.origin, calls});
  }
  return rows;
}

void add(const SignatureKey& key, int device, uint32_t queue) {
  if (on()) {
    file(key, origin_here(stack()), device, queue);
  }
}

uint32_t set_module(uint32_t module) noexcept {
  return std::exchange(stack().module, module);
}

Origin current_origin() { return origin_here(stack()); }

uint32_t current_op() {
  const auto& mine = stack();
  for (size_t i = mine.depth; i-- > 0;) {
    if (mine.frames[i].name != nullptr) {
      return runtime::op_id(mine.frames[i].name);
    }
  }
  return 0;
}

void set_line_hook(uint32_t (*hook)()) { state().line_hook = hook; }

void set_price_hook(Price (*hook)(uint32_t signature)) {
  state().price_hook = hook;
}

}  // namespace neuron::observer

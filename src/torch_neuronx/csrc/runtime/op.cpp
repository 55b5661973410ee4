#include "runtime/op.h"

#include <deque>
#include <map>
#include <mutex>

namespace neuron::runtime {
namespace {

struct Op {
  explicit Op(std::string_view given) : name(given) {}
  std::string name;
  std::atomic<uint64_t> executed{0};
};

struct Registry {
  std::mutex mutex;
  Registry() {
    ids.emplace("unnamed work", 0);
    ops.emplace_back("unnamed work");
  }
  std::map<std::string, uint32_t, std::less<>> ids;
  std::deque<Op> ops;  // a deque keeps references valid
};

Registry& registry() {
  static auto* leaked = new Registry();
  return *leaked;
}

Op& op(uint32_t id) {
  auto& all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  return all.ops.at(id);
}

}  // namespace

uint32_t op_id(std::string_view name) {
  auto& all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  if (const auto found = all.ids.find(name); found != all.ids.end()) {
    return found->second;
  }
  const auto id = static_cast<uint32_t>(all.ops.size());
  all.ops.emplace_back(name);
  all.ids.emplace(name, id);
  return id;
}

const std::string& op_name(uint32_t id) { return op(id).name; }

std::atomic<uint64_t>& executed(uint32_t id) { return op(id).executed; }

}  // namespace neuron::runtime

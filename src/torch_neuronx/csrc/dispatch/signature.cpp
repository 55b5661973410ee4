#include "dispatch/signature.h"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <deque>
#include <mutex>
#include <unordered_map>

#include "c10/device.h"

namespace neuron {
namespace {

struct KeyHash {
  size_t operator()(const SignatureKey& key) const noexcept {
    uint64_t hash = 0x9e3779b97f4a7c15ULL;
    for (const auto word : key) {
      hash = (hash ^ static_cast<uint64_t>(word)) * 0xff51afd7ed558ccdULL;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

struct Table {
  std::mutex mutex;
  std::unordered_map<SignatureKey, uint32_t, KeyHash> ids;
  std::deque<const SignatureKey*> keys;  // into `ids`, whose nodes stay
};

Table& table() {
  static auto* leaked = new Table();
  return *leaked;
}

void append(SignatureKey& key, SignatureTag tag) {
  key.push_back(static_cast<int64_t>(tag));
}

void append(SignatureKey& key, const at::Tensor& tensor) {
  if (!tensor.defined()) {
    append(key, SignatureTag::none);
    return;
  }
  const auto* impl = tensor.unsafeGetTensorImpl();
  append(key, SignatureTag::tensor);
  const auto type = tensor.device().type();
  key.push_back(
      static_cast<int64_t>(
          type == kNeuron                ? SignatureDevice::neuron
          : type == c10::DeviceType::CPU ? SignatureDevice::host
                                         : SignatureDevice::other));
  key.push_back(static_cast<int64_t>(tensor.scalar_type()));
  if (tensor.layout() != at::kStrided || tensor.is_nested()) {
    key.push_back(0);
    return;
  }
  const auto sizes = impl->sizes();
  const auto strides = impl->strides();
  key.push_back(static_cast<int64_t>(sizes.size()));
  key.insert(key.end(), sizes.begin(), sizes.end());
  key.insert(key.end(), strides.begin(), strides.end());
}

}  // namespace

void append_text(SignatureKey& key, const std::string& text) {
  append(key, SignatureTag::text);
  key.push_back(static_cast<int64_t>(text.size()));
  key.insert(key.end(), text.begin(), text.end());
}

void append(SignatureKey& key, const c10::IValue& value) {
  if (value.isTensor()) {
    append(key, value.toTensor());
  } else if (value.isInt()) {
    append(key, SignatureTag::integer);
    key.push_back(value.toInt());
  } else if (value.isBool()) {
    append(key, SignatureTag::boolean);
    key.push_back(value.toBool() ? 1 : 0);
  } else if (value.isDouble()) {
    append(key, SignatureTag::number);
  } else if (value.isString()) {
    append_text(key, value.toStringRef());
  } else if (value.isList()) {
    const auto items = value.toListRef();
    append(key, SignatureTag::list);
    key.push_back(static_cast<int64_t>(items.size()));
    for (const auto& item : items) {
      append(key, item);
    }
  } else {
    append(key, SignatureTag::none);
  }
}

uint32_t signature_id(const SignatureKey& key) {
  auto& all = table();
  std::lock_guard<std::mutex> lock(all.mutex);
  const auto [found, added] =
      all.ids.try_emplace(key, static_cast<uint32_t>(all.keys.size()));
  if (added) {
    all.keys.push_back(&found->first);
  }
  return found->second;
}

SignatureKey signature(uint32_t id) {
  auto& all = table();
  std::lock_guard<std::mutex> lock(all.mutex);
  TORCH_CHECK_INDEX(id < all.keys.size(), "there is no signature ", id);
  return *all.keys[id];
}

}  // namespace neuron

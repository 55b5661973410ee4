// An op call as numbers: which op, on tensors of which shapes, with which
// options. Equal calls have equal signatures, so what is known of one is
// known of all.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <vector>

namespace neuron {

// A sequence of values, each a tag and what the tag says follows:
//   none | number (a float; its value is left out) | integer v | boolean v
//   text n bytes.. | list n values..
//   tensor device dtype rank sizes.. strides..
//   results (what follows are the results)
// The first entry is the op's id.
using SignatureKey = std::vector<int64_t>;

enum class SignatureTag : int64_t {
  none,
  number,
  integer,
  boolean,
  text,
  list,
  tensor,
  results
};

// Devices of tensors in a key.
enum class SignatureDevice : int64_t { host, neuron, other };

void append(SignatureKey& key, const c10::IValue& value);
void append_text(SignatureKey& key, const std::string& text);

// The number of a key, given on first use, and back. Both from any thread.
uint32_t signature_id(const SignatureKey& key);
SignatureKey signature(uint32_t id);

}  // namespace neuron

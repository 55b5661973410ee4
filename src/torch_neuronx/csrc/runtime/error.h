// What can go wrong in the runtime, one class per kind. what() is a sentence
// with the values and the remedy.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace neuron::runtime {

class OutOfMemory : public std::runtime_error {
 public:
  struct Facts {
    int device;
    int64_t requested;
    int64_t allocated;
    int64_t reserved;
    int64_t capacity;      // of the modelled HBM
    int64_t limit;         // capacity times the memory fraction
    int64_t largest_free;  // largest cached block that is free
    bool host_failed;      // the host itself had no memory left
  };
  explicit OutOfMemory(const Facts& facts);
  const Facts facts;
};

// A task failed after the call that queued it had returned.
class AsyncError : public std::runtime_error {
 public:
  AsyncError(std::string op, std::string python_frame, const std::string& what);
  const std::string op;
  const std::string python_frame;  // "file.py:12 in f", "" if unknown
};

// How errors of tasks become text: what() unless somebody knows better.
using DescribeError = std::string (*)(const std::exception&);
void describe_errors_with(DescribeError describe);
std::string describe(const std::exception& error);

class DeadlineExceeded : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class BadFork : public std::runtime_error {
 public:
  BadFork();
};

class InvalidDevice : public std::runtime_error {
 public:
  InvalidDevice(int index, int count);
};

// "1.50 GiB (1610612736 bytes)"
std::string format_bytes(int64_t nbytes);

}  // namespace neuron::runtime

// A small test registry. Every test runs in a process of its own, because
// the runtime is configured once per process and is never torn down.
#pragma once

#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace neuron::test {

struct Case {
  const char* name;
  void (*run)();
};

inline std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

struct Register {
  Register(const char* name, void (*run)()) { cases().push_back({name, run}); }
};

// Ends the test that throws it.
class Failed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] inline void fail(
    const char* file, int line, const std::string& text) {
  throw Failed(std::string(file) + ":" + std::to_string(line) + ": " + text);
}

template <class A, class B>
void check_equal(
    const A& got,
    const B& expected,
    const char* text,
    const char* file,
    int line) {
  if (!(got == expected)) {
    std::ostringstream message;
    message << text << " is " << got << ", expected " << expected;
    fail(file, line, message.str());
  }
}

inline void check_contains(
    const std::string& text,
    const std::string& part,
    const char* file,
    int line) {
  if (text.find(part) == std::string::npos) {
    fail(file, line, "\"" + text + "\" lacks \"" + part + "\"");
  }
}

// The message of the `Error` that `run` throws; fails if it throws none.
template <class Error, class F>
std::string message_of(F&& run, const char* text, const char* file, int line) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& error) {
    fail(file, line, std::string(text) + " threw: " + error.what());
  }
  fail(file, line, std::string(text) + " threw nothing");
}

}  // namespace neuron::test

#define TEST(name)                                                  \
  static void name();                                               \
  static const neuron::test::Register register_##name(#name, name); \
  static void name()

#define CHECK(condition)                                  \
  do {                                                    \
    if (!(condition)) {                                   \
      neuron::test::fail(__FILE__, __LINE__, #condition); \
    }                                                     \
  } while (false)

#define CHECK_EQUAL(got, expected) \
  neuron::test::check_equal((got), (expected), #got, __FILE__, __LINE__)

#define CHECK_CONTAINS(text, part) \
  neuron::test::check_contains((text), (part), __FILE__, __LINE__)

#define MESSAGE_OF(Error, expression) \
  neuron::test::message_of<Error>(    \
      [&] { expression; }, #expression, __FILE__, __LINE__)

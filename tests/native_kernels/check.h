// A minimal test registry: TEST(name) { ... CHECK(condition) << context; }
#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sstream>
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

inline int& failures() {
  static int count = 0;
  return count;
}

struct Register {
  Register(const char* name, void (*run)()) { cases().push_back({name, run}); }
};

// Prints its text when it dies.
struct Failure {
  std::ostringstream text;
  ~Failure() {
    if (++failures() <= 5) {
      std::fprintf(stderr, "    %s\n", text.str().c_str());
    }
  }
};

inline int run_all(int argc, char** argv) {
  int failed = 0;
  for (const auto& test : cases()) {
    if (argc > 1 && std::string(test.name).find(argv[1]) == std::string::npos) {
      continue;
    }
    const int before = failures();
    test.run();
    const bool good = failures() == before;
    failed += !good;
    std::printf("%s %s\n", good ? "ok  " : "FAIL", test.name);
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace neuron::test

#define TEST(name)                                                  \
  static void name();                                               \
  static const neuron::test::Register register_##name(#name, name); \
  static void name()

#define CHECK(condition)                                             \
  if (!(condition))                                                  \
  neuron::test::Failure().text << __FILE__ << ":" << __LINE__ << " " \
                               << #condition << " "

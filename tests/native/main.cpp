// Runs all tests, or those whose name contains an argument.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "check.h"

namespace {

constexpr unsigned kSecondsPerTest = 60;

bool is_wanted(const char* name, int argc, char** argv) {
  if (argc < 2) {
    return true;
  }
  for (int i = 1; i < argc; ++i) {
    if (std::strstr(name, argv[i]) != nullptr) {
      return true;
    }
  }
  return false;
}

bool passes(const neuron::test::Case& test) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kSecondsPerTest);
    int status = EXIT_SUCCESS;
    try {
      test.run();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "    %s\n", error.what());
      status = EXIT_FAILURE;
    }
    // Not _exit: the sanitizers report at exit.
    std::exit(status);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    std::fprintf(stderr, "    %s\n", strsignal(WTERMSIG(status)));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  int num_run = 0;
  int num_failed = 0;
  for (const auto& test : neuron::test::cases()) {
    if (!is_wanted(test.name, argc, argv)) {
      continue;
    }
    ++num_run;
    if (!passes(test)) {
      ++num_failed;
      std::printf("FAILED %s\n", test.name);
    }
  }
  std::printf("%d tests, %d failed\n", num_run, num_failed);
  return num_run > 0 && num_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

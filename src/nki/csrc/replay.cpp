// Entry points for Python (ctypes): run a stretch of the encoded program.
#include <cstdint>

#include "stream.h"

namespace neuron::nki {

namespace generic {
bool run(const Machine& machine, const Record& record);
}
#if defined(__x86_64__) && defined(__GNUC__)
namespace avx2 {
bool run(const Machine& machine, const Record& record);
}
namespace avx512 {
bool run(const Machine& machine, const Record& record);
}
#endif

namespace {

using Run = bool (*)(const Machine&, const Record&);

Run best() {
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return avx512::run;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return avx2::run;
#endif
  return generic::run;
}

}  // namespace
}  // namespace neuron::nki

extern "C" __attribute__((visibility("default"))) int64_t neuron_nki_version() {
  return 1;
}

// Runs records from word `begin` up to word `end`. Returns `end`, or the word
// of the record whose run-time address is out of bounds.
extern "C" __attribute__((visibility("default"))) int64_t neuron_nki_run(
    const int64_t* code,
    int64_t begin,
    int64_t end,
    char* const* bases,
    const int64_t* registers,
    float* vector_accumulator,
    float* scalar_accumulator,
    void* sgemm) {
  using namespace neuron::nki;
  static const Run run = best();
  const Machine machine{
      bases,
      registers,
      vector_accumulator,
      scalar_accumulator,
      reinterpret_cast<Sgemm>(sgemm)};
  while (begin < end) {
    const Record& record = *reinterpret_cast<const Record*>(code + begin);
    if (!run(machine, record))
      return begin;
    begin += record.length;
  }
  return end;
}

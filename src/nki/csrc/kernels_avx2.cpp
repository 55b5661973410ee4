// The instructions for avx2 hosts.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "stream.h"

#if defined(__x86_64__) && defined(__GNUC__)
#pragma GCC target("avx2,fma,f16c,bmi,bmi2")
#define NEURON_NKI_SET avx2
#include "kernels.inc"
#endif

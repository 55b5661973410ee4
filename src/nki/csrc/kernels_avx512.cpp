// The instructions for avx512 hosts.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "stream.h"

#if defined(__x86_64__) && defined(__GNUC__)
#pragma GCC target( \
    "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2,prefer-vector-width=512")
#define NEURON_NKI_SET avx512
#include "kernels.inc"
#endif

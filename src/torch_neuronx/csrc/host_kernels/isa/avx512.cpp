// Host kernels for avx512.
#if defined(__x86_64__)
#include <immintrin.h>

#include <c10/util/BFloat16.h>
#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e5m2.h>
#include <c10/util/Half.h>

#include "host_kernels/kernel_table.h"

// Only what follows may use these instructions: the headers above are shared.
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")
#pragma GCC optimize("O3")
// The compiler's own intrinsics start from undefined registers.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#define NEURON_ISA 2
#define NEURON_ISA_NAMESPACE avx512
#include "host_kernels/isa/kernels.h"
#endif

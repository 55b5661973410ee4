// Elementwise loops for avx2.
#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <iosfwd>
#include <string>
#include <type_traits>
#include <vector>

#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Half.h>
#include <c10/util/complex.h>

#include "host_kernels/pointwise_table.h"

// Only what follows may use these instructions: the headers above are shared.
#pragma GCC target("avx2,fma,f16c")
#ifndef __AVX2__
#define __AVX2__ 1
#define __AVX__ 1
#define __FMA__ 1
#define __F16C__ 1
#endif
#pragma GCC optimize("O3")
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#define CPU_CAPABILITY_AVX2
#define CPU_CAPABILITY AVX2
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>

#define NEURON_ISA 1
#define NEURON_ISA_NAMESPACE pointwise_avx2_loops
#include "host_kernels/pointwise_loops.h"

namespace neuron::host_kernels {

const PointwiseTable& pointwise_avx2() {
  static const auto* table =
      new PointwiseTable(NEURON_ISA_NAMESPACE::make_table());
  return *table;
}

}  // namespace neuron::host_kernels
#endif

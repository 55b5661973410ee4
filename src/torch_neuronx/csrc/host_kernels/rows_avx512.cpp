// Kernels along rows for avx512.
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

#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Half.h>
#include <c10/util/complex.h>
#include <c10/util/irange.h>

#include "host_kernels/rows.h"

// Only what follows may use these instructions: the headers above are shared.
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")
// GCC before 13 does not define these for a target pragma.
#ifndef __AVX512F__
#define __AVX512F__ 1
#define __AVX2__ 1
#define __AVX__ 1
#define __FMA__ 1
#define __F16C__ 1
#endif
// ATen builds its kernels with contraction: products and sums inside one op
// fuse the same way, so that results have the same bits.
#pragma GCC optimize("O3,fp-contract=fast")
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#define CPU_CAPABILITY_AVX512
#define CPU_CAPABILITY AVX512
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>
#include <ATen/native/cpu/moments_utils.h>

#define NEURON_ISA 2
#define NEURON_ISA_NAMESPACE rows_avx512_loops
#include "host_kernels/rows_loops.h"

namespace neuron::host_kernels::detail {

const RowTable& rows_avx512() {
  static constexpr RowTable table = {
      NEURON_ISA_NAMESPACE::row_table<float>(),
      NEURON_ISA_NAMESPACE::row_table<c10::BFloat16>(),
      NEURON_ISA_NAMESPACE::row_table<c10::Half>()};
  return table;
}

}  // namespace neuron::host_kernels::detail
#endif

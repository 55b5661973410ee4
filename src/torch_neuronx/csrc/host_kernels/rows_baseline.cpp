// Kernels along rows for baseline.
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

// ATen builds its kernels with contraction: products and sums inside one op
// fuse the same way, so that results have the same bits.
#pragma GCC optimize("O3,fp-contract=fast")
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#define CPU_CAPABILITY DEFAULT
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>
#include <ATen/native/cpu/moments_utils.h>

#define NEURON_ISA 0
#define NEURON_ISA_NAMESPACE rows_baseline_loops
#include "host_kernels/rows_loops.h"

namespace neuron::host_kernels::detail {

const RowTable& rows_baseline() {
  static constexpr RowTable table = {
      NEURON_ISA_NAMESPACE::row_table<float>(),
      NEURON_ISA_NAMESPACE::row_table<c10::BFloat16>(),
      NEURON_ISA_NAMESPACE::row_table<c10::Half>()};
  return table;
}

}  // namespace neuron::host_kernels::detail

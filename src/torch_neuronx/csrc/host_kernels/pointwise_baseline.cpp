// Elementwise loops for baseline.
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

#pragma GCC optimize("O3")
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#define CPU_CAPABILITY DEFAULT
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>

#define NEURON_ISA 0
#define NEURON_ISA_NAMESPACE pointwise_baseline_loops
#include "host_kernels/pointwise_loops.h"

namespace neuron::host_kernels {

const PointwiseTable& pointwise_baseline() {
  static const auto* table =
      new PointwiseTable(NEURON_ISA_NAMESPACE::make_table());
  return *table;
}

}  // namespace neuron::host_kernels

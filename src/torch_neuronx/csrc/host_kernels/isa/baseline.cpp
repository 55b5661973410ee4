// Host kernels for baseline.
#include <c10/util/BFloat16.h>
#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e5m2.h>
#include <c10/util/Half.h>

#include "host_kernels/kernel_table.h"

#pragma GCC optimize("O3")
#define NEURON_ISA 0
#define NEURON_ISA_NAMESPACE baseline
#include "host_kernels/isa/kernels.h"

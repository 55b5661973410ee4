// The instructions for generic hosts.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "stream.h"

#define NEURON_NKI_SET generic
#include "kernels.inc"

#include "host_kernels/kernel_table.h"

#include "host_kernels/isa.h"

namespace neuron::host_kernels {

namespace baseline {
extern const KernelTable kernels;
}
#if defined(__x86_64__)
namespace avx2 {
extern const KernelTable kernels;
}
namespace avx512 {
extern const KernelTable kernels;
}
namespace avx512_bf16 {
extern const KernelTable kernels;
}
#endif

const KernelTable& kernel_table() {
  switch (host_isa()) {
#if defined(__x86_64__)
    case Isa::avx512_bf16:
      return avx512_bf16::kernels;
    case Isa::avx512:
      return avx512::kernels;
    case Isa::avx2:
      return avx2::kernels;
#endif
    default:
      return baseline::kernels;
  }
}

}  // namespace neuron::host_kernels

#include "runtime/kernels/kernels.hpp"

#include <array>
#include <string_view>

namespace orrery {
namespace kernel_tables {

extern const KernelTable baseline;
#if defined(__x86_64__)
extern const KernelTable avx2;
extern const KernelTable avx512;
#endif

}  // namespace kernel_tables

const KernelTable* kernels_of(const char* isa) {
  const std::string_view name(isa);
  if (name == "baseline") return &kernel_tables::baseline;
#if defined(__x86_64__)
  if (name == "avx2" && __builtin_cpu_supports("avx2") != 0) return &kernel_tables::avx2;
  const bool wide =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
      __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  if (name == "avx512" && wide) return &kernel_tables::avx512;
#endif
  return nullptr;
}

const KernelTable& kernels() {
  for (const char* isa : {"avx512", "avx2"}) {
    if (const KernelTable* table = kernels_of(isa); table != nullptr) return *table;
  }
  return kernel_tables::baseline;
}

}  // namespace orrery

#include "runtime/kernels/kernels.hpp"

#include <string_view>

#include "runtime/kernels/decode_kernels.hpp"

namespace orrery {
namespace kernel_tables {

extern const KernelTable baseline;
#if defined(__x86_64__)
extern const KernelTable avx2;
extern const KernelTable avx512;
#endif

}  // namespace kernel_tables

namespace decode_kernel_tables {

extern const DecodeKernels baseline;
#if defined(__x86_64__)
extern const DecodeKernels avx2;
extern const DecodeKernels avx512;
extern const DecodeKernels avx512vnni;
#endif

}  // namespace decode_kernel_tables

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
  static const KernelTable& fastest = []() -> const KernelTable& {
    for (const char* isa : {"avx512", "avx2"}) {
      if (const KernelTable* table = kernels_of(isa); table != nullptr) return *table;
    }
    return kernel_tables::baseline;
  }();
  return fastest;
}

const DecodeKernels* decode_kernels_of(const char* isa) {
#if defined(__x86_64__)
  if (std::string_view(isa) == "avx512vnni") {
    const bool has = kernels_of("avx512") != nullptr && __builtin_cpu_supports("avx512vnni") != 0;
    return has ? &decode_kernel_tables::avx512vnni : nullptr;
  }
#endif
  const KernelTable* table = kernels_of(isa);
  if (table == nullptr) return nullptr;
#if defined(__x86_64__)
  if (table == &kernel_tables::avx2) return &decode_kernel_tables::avx2;
  if (table == &kernel_tables::avx512) return &decode_kernel_tables::avx512;
#endif
  return &decode_kernel_tables::baseline;
}

const DecodeKernels& decode_kernels() {
  static const DecodeKernels& fastest = []() -> const DecodeKernels& {
    const DecodeKernels* integers = decode_kernels_of("avx512vnni");
    return integers != nullptr ? *integers : *decode_kernels_of(kernels().isa);
  }();
  return fastest;
}

}  // namespace orrery

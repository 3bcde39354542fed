#include "runtime/kernels/kernels.hpp"

#include <string_view>

#include "runtime/kernels/decode_kernels.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

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
extern const DecodeKernels avx512amx;
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

#if defined(__x86_64__)
namespace {

bool has_integers() {
  return kernels_of("avx512") != nullptr && __builtin_cpu_supports("avx512vnni") != 0;
}

/// Whether this process may use tile registers. Linux gives 8 KiB of state only to those that ask.
bool has_tiles() {
  static const bool given = [] {
    constexpr unsigned kNeeded = 1U << 22 | 1U << 24 | 1U << 25;  // bf16, tiles, integers
    constexpr long kAskForState = 0x1023;  // ARCH_REQ_XCOMP_PERM of asm/prctl.h
    constexpr long kTileData = 18;
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
    if ((d & kNeeded) != kNeeded) return false;
    return ::syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
  }();
  return given;
}

}  // namespace
#endif

const DecodeKernels* decode_kernels_of(const char* isa) {
#if defined(__x86_64__)
  const std::string_view name(isa);
  if (name == "avx512vnni") return has_integers() ? &decode_kernel_tables::avx512vnni : nullptr;
  if (name == "avx512amx") {
    return has_integers() && has_tiles() ? &decode_kernel_tables::avx512amx : nullptr;
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
    for (const char* isa : {"avx512amx", "avx512vnni"}) {
      if (const DecodeKernels* integers = decode_kernels_of(isa)) return *integers;
    }
    return *decode_kernels_of(kernels().isa);
  }();
  return fastest;
}

}  // namespace orrery

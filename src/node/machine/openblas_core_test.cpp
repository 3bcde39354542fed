// node/machine/openblas_core_test.cpp - CPUs as the kernel describes them, and what each needs.
#include "node/machine/openblas_core.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

namespace orrery {
namespace {

struct Cpu {
  std::string_view name;
  std::string_view vendor;
  std::uint32_t family;
  std::uint32_t model;
  std::string_view flags;
  std::string_view expected;
};

constexpr std::string_view kAvx2 = "fpu sse2 fma avx2 bmi2";
constexpr std::string_view kAvx512 = "fma avx2 avx512f avx512dq avx512bw avx512vl";
constexpr std::string_view kBf16 = "fma avx2 avx512f avx512dq avx512bw avx512vl avx512_bf16 ht";

constexpr std::array<Cpu, 11> kCpus{{
    {"Skylake-SP", "GenuineIntel", 6, 85, kAvx512, ""},
    {"Sapphire Rapids", "GenuineIntel", 6, 143, kBf16, ""},
    {"Granite Rapids", "GenuineIntel", 6, 173, kBf16, ""},
    {"Sierra Forest", "GenuineIntel", 6, 175, kAvx2, ""},
    {"Raptor Lake", "GenuineIntel", 6, 183, kAvx2, "HASWELL"},
    {"Emerald Rapids", "GenuineIntel", 6, 207, kBf16, "COOPERLAKE"},
    {"Emerald Rapids without bf16", "GenuineIntel", 6, 207, kAvx512, "SKYLAKEX"},
    {"a new family", "GenuineIntel", 19, 1, kBf16, "COOPERLAKE"},
    {"a new small core", "GenuineIntel", 6, 190, "sse2 fma avx2x", ""},
    {"Zen 2", "AuthenticAMD", 23, 49, kAvx2, ""},
    {"Zen 5", "AuthenticAMD", 26, 2, kBf16, ""},
}};

TEST(OpenblasCore, IsNamedWhereTheLibraryDoesNotKnowTheCpuAndNowhereElse) {
  for (const Cpu& cpu : kCpus) {
    const std::string text = fmt::format(
        "processor\t: 0\nvendor_id\t: {}\ncpu family\t: {}\nmodel\t\t: {}\nmodel name\t: 7\n"
        "flags\t\t: {}\nbugs\t\t: avx512f\n\nprocessor\t: 1\nvendor_id\t: Other\n",
        cpu.vendor, cpu.family, cpu.model, cpu.flags);
    EXPECT_EQ(openblas_core_type(text), cpu.expected) << cpu.name;
  }
  EXPECT_EQ(openblas_core_type(""), "");
  EXPECT_EQ(openblas_core_type("CPU implementer\t: 0x41\nFeatures\t: fp asimd\n"), "");
}

}  // namespace
}  // namespace orrery

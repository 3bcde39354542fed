// perf/machine/kernel_time_test.cpp - kernels against the roofline and against what they should
// feel.
#include "perf/machine/kernel_time.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/numbers/rng.hpp"
#include "perf/serving/serving_test.hpp"

namespace orrery {
namespace {

KernelTime kernels_of(std::string_view name, double group = 8) {
  const std::vector<std::string> engine{"kernel", "any"};
  return {part(name),
          serving_constants(builtin_constants(),
                            {.accelerator = part(name), .engine = engine, .group = group})};
}

TEST(KernelTime, NoProductBeatsTheRoofline) {
  Rng rng(7);
  for (const char* name : {"A100", "H100", "B200", "L40S", "MI300X", "Gaudi 2"}) {
    const KernelTime kernels = kernels_of(name);
    const double rate = part(name).rate(NumberFormat::kBf16)->value();
    const double bandwidth = part(name).memory_bandwidth.value();
    for (int i = 0; i < 200; ++i) {
      const MatrixProduct p{.m = 1 + std::floor(8192 * rng.uniform()),
                            .n = 128 + std::floor(16384 * rng.uniform()),
                            .k = 128 + std::floor(16384 * rng.uniform())};
      const double seconds = kernels.matmul(p);
      EXPECT_GT(seconds, 2 * p.m * p.n * p.k / rate) << name;
      EXPECT_GT(seconds, 2 * p.n * p.k / bandwidth) << name;
    }
  }
}

TEST(KernelTime, MeasuredProductsAreMetWithinATenth) {
  // Published kernel latencies of 8192 x 8192 weights.
  const KernelTime h100 = kernels_of("H100");
  EXPECT_NEAR(h100.matmul({.m = 16, .n = 8192, .k = 8192}) / 46.4e-6, 1, 0.15);
  const MatrixProduct fp8{.m = 8192,
                          .n = 10240,
                          .k = 8192,
                          .weights = NumberFormat::kFp8,
                          .activations = NumberFormat::kFp8};
  EXPECT_NEAR(h100.matmul(fp8) / 997.6e-6, 1, 0.1);
}

TEST(KernelTime, NarrowWeightsPayInDecodeAndWhereTheDeviceComputesInThem) {
  const KernelTime a100 = kernels_of("A100");
  MatrixProduct product{.m = 1, .n = 8192, .k = 8192};
  const double wide = a100.matmul(product);
  product.weights = NumberFormat::kFp8;
  EXPECT_LT(a100.matmul(product), 0.75 * wide);
  product.m = 8192;
  product.activations = NumberFormat::kFp8;
  const double narrow = a100.matmul(product);
  EXPECT_GE(narrow, a100.matmul({.m = 8192, .n = 8192, .k = 8192}) * 0.99);
  EXPECT_LT(kernels_of("H100").matmul(product),
            0.7 * kernels_of("H100").matmul({.m = 8192, .n = 8192, .k = 8192}));
}

TEST(KernelTime, AnAllReduceOverPcieIsManyTimesSlower) {
  const double bytes = 64 * 8192 * 2;
  EXPECT_GT(kernels_of("L40S").all_reduce(bytes, 8), 4 * kernels_of("H100").all_reduce(bytes, 8));
  EXPECT_EQ(kernels_of("H100").all_reduce(bytes, 1), 0);
}

TEST(KernelTime, TwoOfAFullMeshShareOnlyTheirOwnLinks) {
  const double bytes = 1e9;
  const double two = kernels_of("MI300X", 2).all_reduce(bytes, 2);
  const double eight = kernels_of("MI300X", 8).all_reduce(bytes, 8);
  EXPECT_GT(two, 3 * eight);
}

TEST(KernelTime, MoreWorkNeverTakesLess) {
  const KernelTime kernels = kernels_of("B200");
  double before = 0;
  for (double m = 1; m < 20000; m *= 2) {
    const double seconds = kernels.matmul({.m = m, .n = 8192, .k = 8192});
    EXPECT_GE(seconds, before);
    before = seconds;
  }
}

/// Nodes of eight H100, joined as in the catalog.
KernelTime joined_kernels(double domain) {
  const std::vector<std::string> engine{"kernel", "any"};
  ServingConstants constants = serving_constants(
      builtin_constants(), {.accelerator = part("H100"), .engine = engine, .group = 8});
  const Result<Machine> machine = machine_of(
      builtin_facts(), {.accelerator = &part("H100"), .accelerators = 256, .scale_out = true});
  EXPECT_TRUE(machine);
  constants.network = {.domain = domain, .between = network_of(*machine, builtin_constants())};
  return {part("H100"), constants};
}

TEST(KernelTime, TheNetworkCountsWhereAGroupLeavesItsDomain) {
  const KernelTime near = joined_kernels(INFINITY);
  const KernelTime far = joined_kernels(8);
  for (double bytes = 1e3; bytes < 1e9; bytes *= 10) {
    for (const double devices : {2.0, 8.0}) {
      EXPECT_EQ(near.all_reduce(bytes, devices), far.all_reduce(bytes, devices));
      EXPECT_EQ(near.all_to_all(bytes, devices), far.all_to_all(bytes, devices));
    }
    for (double devices = 16; devices <= 256; devices *= 2) {
      EXPECT_GT(far.all_reduce(bytes, devices), far.all_reduce(bytes, 8));
      EXPECT_GE(far.all_reduce(bytes, devices), far.all_reduce(bytes, devices / 2));
      EXPECT_GT(far.all_to_all(bytes, devices), near.all_to_all(bytes, devices));
    }
    // No byte leaves a device faster than its 400 Gb/s.
    EXPECT_GT(far.all_to_all(bytes, 256), bytes * 248 / 256 / 50e9);
    EXPECT_GT(far.send_between_domains(bytes, 8), bytes / 50e9);
  }
}

}  // namespace
}  // namespace orrery

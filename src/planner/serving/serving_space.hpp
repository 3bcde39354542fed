// planner/serving/serving_space.hpp - the ways to lay out a model for inference, and the number
// formats in which to hold it.
//
// Values, pure. Cost: O(log^2 of the devices) layouts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perf/serving/serving_job.hpp"
#include "workload/models/model.hpp"

namespace orrery {

/// Instances larger than this are not tried.
inline constexpr std::uint32_t kInstanceMax = 256;

/// Instances of 1, 2, 4... devices up to `devices`, each as tp x pp x attention groups:
///   tp  powers of two that divide the heads of every attention
///   pp  powers of two up to the number of layers
///   ep  1, or all of an instance's devices beside its stages, where it divides the experts
///   attention_dp  above 1 only with experts dealt to all those devices
/// Ascending devices, then stages, then attention groups. Invariant: replicas and cores are 1.
[[nodiscard]] std::vector<ServingPlan> serving_layouts(const ServingShape& shape,
                                                       std::uint32_t devices);

/// Devices of one instance.
[[nodiscard]] double devices_of(const ServingPlan& plan);

/// Scale-up domains of `domain` devices that one instance takes: it has the same power of two of
/// devices in each.
[[nodiscard]] double domains_of(const ServingPlan& plan, std::uint32_t domain);

/// "tp=4,pp=2", "tp=1,attention_dp=8,ep=8".
[[nodiscard]] std::string print_layout(const ServingPlan& plan);

/// The formats in which weights are held and products are computed.
struct ServingNumbers {
  NumberFormat weights = NumberFormat::kBf16;
  NumberFormat activations = NumberFormat::kBf16;

  friend bool operator==(const ServingNumbers&, const ServingNumbers&) = default;
};

/// "fp8", or "fp4 weights, bf16 products".
[[nodiscard]] std::string print_numbers(const ServingNumbers& numbers);

/// The `stated` formats, else those for which the accelerator has rates: 16 bits, fp8 (int8 where
/// there is no fp8), fp4, none wider than that in which the model is published, and that one. int4,
/// and a format without a rate, holds weights alone; products are then in 16 bits. Empty: no rate
/// for 16-bit products.
[[nodiscard]] std::vector<ServingNumbers> serving_numbers(const Accelerator& accelerator,
                                                          const Model& model,
                                                          const std::vector<NumberFormat>& stated);

}  // namespace orrery

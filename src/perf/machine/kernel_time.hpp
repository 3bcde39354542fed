// perf/machine/kernel_time.hpp - seconds of one kernel of a serving step on one device: matrix
// product, grouped expert product, attention, element-wise pass, all-reduce.
//
// A value built per job from the accelerator's rates and the calibration's constants; pure.
// Invariant: no time is below the roofline of the device's peak rate and bandwidth.
// Cost: a few dozen operations a call.
#pragma once

#include "hardware/accelerator.hpp"
#include "hardware/number_format.hpp"
#include "perf/serving/serving_constants.hpp"

namespace orrery {

/// Bytes of a stored element, scales of block formats included.
[[nodiscard]] double stored_bytes(NumberFormat format);

/// Product of m x k activations with k x n weights, `repeats` in one launch.
struct MatrixProduct {
  double m = 1;
  double n = 1;
  double k = 1;
  NumberFormat weights = NumberFormat::kBf16;
  NumberFormat activations = NumberFormat::kBf16;
};

/// Expert products of one layer on one device.
struct ExpertProducts {
  double assignments = 0;  ///< tokens times experts, on this device
  double touched = 0;      ///< experts with at least one token
  double weights = 0;      ///< elements of one expert on this device
  double matrices = 3;
  NumberFormat format = NumberFormat::kBf16;
  NumberFormat activations = NumberFormat::kBf16;
};

/// Attention of one layer on one device.
struct AttentionWork {
  double operations = 0;
  double bytes = 0;   ///< of the cache, read
  double prompt = 0;  ///< tokens of the prompt piece; 0: decode
  NumberFormat kv = NumberFormat::kBf16;
};

class KernelTime {
 public:
  KernelTime(const Accelerator& accelerator, const ServingConstants& constants);

  /// Seconds. Max of compute and memory time, rounded where they meet, plus the launch.
  [[nodiscard]] double matmul(const MatrixProduct& product) const;
  [[nodiscard]] double experts(const ExpertProducts& products) const;
  [[nodiscard]] double attention(const AttentionWork& work) const;

  /// Seconds to pass `bytes` through memory once.
  [[nodiscard]] double stream(double bytes) const;

  /// Seconds in which `devices` sum `bytes` each (ring or multimem, both 2 (g-1)/g of the size).
  /// Beyond one scale-up domain, devices in the same place of each then sum their parts.
  [[nodiscard]] double all_reduce(double bytes, double devices) const;

  /// Seconds in which each of `devices` sends `bytes`, all to all.
  [[nodiscard]] double all_to_all(double bytes, double devices) const;

  /// Seconds in which each device of a pipeline stage of `devices` sends `bytes` to its successor
  /// in another scale-up domain.
  [[nodiscard]] double send_between_domains(double bytes, double devices) const;

 private:
  [[nodiscard]] double rate(NumberFormat weights, NumberFormat activations) const;
  [[nodiscard]] double blend(double compute, double memory) const;
  [[nodiscard]] double link_bandwidth(double devices) const;
  [[nodiscard]] double inside(double devices) const;

  const Accelerator& accelerator_;
  ServingConstants constants_;
  double rate16_ = 0;  ///< operations a second reached, by width of the operands
  double rate8_ = 0;
  double rate8i_ = 0;
  double rate4_ = 0;
  double bandwidth_ = 0;
};

}  // namespace orrery

// perf/serving/serving_job.hpp - what is to be served, on what, by which software and under which
// load.
//
// A value. Invariant: every size is positive; the accelerator outlives the job.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "hardware/accelerator.hpp"
#include "hardware/number_format.hpp"
#include "perf/serving/serving_shape.hpp"

namespace orrery {

/// Devices of one instance of the model: tp x pp x attention_dp. The rest of the accelerators hold
/// further instances.
struct ServingPlan {
  double tp = 1;            ///< devices each attention head group is divided over
  double pp = 1;            ///< pipeline stages
  double ep = 1;            ///< groups of devices the experts are dealt to
  double attention_dp = 1;  ///< groups with their own sequences that share the experts
  double replicas = 1;      ///< instances
  double cores = 1;         ///< of a device, each a rank of its own

  /// Devices an expert is divided over.
  [[nodiscard]] double expert_tp() const { return tp * attention_dp / ep; }

  /// Part of `kv_heads` on one device; a rank holds whole heads, some of them copies.
  [[nodiscard]] double kv_part(double kv_heads) const {
    return std::ceil(kv_heads / (tp * cores)) * cores / kv_heads;
  }
};

struct ServingFormats {
  NumberFormat weights = NumberFormat::kBf16;  ///< of the experts where there are any
  NumberFormat kv = NumberFormat::kBf16;
  NumberFormat activations = NumberFormat::kBf16;
  NumberFormat mixers = NumberFormat::kBf16;  ///< weights of attention and of dense layers
};

/// What an instance computes of a request.
enum class ServingRole { kWhole, kPrompt, kAnswer };

/// How requests become batches.
enum class Batching {
  kStatic,      ///< a batch starts and ends together
  kContinuous,  ///< a finished sequence makes room for the next one
};

struct ServingLoad {
  double input = 1;   ///< tokens of a prompt
  double output = 1;  ///< tokens generated
  Batching batching = Batching::kContinuous;
  std::optional<double> concurrency;  ///< requests in flight, an instance
  std::optional<double> batch_max;    ///< sequences running, an instance
  std::optional<double> rate;         ///< requests offered a second, an instance
  std::optional<double> requests;     ///< of the whole measurement, an instance
  bool latency_bound = false;         ///< arrivals must meet limits on latency
};

struct ServingJob {
  ServingShape shape;
  const Accelerator* accelerator = nullptr;
  ServingPlan plan;
  ServingFormats formats;
  std::vector<std::string> engine;  ///< keys of its constants, the most special first
  ServingLoad load;
};

}  // namespace orrery

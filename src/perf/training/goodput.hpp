// perf/training/goodput.hpp - the part of its time in which a long training run advances, given
// failures and checkpoints, and how often it should write one.
//
// Failures of the N nodes are independent and exponential: a job of N nodes at r failures a
// node-second is stopped every M = 1/(N r) seconds. Values, pure. Cost: some roots and look-ups.
// Sources: J. W. Young, CACM 17(9), 1974; J. T. Daly, FGCS 22(3), 2006; A. Kokolis et al., HPCA
// 2025 (the expectation of the effective training time ratio); figures in catalog/reliability.yaml.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"
#include "hardware/catalog.hpp"
#include "perf/calibration.hpp"

namespace orrery {

/// M of a job of `nodes` nodes, `severity` times as prone to fail as the profile (1: as it).
/// Errors: no failures at all (M would be infinite), nodes below 1.
[[nodiscard]] Result<Seconds> mean_time_to_failure(const FailureProfile& profile, double nodes,
                                                   double severity = 1);

/// Young's first-order interval between the starts of computing: sqrt(2 w M).
[[nodiscard]] Result<Seconds> young_interval(Seconds write, Seconds mean_time_to_failure);

/// Daly's higher-order interval: sqrt(2 w M) (1 + sqrt(w/2M)/3 + (w/2M)/9) - w, and M when w >= 2M.
[[nodiscard]] Result<Seconds> daly_interval(Seconds write, Seconds mean_time_to_failure);

/// The state that is written.
enum class CheckpointContent { kFull, kWeights };

inline std::array<EnumWord<CheckpointContent>, 2> enum_words(CheckpointContent) {
  return {{{"full", CheckpointContent::kFull}, {"weights", CheckpointContent::kWeights}}};
}

/// 14 bytes a parameter with the optimizer's state, 2 for the weights alone (the calibration's).
[[nodiscard]] Result<Bytes> checkpoint_bytes(const Calibration& calibration, double parameters,
                                             CheckpointContent content);

enum class CheckpointMode {
  kBlocking,  ///< training waits until the storage has it all
  kBehind,    ///< training waits for the copy to host memory; the rest happens behind it
};

inline std::array<EnumWord<CheckpointMode>, 2> enum_words(CheckpointMode) {
  return {{{"blocking", CheckpointMode::kBlocking}, {"behind", CheckpointMode::kBehind}}};
}

struct CheckpointTransfer {
  Bytes bytes;              ///< of one copy of the state
  double accelerators = 1;  ///< that hold distinct parts of it
  BytesPerSecond write;     ///< whole job, see perf/site/storage_path.hpp
  BytesPerSecond read;
  BytesPerSecond device_to_host;  ///< of one accelerator; for kBehind
  double copies_read = 1;  ///< a restart reads one copy and broadcasts it, or one for each replica
  CheckpointMode mode = CheckpointMode::kBlocking;
};

struct CheckpointTimes {
  Seconds stall;    ///< w: what training waits for one checkpoint
  Seconds persist;  ///< until the storage has it, at least the stall
  Seconds read;     ///< on restart
};

[[nodiscard]] Result<CheckpointTimes> checkpoint_times(const CheckpointTransfer& transfer);

enum class RestartKind {
  kCold,
  kWarmSpares,  ///< nodes that stand ready; never slower than a cold restart
};

inline std::array<EnumWord<RestartKind>, 2> enum_words(RestartKind) {
  return {{{"cold", RestartKind::kCold}, {"warm-spares", RestartKind::kWarmSpares}}};
}

/// The catalog's restart times, linear in the logarithm of the accelerators between its rows and on
/// beyond the last; the first row's below it. Errors: an empty table, accelerators below 1.
[[nodiscard]] Result<Seconds> restart_time(const Catalog& catalog, const Calibration& calibration,
                                           double accelerators, RestartKind kind);

/// The catalog's time from a failure to its notice. Errors: an unknown path, with the nearest.
[[nodiscard]] Result<Seconds> detection_time(const Catalog& catalog, std::string_view path);

struct GoodputInputs {
  Seconds mean_time_to_failure;  ///< of the job
  CheckpointTimes checkpoint;
  Seconds detect;
  Seconds restart;                  ///< without reading the checkpoint
  Seconds step;                     ///< an interval holds whole steps: none is shorter
  std::optional<Seconds> interval;  ///< the operator's; none: the one of most goodput
};

/// Parts of the wall-clock time; they sum to 1.
struct Goodput {
  Seconds interval;
  double effective = 1;    ///< E[ETTR]: time in which training advances for good
  double checkpoints = 0;  ///< stalls for writing
  double lost_work = 0;    ///< computed again, half an interval a failure
  double detection = 0;
  double restart = 0;
  double reading = 0;
};

/// E[ETTR] = (1 - (u0 + dt/2)/M) / (1 + w/dt), u0 = detect + restart + read.
/// Without an interval the dt of its maximum, -w + sqrt(w^2 + 2 M w (1 - u0/M)), not below one step
/// nor what persisting takes beyond the stall. Errors: a shorter interval given; infeasible when
/// failures leave no time (E[ETTR] <= 0).
[[nodiscard]] Result<Goodput> goodput_of(const GoodputInputs& inputs);

}  // namespace orrery

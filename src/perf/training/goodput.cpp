#include "perf/training/goodput.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/numbers/math.hpp"
#include "base/text/quantity_text.hpp"
#include "perf/range_check.hpp"

namespace orrery {
namespace {

constexpr Seconds kThousandNodeDays = kHour * 24.0 * 1000.0;

Status check_write(Seconds write, Seconds mean_time) {
  Status checked = check_range("seconds to write a checkpoint", write.value(), kNotNegative);
  if (checked) checked = check_range("mean time to failure", mean_time.value(), kPositive);
  return checked;
}

Status check_inputs(const GoodputInputs& inputs) {
  Status checked = check_write(inputs.checkpoint.stall, inputs.mean_time_to_failure);
  if (checked) {
    checked = check_range("time to persist", inputs.checkpoint.persist.value(), kNotNegative);
  }
  if (checked) checked = check_range("time to read", inputs.checkpoint.read.value(), kNotNegative);
  if (checked) checked = check_range("time to detect", inputs.detect.value(), kNotNegative);
  if (checked) checked = check_range("time to restart", inputs.restart.value(), kNotNegative);
  if (checked) checked = check_range("step time", inputs.step.value(), kPositive);
  if (checked) {
    checked = check_range("checkpoint interval", inputs.interval.value_or(inputs.step).value(),
                          kPositive);
  }
  return checked;
}

/// A checkpoint must be in the storage before the next begins, and no interval parts a step.
Seconds interval_min(const GoodputInputs& inputs) {
  return std::max(inputs.checkpoint.persist - inputs.checkpoint.stall, inputs.step);
}

/// dt of the largest E[ETTR]: its derivative is zero where dt^2 + 2 w dt = 2 M w (1 - u0/M).
Seconds best_interval(const GoodputInputs& inputs, double restart_share) {
  const double w = inputs.checkpoint.stall.value();
  const double m = inputs.mean_time_to_failure.value();
  const Seconds free(std::sqrt(w * w + 2 * m * w * std::max(0.0, 1 - restart_share)) - w);
  return std::max(free, interval_min(inputs));
}

}  // namespace

Result<Seconds> mean_time_to_failure(const FailureProfile& profile, double nodes, double severity) {
  Status checked = check_range(fmt::format("failures of {} in 1000 node-days", profile.id),
                               profile.failures_per_1000_node_days, {1e-9, 1e12});
  if (checked) checked = check_range("nodes", nodes, {1, 1e12});
  if (checked) checked = check_range("severity of failures", severity, {1e-6, 1e6});
  if (!checked) return forward_error(checked);
  return kThousandNodeDays / (profile.failures_per_1000_node_days * nodes * severity);
}

Result<Seconds> young_interval(Seconds write, Seconds mean_time_to_failure) {
  Status checked = check_write(write, mean_time_to_failure);
  if (!checked) return forward_error(checked);
  return Seconds(std::sqrt(2 * write.value() * mean_time_to_failure.value()));
}

Result<Seconds> daly_interval(Seconds write, Seconds mean_time_to_failure) {
  Result<Seconds> young = young_interval(write, mean_time_to_failure);
  if (!young) return young;
  const double ratio = write / (2 * mean_time_to_failure);
  if (ratio >= 1) return mean_time_to_failure;
  return *young * (1 + std::sqrt(ratio) / 3 + ratio / 9) - write;
}

Result<Bytes> checkpoint_bytes(const Calibration& calibration, double parameters,
                               CheckpointContent content) {
  Status checked = check_range("parameters", parameters, kPositive);
  if (!checked) return forward_error(checked);
  return Bytes(parameters * calibration.first_of({content == CheckpointContent::kFull
                                                      ? "checkpoint.bytes_per_parameter.full"
                                                      : "checkpoint.bytes_per_parameter.weights"}));
}

Result<CheckpointTimes> checkpoint_times(const CheckpointTransfer& transfer) {
  Status checked = check_range("bytes of a checkpoint", transfer.bytes.value(), kPositive);
  if (checked) checked = check_range("accelerators", transfer.accelerators, {1, kFigureMax});
  if (checked) checked = check_range("write rate", transfer.write.value(), kPositive);
  if (checked) checked = check_range("read rate", transfer.read.value(), kPositive);
  if (checked) checked = check_range("copies read", transfer.copies_read, {1, kFigureMax});
  if (!checked) return forward_error(checked);
  CheckpointTimes times;
  times.persist = transfer.bytes / transfer.write;
  times.read = transfer.bytes * transfer.copies_read / transfer.read;
  times.stall = times.persist;
  if (transfer.mode == CheckpointMode::kBlocking) return times;
  checked = check_range("rate from device to host", transfer.device_to_host.value(), kPositive);
  if (!checked) return forward_error(checked);
  times.stall =
      std::min(times.persist, transfer.bytes / (transfer.device_to_host * transfer.accelerators));
  return times;
}

Result<Seconds> restart_time(const Catalog& catalog, const Calibration& calibration,
                             double accelerators, RestartKind kind) {
  Status checked = check_range("accelerators", accelerators, {1, kFigureMax});
  if (!checked) return forward_error(checked);
  std::vector<std::pair<double, Seconds>> rows;
  for (const RestartTime& row : catalog.all<RestartTime>()) {
    checked = check_range("accelerators of a restart time", row.accelerators, {1, kFigureMax});
    if (!checked) return forward_error(checked);
    rows.emplace_back(math::log(row.accelerators), row.time);
  }
  if (rows.empty()) return input_error({}, "the catalog has no restart_times");
  std::sort(rows.begin(), rows.end());
  const double at = math::log(accelerators);
  Seconds time = rows.front().second;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto& [low, low_time] = rows[i - 1];
    const auto& [high, high_time] = rows[i];
    if (at <= low || high <= low) continue;
    const double past = (i + 1 < rows.size() ? std::min(at, high) : at) - low;
    time = low_time + (high_time - low_time) * (past / (high - low));
  }
  if (kind == RestartKind::kWarmSpares) {
    time = std::min(time, Seconds(calibration.first_of({"restart.warm.seconds"})));
  }
  return std::max(time, Seconds(0));
}

Result<Seconds> detection_time(const Catalog& catalog, std::string_view path) {
  Result<const DetectionTime*> row = catalog.require<DetectionTime>(path);
  if (!row) return forward_error(row);
  return (*row)->time;
}

Result<Goodput> goodput_of(const GoodputInputs& inputs) {
  if (Status checked = check_inputs(inputs); !checked) return forward_error(checked);
  const Seconds mean_time = inputs.mean_time_to_failure;
  Goodput result;
  result.detection = inputs.detect / mean_time;
  result.restart = inputs.restart / mean_time;
  result.reading = inputs.checkpoint.read / mean_time;
  const double restart_share = result.detection + result.restart + result.reading;
  result.interval = inputs.interval.value_or(best_interval(inputs, restart_share));
  if (result.interval < interval_min(inputs)) {
    return input_error({}, fmt::format("checkpoints every {}: with such steps and storage, give {} "
                                       "or more",
                                       print(result.interval), print(interval_min(inputs))));
  }
  result.lost_work = result.interval / (2 * mean_time);
  const double left = 1 - restart_share - result.lost_work;
  if (left <= 0) {
    return infeasible(fmt::format(
        "a failure every {} leaves no time: detection, restart and reading take {}, and {} of work "
        "is lost each time",
        print(mean_time), print(mean_time * restart_share), print(result.interval / 2)));
  }
  result.effective = left / (1 + inputs.checkpoint.stall / result.interval);
  result.checkpoints = left - result.effective;
  return result;
}

}  // namespace orrery

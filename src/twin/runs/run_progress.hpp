// twin/runs/run_progress.hpp - how much of a job's work is done, and how much of it a restart
// keeps.
//
// One for a job; it lasts over all attempts. Work is counted in seconds at an option's speed of 1;
// ranks that are up do it at a rate. Work advances evenly between checkpoints; the time of
// checkpoints is spread over it. A fault halts the ranks until it is detected, or makes their
// results wrong. A value. Cost: O(1) a call.
//
// Invariants:
// 1. The work left is at most the work left in the newest good copy, which is at most all work.
// 2. Time that passes changes nothing unless the ranks compute.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.hpp"
#include "control/state/job.hpp"

namespace orrery {

/// Returns the time multiplied by the factor; a factor of 1 leaves it exact.
[[nodiscard]] Duration scaled(Duration time, double factor);

/// How often a job copies its state, and for how long that stops it.
struct CheckpointPace {
  Duration interval = Duration::max();  ///< max: it writes none
  Duration cost;

  [[nodiscard]] bool writes() const { return interval != Duration::max(); }
};

/// When a copy of the state is good.
enum class CopyMode : std::uint8_t {
  kPaced,   ///< after each interval and the cost of the copy
  kStored,  ///< when its bytes have arrived in shared storage
};

class RunProgress {
 public:
  /// Duration::max(): a service, whose work never ends.
  explicit RunProgress(Duration work) : work_(work), left_(work), good_{work, {}} {}

  [[nodiscard]] bool up() const { return up_; }
  /// Whether a fault stopped the ranks and has not been reported yet.
  [[nodiscard]] bool halted() const { return halted_at_.has_value(); }
  [[nodiscard]] bool computes() const { return up_ && !halted_at_; }
  [[nodiscard]] const CheckpointPace& pace() const { return pace_; }
  [[nodiscard]] bool stores() const { return copies_ == CopyMode::kStored; }
  /// Work left now, as of the last call of settle().
  [[nodiscard]] Duration left() const { return left_; }
  /// Whether a copy covers any work.
  [[nodiscard]] bool has_state() const { return good_.left < work_; }
  /// Whether the newest copy holds wrong results, so that a restart uses an older one.
  [[nodiscard]] bool newest_copy_wrong() const { return newest_copy_wrong_; }
  /// Whether any of its work is wrong, detected or not.
  [[nodiscard]] bool corrupt() const { return corruption_.has_value(); }
  /// Whether the work since the corruption is known to be useless.
  [[nodiscard]] bool known_wrong(Instant now) const {
    return corruption_ && corruption_->known <= now;
  }
  /// Time to the end at the present rate; none: the work never ends.
  [[nodiscard]] std::optional<Duration> until_end() const {
    return work_ == Duration::max() ? std::nullopt : std::optional(scaled(left_, 1 / rate_));
  }

  /// Continues from a history in which that part of the work was done and saved.
  void restore(double done);
  /// Continues from a history with ranks that have `left` to run at the present rate, and whose
  /// newest copy was complete `unsaved` ago. Precondition: begin(), come_up() if they are up, and
  /// set_rate().
  void adopt(Duration left, Duration unsaved);

  /// Begins an epoch: the ranks are not up yet.
  void begin(const CheckpointPace& pace);
  /// Returns to the newest good copy, as an attempt does that starts from the queue.
  void rewind() { left_ = good_.left; }
  /// The ranks are up, and their nodes hold the state.
  void come_up(Instant now);
  /// Sets the work that a second of computing does; checkpoints lower it.
  void set_rate(double rate);
  void set_copies(CopyMode mode) { copies_ = mode; }
  /// Updates the work left and the work saved to `now`.
  void settle(Instant now);
  /// The ranks stop by command or by their end.
  void take_down() { up_ = false; }
  /// A fault stops the ranks and nothing shows it yet.
  void halt(Instant now) { halted_at_ = now; }
  /// From now on the ranks compute wrong results, which is detected at `known`. A second corruption
  /// adds nothing.
  void corrupt_results(Instant known);
  /// Skips the work that is left.
  void exhaust() { left_ = Duration(); }

  /// Counts all work done as saved.
  void save_all() { good_.left = left_; }
  /// Counts the stall of a copy whose bytes are now on their way.
  void count_stall() { saving_ += pace_.cost; }
  /// A copy of the state with so much work left is complete.
  void complete_copy(Duration left, Instant now);

  /// Reports the attempt's work and returns to the newest good copy: unsaved work is lost, and time
  /// that the ranks were halted undetected is no work.
  [[nodiscard]] Progress report(Instant now);
  /// Reports a halt or wrong results of a job that goes on in another epoch; it keeps its work in
  /// memory, unless that is known to be wrong. None: there is nothing to report.
  [[nodiscard]] std::optional<Progress> report_epoch(Instant now);
  /// Reports that all work is done.
  [[nodiscard]] Progress finish();

 private:
  /// The newest complete copy that is not known to be wrong.
  struct GoodCopy {
    Duration left;  ///< of the work, in the copy
    Instant at;     ///< when it was complete
  };
  struct Corruption {
    Duration left;  ///< of the work, in the newest copy that is not wrong
    Instant known;  ///< when it is detected
  };

  Duration work_;
  Duration left_;  ///< of the work, at `since_`
  GoodCopy good_;
  Instant since_;
  double rate_ = 1;  ///< work a second, checkpoints included
  CheckpointPace pace_;
  Duration saving_;  ///< spent on checkpoints since the last report
  std::optional<Instant> halted_at_;
  std::optional<Corruption> corruption_;
  bool up_ = false;
  CopyMode copies_ = CopyMode::kPaced;
  bool newest_copy_wrong_ = false;
};

}  // namespace orrery

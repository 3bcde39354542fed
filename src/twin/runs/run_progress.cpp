#include "twin/runs/run_progress.hpp"

#include <algorithm>
#include <utility>

namespace orrery {

Duration scaled(Duration time, double factor) {
  return factor == 1 ? time : Duration::from_seconds(time.count_seconds() * factor);
}

void RunProgress::restore(double done) {
  if (work_ != Duration::max()) left_ = good_.left = scaled(work_, 1 - done);
}

void RunProgress::adopt(Duration left, Duration unsaved) {
  good_.at = since_ - unsaved;
  if (work_ == Duration::max()) return;
  left_ = scaled(left, rate_);
  good_.left = left_ + scaled(unsaved, rate_);
  work_ = std::max(work_, good_.left);
}

void RunProgress::begin(const CheckpointPace& pace) {
  up_ = false;
  halted_at_.reset();
  pace_ = pace;
}

void RunProgress::come_up(Instant now) {
  up_ = true;
  since_ = good_.at = now;
  newest_copy_wrong_ = false;
}

void RunProgress::set_rate(double rate) {
  rate_ = rate;
  if (!pace_.writes() || pace_.interval <= Duration() || pace_.cost <= Duration()) return;
  const double interval = pace_.interval.count_seconds();
  rate_ *= interval / (interval + pace_.cost.count_seconds());
}

void RunProgress::settle(Instant now) {
  if (!computes() || now <= since_) return;
  if (pace_.writes() && copies_ == CopyMode::kPaced) {
    const std::int64_t every = (pace_.interval + pace_.cost).count_ns();
    const std::int64_t copies = every > 0 ? (now - good_.at).count_ns() / every : 0;
    if (copies > 0) {
      good_.at = good_.at + Duration::nanoseconds(every * copies);
      saving_ += pace_.cost * copies;
      good_.left = left_;
      if (good_.at > since_) {
        good_.left = left_ - std::min(scaled(good_.at - since_, rate_), left_);
      }
    }
  }
  left_ = left_ - std::min(scaled(now - since_, rate_), left_);
  since_ = now;
}

void RunProgress::corrupt_results(Instant known) {
  if (!corruption_) corruption_ = {good_.left, known};
}

void RunProgress::complete_copy(Duration left, Instant now) { good_ = {left, now}; }

Progress RunProgress::report(Instant now) {
  if (known_wrong(now)) {
    good_.left = corruption_->left;
    newest_copy_wrong_ = true;
  }
  // A restart from a copy made before the corruption is correct, whether the corruption is known or
  // not.
  if (corruption_ && good_.left >= corruption_->left) corruption_.reset();
  Progress progress;
  const double work = work_.count_seconds();
  progress.done = work > 0 ? 1 - good_.left.count_seconds() / work : 1;
  const double lost = (good_.left - left_).count_seconds();
  if (lost > 0) progress.lost = Duration::from_seconds(lost / (rate_ > 0 ? rate_ : 1));
  progress.saving = std::exchange(saving_, Duration());
  if (halted_at_) progress.undetected = now - *halted_at_;
  left_ = good_.left;
  halted_at_.reset();
  return progress;
}

std::optional<Progress> RunProgress::report_epoch(Instant now) {
  const bool wrong = known_wrong(now);
  if (!halted_at_ && !wrong) return std::nullopt;
  const Duration saved = good_.left;
  if (!wrong) good_.left = left_;
  Progress progress = report(now);
  if (!wrong) good_.left = saved;
  return progress;
}

Progress RunProgress::finish() {
  left_ = good_.left = Duration();
  return {1, {}, std::exchange(saving_, Duration()), {}};
}

}  // namespace orrery

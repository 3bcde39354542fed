#include "executor/log/log_room.hpp"

#include <fmt/format.h>

namespace orrery {
namespace {

std::uint64_t mebibytes(std::uint64_t bytes) { return bytes >> 20; }

}  // namespace

LogRoom::LogRoom(const Env& env, const Log& log, const Store& store, const Limits& limits)
    : env_(env), log_(log), store_(store), limits_(limits) {}

LogRoom::~LogRoom() {
  if (timer_) env_.timers.cancel(*timer_);
}

LogRoom::Size LogRoom::size() const {
  const std::uint64_t held = bytes();
  if (held > limits_.refuse) return Size::kTooLarge;
  return held > limits_.warn ? Size::kLarge : Size::kFits;
}

std::string LogRoom::warning() const {
  const Size now = size();
  if (now == Size::kFits) return {};
  return fmt::format(
      "the shared log has {} MiB, expected at most {} MiB; above {} MiB no jobs are accepted. "
      "`orrery store compact '{}'` puts a snapshot in its place; a smaller `retain` in "
      "controller.yaml makes snapshots smaller",
      mebibytes(bytes()), mebibytes(limits_.warn), mebibytes(limits_.refuse), store_.name());
}

void LogRoom::look() {
  constexpr Duration kEvery = Duration::seconds(5);
  const Size now = size();
  if (now != logged_) {
    const Instant at = env_.clock.now_wall();
    if (now == Size::kFits) {
      log_.info(at, "the shared log is small enough again", {{"bytes", bytes()}});
    } else if (now == Size::kTooLarge) {
      log_.error(at, "the shared log is too large, submissions are refused", {{"why", warning()}});
    } else if (logged_ == Size::kTooLarge) {
      log_.warning(at, "submissions are taken again, the shared log is large",
                   {{"why", warning()}});
    } else {
      log_.warning(at, "the shared log is large", {{"why", warning()}});
    }
    logged_ = now;
  }
  if (timer_) env_.timers.cancel(*timer_);
  timer_ = env_.timers.call_after(kEvery, [this] { look(); });
}

Status LogRoom::admission() const {
  if (size() != Size::kTooLarge) return {};
  return environment_error(warning());
}

}  // namespace orrery

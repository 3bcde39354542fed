#include "executor/log/disk_watch.hpp"

#include <fmt/format.h>

#include <utility>

namespace orrery {

DiskWatch::DiskWatch(const Env& env, const Log& log, std::string directory, std::uint64_t bytes)
    : env_(env),
      log_(log),
      directory_(std::move(directory)),
      reserve_(std::make_unique<DiskReserve>(directory_, bytes)) {}

DiskWatch::~DiskWatch() {
  if (timer_) env_.timers.cancel(*timer_);
}

void DiskWatch::look() {
  constexpr Duration kEvery = Duration::seconds(5);
  const DiskRoom room = reserve_->look();
  if (room != logged_) {
    logged_ = room;
    const Instant at = env_.clock.now_wall();
    const std::uint64_t free = reserve_->free_bytes();
    if (room == DiskRoom::kLow) {
      log_.error(at, "disk full, submissions are refused",
                 {{"store", directory_},
                  {"free_bytes", free},
                  {"reserve", reserve_->held() ? "held" : "given up"}});
    } else {
      log_.info(at, "disk has room again, submissions are taken", {{"free_bytes", free}});
    }
  }
  if (timer_) env_.timers.cancel(*timer_);
  timer_ = env_.timers.call_after(kEvery, [this] { look(); });
}

Status DiskWatch::admission() const {
  if (reserve_->look() == DiskRoom::kEnough) return {};
  return environment_error(
      fmt::format("the controller's disk is full: only its reserve is left in {}", directory_));
}

}  // namespace orrery

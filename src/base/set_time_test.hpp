// base/set_time_test.hpp - a clock and timers that a test moves, and entropy that it foresees.
#pragma once

#include <algorithm>
#include <map>
#include <utility>

#include "base/env.hpp"

namespace orrery {

class SetTime final : public Clock, public Timers {
 public:
  [[nodiscard]] Instant now_wall() const override { return now; }
  [[nodiscard]] Instant now_monotonic() const override { return now; }
  TimerId call_at(Instant at, Callback callback) override {
    const TimerId id{at, ++made_};
    waiting_[id] = std::move(callback);
    return id;
  }
  TimerId call_after(Duration delay, Callback callback) override {
    return call_at(now + delay, std::move(callback));
  }
  bool cancel(const TimerId& timer) override { return waiting_.erase(timer) == 1; }

  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  void run_until(Instant end) {
    while (!waiting_.empty() && waiting_.begin()->first.at <= end) {
      auto first = waiting_.extract(waiting_.begin());
      now = std::max(now, first.key().at);
      first.mapped()();
    }
    now = end;
  }

  Instant now = Instant() + Duration::hours(24) * 20'000;

 private:
  std::map<TimerId, Callback> waiting_;
  std::uint64_t made_ = 0;
};

class SetEntropy final : public Entropy {
 public:
  [[nodiscard]] std::uint64_t draw() override { return ++drawn; }
  std::uint64_t drawn = 0;
};

}  // namespace orrery

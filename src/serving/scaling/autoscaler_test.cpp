// serving/scaling/autoscaler_test.cpp - a scaler beside a service that is a queue, second by
// second.
#include "serving/scaling/autoscaler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

constexpr EngineStepCost kCost{.step_s = 0.002, .sequence_s = 0.0003, .prompt_token_s = 0.0003};
constexpr std::uint32_t kSlots = 8;
constexpr RequestShape kShape{10, 10};
constexpr Duration kColdStart = Duration::seconds(20);

struct Scaled {
  Instant at;
  std::uint32_t before = 0;
  std::uint32_t after = 0;

  friend bool operator==(const Scaled&, const Scaled&) = default;
};

/// Requests wait in a queue, of which each ready replica takes as many a second as its cost says.
class QueuedService {
 public:
  explicit QueuedService(ScaleTerms terms) : targets_{.terms = terms} {
    const Batch full{seconds_of(kCost, {.sequences = kSlots})};
    replica_s_ = 1 / (kShape.prompt * kCost.prompt_token_s + kShape.output * full.step_s / kSlots);
  }

  void second(double came) {
    now_ = now_ + Duration::seconds(1);
    const auto ready = static_cast<std::uint32_t>(
        std::ranges::count_if(ready_at_, [this](Instant at) { return at <= now_; }));
    flow_requests_ += came;
    queue_ += came;
    const double served = std::min(queue_, ready * replica_s_);
    queue_ -= served;
    served_ += served;
    const double held = std::min(queue_, static_cast<double>(ready) * kSlots);
    const auto answer =
        scaler_.look({.now = now_,
                      .flow = {static_cast<std::int64_t>(flow_requests_),
                               static_cast<std::uint64_t>(served_ * kShape.prompt),
                               static_cast<std::uint64_t>(served_ * kShape.output)},
                      .shape = kShape,
                      .waiting = static_cast<std::uint32_t>(queue_ - held),
                      .running = static_cast<std::uint32_t>(held),
                      .variants = {{.wanted = static_cast<std::uint32_t>(ready_at_.size()),
                                    .ready = ready,
                                    .slots = kSlots,
                                    .cost = ready > 0 ? kCost : EngineStepCost()}},
                      .cold_start = kColdStart,
                      .last = last_},
                     targets_);
    if (!answer || answer->total == ready_at_.size()) return;
    const auto before = static_cast<std::uint32_t>(ready_at_.size());
    const bool more = answer->total > before;
    last_ = PastScaleOrder{now_, more ? ScaleDirection::kOut : ScaleDirection::kIn};
    orders.push_back({now_, before, answer->total});
    ready_at_.resize(answer->total, now_ + kColdStart);
  }

  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] double queue() const { return queue_; }
  [[nodiscard]] std::size_t replicas() const { return ready_at_.size(); }
  /// Requests a second of one replica.
  [[nodiscard]] double replica_s() const { return replica_s_; }

  std::vector<Scaled> orders;

 private:
  struct Batch {
    double step_s = 0;
  };

  ScaleTargets targets_;
  Autoscaler scaler_;
  double replica_s_ = 0;
  Instant now_ = Instant() + Duration::hours(1);
  std::vector<Instant> ready_at_{Instant()};
  std::optional<PastScaleOrder> last_;
  double flow_requests_ = 0;
  double queue_ = 0;
  double served_ = 0;
};

TEST(Autoscaler, ThreeTimesTheLoadIsAnsweredWithinTenSecondsAndServed) {
  for (int phase = 0; phase < 5; ++phase) {
    QueuedService service({.min = 1, .max = 10});
    const double load = 0.5 * service.replica_s();
    for (int i = 0; i < 200 + phase; ++i) service.second(load);
    ASSERT_TRUE(service.orders.empty()) << phase;
    const Instant step = service.now();
    for (int i = 0; i < 10; ++i) service.second(3 * load);
    ASSERT_FALSE(service.orders.empty()) << phase;
    EXPECT_LE(service.orders.front().at - step, Duration::seconds(10));
    for (int i = 0; i < 120; ++i) service.second(3 * load);
    EXPECT_LT(service.queue(), 1) << phase;
    EXPECT_LE(service.replicas(), 5u) << phase;
    for (int i = 0; i < 1800; ++i) service.second(load);
    EXPECT_EQ(service.replicas(), 1u) << phase;
  }
}

TEST(Autoscaler, GoesToZeroAndBackWithoutLosingARequest) {
  QueuedService service({.min = 0, .max = 4, .idle = Duration::seconds(60)});
  for (int i = 0; i < 100; ++i) service.second(10);
  for (int i = 0; i < 200; ++i) service.second(0);
  EXPECT_EQ(service.replicas(), 0u);
  service.second(1);
  EXPECT_EQ(service.replicas(), 1u) << "at once";
  for (int i = 0; i < 25; ++i) service.second(0);
  EXPECT_EQ(service.queue(), 0);
}

TEST(Autoscaler, OfAnyLoadNoOrderIsReversedWithinAMinuteAndTwoRunsAreAlike) {
  std::size_t orders = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    std::vector<Scaled> first;
    for (int run = 0; run < 2; ++run) {
      Rng rng(seed);
      QueuedService service({.min = static_cast<std::uint32_t>(seed % 2), .max = 6});
      double load = 1;
      for (int i = 0; i < 1500; ++i) {
        if (rng.below(60) == 0) load = 4 * rng.uniform();
        if (rng.below(300) == 0) load = 0;
        service.second(load * service.replica_s() * (0.5 + rng.uniform()));
        ASSERT_LE(service.replicas(), 6u) << "seed " << seed;
        ASSERT_GE(service.replicas(), seed % 2) << "seed " << seed;
      }
      const std::vector<Scaled>& now = service.orders;
      for (std::size_t i = 1; i < now.size(); ++i) {
        const bool more = now[i].after > now[i].before;
        const bool more_before = now[i - 1].after > now[i - 1].before;
        if (more == more_before || now[i].before == 0) continue;
        ASSERT_GE(now[i].at - now[i - 1].at, Duration::seconds(60)) << "seed " << seed;
      }
      if (run == 0) {
        first = now;
      } else {
        ASSERT_EQ(first, now) << "seed " << seed;
      }
      orders += now.size();
    }
  }
  EXPECT_GT(orders, 40u);
}

}  // namespace
}  // namespace orrery

// serving/admission/admission_test.cpp - limits, shares and order of the requests that
// wait for a service.
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "base/numbers/rng.hpp"
#include "serving/admission/fair_queue.hpp"
#include "serving/admission/tenant_terms.hpp"
#include "serving/admission/token_bucket.hpp"

namespace orrery {
namespace {

Instant at(double seconds) { return Instant() + Duration::from_seconds(seconds); }

constexpr QueueLevel kPlain;

TEST(TokenBucket, GrantsItsRateAndWhatItSavedAndNoMore) {
  Rng rng(7);
  for (const double rate : {1.0, 50.0, 4000.0}) {
    TokenBucket bucket;
    bucket.set_rate(rate, at(0));
    double granted = 0;
    double largest = 0;
    double time = 0;
    while (time < 500) {
      time += rng.uniform() * 0.2;
      const auto tokens = 1 + static_cast<std::uint64_t>(rng.uniform() * rate * 3);
      if (!bucket.take(tokens, at(time))) continue;
      granted += static_cast<double>(tokens);
      largest = std::max(largest, static_cast<double>(tokens));
      EXPECT_LE(granted, rate * time + bucket.size() + largest + 1e-6);
    }
    EXPECT_GE(granted, 0.95 * rate * 500) << "a bucket that is asked often enough gives its rate";
  }
}

TEST(TokenBucket, TellsWhenItHasRoom) {
  TokenBucket bucket;
  EXPECT_TRUE(bucket.take(1'000'000, at(0))) << "without a limit";
  EXPECT_EQ(bucket.time_until(1'000'000, at(0)), Duration());
  bucket.set_rate(100, at(0));
  EXPECT_EQ(bucket.left(at(0)), 1000);
  EXPECT_TRUE(bucket.take(800, at(0)));
  EXPECT_FALSE(bucket.take(500, at(0)));
  const Duration wait = bucket.time_until(500, at(0));
  EXPECT_NEAR(wait.count_seconds(), 3, 1e-6);
  EXPECT_NEAR(bucket.time_until_full(at(0)).count_seconds(), 8, 1e-6);
  EXPECT_FALSE(bucket.take(500, at(2.9)));
  EXPECT_TRUE(bucket.take(500, at(0) + wait));
}

TEST(TokenBucket, ARequestOfMoreThanAFullBucketIsPaidOffAfterwards) {
  TokenBucket bucket;
  bucket.set_rate(10, at(0));
  EXPECT_TRUE(bucket.take(500, at(0)));
  EXPECT_EQ(bucket.left(at(1)), 0);
  EXPECT_FALSE(bucket.take(1, at(39)));
  EXPECT_TRUE(bucket.take(1, at(41)));
  EXPECT_NEAR(bucket.time_until(500, at(41)).count_seconds(), 9.1, 1e-6);
}

TEST(TokenBucket, CorrectionsAndNewRatesKeepWhatWasUsed) {
  TokenBucket bucket;
  bucket.set_rate(10, at(0));
  EXPECT_TRUE(bucket.take(100, at(0)));
  bucket.give_back(60, at(0));
  EXPECT_EQ(bucket.left(at(0)), 60);
  bucket.set_rate(5, at(0));
  EXPECT_EQ(bucket.left(at(0)), 30) << "another gateway took over its half";
  bucket.give_back(-40, at(0));
  EXPECT_EQ(bucket.left(at(0)), 0);
  EXPECT_FALSE(bucket.take(1, at(2)));
  bucket.give_back(1000, at(2));
  EXPECT_EQ(bucket.left(at(2)), 50) << "no more than a full one";
}

TEST(TenantTerms, AreThoseOfTheHolderOrTheNearestTenantAbove) {
  const TenantTerms terms({{"lab", 2, 0, 100}, {"lab/a", 3, 1, 0}, {"key-1", 4, 0, 0}}, 4);
  const auto name = [&](const std::string& holder, const std::string& tenant) {
    return terms.of({.sha256 = "", .name = holder, .tenant = tenant}).name;
  };
  EXPECT_EQ(name("key-1", "lab/a"), "key-1");
  EXPECT_EQ(name("k", "lab/a/b"), "lab/a");
  EXPECT_EQ(name("k", "lab/b"), "lab");
  EXPECT_EQ(name("k", "lab-b"), "lab-b");
  EXPECT_EQ(name("k", ""), "k");
  EXPECT_EQ(terms.named("lab").tokens_per_s, 25) << "each gateway has its share";
  EXPECT_EQ(terms.named("lab").weight, 2);
  EXPECT_EQ(terms.named("gone").weight, 1);
  EXPECT_EQ(terms.named("gone").tokens_per_s, 0);
}

/// A tenant that always has requests waiting, and what it was served.
struct BusyTenant {
  FairQueue::Flow flow = 0;
  double weight = 1;
  double served = 0;
  double largest = 0;
};

/// Serves the front of a queue in which tenants always wait; `more` adds a request of a tenant.
class Saturated {
 public:
  Saturated(std::uint64_t seed, std::vector<double> weights) : rng_(seed) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      tenants.push_back({queue.flow(kPlain, "t" + std::to_string(i), weights[i]), weights[i]});
    }
  }
  void add(std::size_t tenant) {
    const auto tokens = 1 + static_cast<std::uint64_t>(rng_.uniform() * 1000);
    owners_[queue.push(tenants[tenant].flow, tokens, at(0))] = {tenant, tokens};
    tenants[tenant].largest = std::max(tenants[tenant].largest, static_cast<double>(tokens));
  }
  /// Returns the tenant whose request was served.
  std::size_t serve() {
    const FairQueue::Ticket ticket = queue.front().value();
    const auto [tenant, tokens] = owners_.at(ticket);
    queue.serve(ticket);
    tenants[tenant].served += static_cast<double>(tokens);
    return tenant;
  }
  [[nodiscard]] double share(std::size_t tenant) const {
    return tenants[tenant].served / tenants[tenant].weight;
  }

  FairQueue queue;
  std::vector<BusyTenant> tenants;

 private:
  Rng rng_;
  std::map<FairQueue::Ticket, std::pair<std::size_t, std::uint64_t>> owners_;
};

TEST(FairQueue, TenantsThatWaitAreServedByTheirWeights) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Saturated run(seed, {1, 2, 5, 0.5});
    for (std::size_t i = 0; i < run.tenants.size(); ++i) {
      for (int n = 0; n < 3; ++n) run.add(i);
    }
    for (int step = 0; step < 2000; ++step) {
      run.add(run.serve());
      for (std::size_t i = 1; i < run.tenants.size(); ++i) {
        const double bound = run.tenants[i].largest / run.tenants[i].weight +
                             run.tenants[0].largest / run.tenants[0].weight;
        ASSERT_LE(std::abs(run.share(i) - run.share(0)), bound) << "seed " << seed;
      }
    }
  }
}

TEST(FairQueue, ATenantThatIdledGetsNoCreditForIt) {
  Saturated run(3, {1, 1});
  for (int step = 0; step < 500; ++step) {
    run.add(0);
    run.serve();
  }
  const double before = run.share(0);
  for (int n = 0; n < 50; ++n) {
    run.add(0);
    run.add(1);
  }
  for (int step = 0; step < 40; ++step) run.serve();
  EXPECT_LE(std::abs(run.share(1) - (run.share(0) - before)), 2000);
  EXPECT_GT(run.share(0), before);
}

TEST(FairQueue, WhatPassesWithoutWaitingCounts) {
  FairQueue queue;
  const FairQueue::Flow heavy = queue.flow(kPlain, "heavy", 1);
  const FairQueue::Flow light = queue.flow(kPlain, "light", 1);
  queue.pass(light, 10);
  queue.pass(heavy, 1000);
  const FairQueue::Ticket first = queue.push(heavy, 10, at(0));
  const FairQueue::Ticket second = queue.push(light, 10, at(0));
  EXPECT_EQ(queue.front(), second);
  queue.serve(second);
  EXPECT_EQ(queue.front(), first);
}

TEST(FairQueue, SharesFollowWhatRequestsReallyUsed) {
  // Both are charged 100 tokens; those of the first take 300 in the end.
  FairQueue queue;
  const std::array<FairQueue::Flow, 2> flows{queue.flow(kPlain, "long", 1),
                                             queue.flow(kPlain, "short", 1)};
  std::map<FairQueue::Ticket, std::size_t> owners;
  std::array<double, 2> used{};
  const auto add = [&](std::size_t i) { owners[queue.push(flows[i], 100, at(0))] = i; };
  add(0), add(0), add(1), add(1);
  for (int step = 0; step < 400; ++step) {
    const FairQueue::Ticket ticket = queue.front().value();
    const std::size_t tenant = owners.at(ticket);
    queue.serve(ticket);
    used[tenant] += tenant == 0 ? 300 : 100;
    if (tenant == 0) queue.settle(flows[0], 200);
    add(tenant);
  }
  EXPECT_LE(std::abs(used[0] - used[1]), 600);
}

TEST(FairQueue, ServesClassesThenPrioritiesThenDeadlines) {
  FairQueue queue;
  const auto flow = [&](ServiceClass service_class, std::int32_t priority, const char* tenant) {
    return queue.flow({service_class, priority}, tenant, 1);
  };
  const auto batch = queue.push(flow(ServiceClass::kBatch, 9, "a"), 1, at(1));
  const auto late = queue.push(flow(ServiceClass::kInteractive, 0, "a"), 1, at(30));
  const auto early = queue.push(flow(ServiceClass::kInteractive, 0, "a"), 1, at(20));
  const auto same = queue.push(flow(ServiceClass::kInteractive, 0, "a"), 1, at(20));
  const auto high = queue.push(flow(ServiceClass::kInteractive, 1, "b"), 1000, at(40));
  const auto again = queue.push_again();
  const auto again_later = queue.push_again();
  for (const FairQueue::Ticket next : {again, again_later, high, early, same, late, batch}) {
    ASSERT_EQ(queue.front(), next);
    queue.serve(next);
  }
  EXPECT_FALSE(queue.front());
}

TEST(FairQueue, AtEachStepSomethingIsServedUntilNothingWaits) {
  Rng rng(11);
  for (int round = 0; round < 50; ++round) {
    FairQueue queue;
    std::set<FairQueue::Ticket> waiting;
    for (int step = 0; step < 300; ++step) {
      const auto tenant = static_cast<std::uint64_t>(rng.uniform() * 5);
      const QueueLevel level{tenant == 4 ? ServiceClass::kBatch : ServiceClass::kInteractive,
                             static_cast<std::int32_t>(tenant % 2)};
      const FairQueue::Flow flow = queue.flow(level, std::to_string(tenant), 1 + rng.uniform() * 3);
      const double what = rng.uniform();
      if (what < 0.5) {
        waiting.insert(queue.push(flow, static_cast<std::uint64_t>(rng.uniform() * 99),
                                  at(rng.uniform() * 9)));
      } else if (what < 0.55) {
        waiting.insert(queue.push_again());
      } else if (what < 0.65) {
        queue.settle(flow, rng.uniform() * 200 - 100);
      } else if (what < 0.75 && !waiting.empty()) {
        queue.erase(*waiting.begin());
        waiting.erase(waiting.begin());
      } else if (!waiting.empty()) {
        const auto front = queue.front();
        ASSERT_TRUE(front && waiting.erase(*front) == 1);
        queue.serve(*front);
      }
      ASSERT_EQ(queue.size(), waiting.size());
      ASSERT_EQ(queue.front().has_value(), !waiting.empty());
    }
  }
}

TEST(FairQueue, TellsHowManyTokensAreServedBeforeARequest) {
  FairQueue queue;
  const FairQueue::Flow first = queue.flow({ServiceClass::kInteractive, 1}, "first", 1);
  const FairQueue::Flow flood = queue.flow({ServiceClass::kInteractive, 0}, "flood", 1);
  const FairQueue::Flow own = queue.flow({ServiceClass::kInteractive, 0}, "own", 2);
  const FairQueue::Flow batch = queue.flow({ServiceClass::kBatch, 0}, "own", 2);
  queue.push(first, 30, at(0));
  for (int i = 0; i < 100; ++i) queue.push(flood, 50, at(0));
  queue.push(batch, 1000, at(0));
  // All of those with a higher priority, and what the flood gets while 40 tokens of weight 2 pass.
  EXPECT_EQ(queue.tokens_ahead(own, 40), 30 + 20);
  queue.push(own, 40, at(0));
  EXPECT_EQ(queue.tokens_ahead(own, 40), 30 + 40 + 40);
  EXPECT_EQ(queue.tokens_ahead(flood, 10), 30 + 5000 + 40);
  EXPECT_EQ(queue.tokens_ahead(batch, 10), 30 + 5000 + 40 + 1000);
  EXPECT_EQ(queue.tokens_ahead(first, 10), 30);
}

TEST(FairQueue, WhereTooManyWaitTheLastOfTheLongestIsRefused) {
  FairQueue queue;
  const FairQueue::Flow flood = queue.flow(kPlain, "flood", 1);
  const FairQueue::Flow other = queue.flow(kPlain, "other", 1);
  const FairQueue::Flow batch = queue.flow({ServiceClass::kBatch, 5}, "other", 1);
  EXPECT_EQ(queue.last_but(other, 10), std::nullopt);
  queue.push(flood, 10, at(1));
  const auto newest = queue.push(flood, 10, at(2));
  EXPECT_EQ(queue.last_but(flood, 10), std::nullopt) << "its own are too many";
  EXPECT_EQ(queue.last_but(other, 10), newest);
  EXPECT_EQ(queue.last_but(other, 20), std::nullopt) << "it would be the longest then";
  EXPECT_EQ(queue.last_but(batch, 1), std::nullopt);
  const auto waits = queue.push(batch, 1, at(9));
  EXPECT_EQ(queue.last_but(flood, 10), waits) << "batch goes first";
  queue.erase(waits);
  EXPECT_EQ(queue.last_but(queue.flow(kPlain, "other", 0.1), 1), newest);
  EXPECT_EQ(queue.last_but(queue.flow(kPlain, "other", 0.01), 1), std::nullopt)
      << "for its weight it has more waiting";
}

}  // namespace
}  // namespace orrery

// serving/peers/peer_loads_test.cpp - which messages count, for how long, and the sums of all.
#include "serving/peers/peer_loads.hpp"

#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

Instant at(double seconds) { return Instant() + Duration::from_seconds(1000 + seconds); }

/// A message with as many requests at replica 1 and one at replica 2.
GatewayCharges message(const std::string& gateway, std::uint64_t sent_us, std::uint32_t requests) {
  return {.gateway = gateway,
          .process = 7,
          .sent_us = sent_us,
          .charges = {{{1, 1}, {.in_flight = requests, .tokens = 10ULL * requests}},
                      {{2, 1}, {.in_flight = 1, .tokens = 5}}}};
}

std::uint32_t requests_at(const PeerLoads& loads, std::uint64_t job) {
  for (const ReplicaCharges& each : loads.sums()) {
    if (each.replica.job == job) return each.work.in_flight;
  }
  return 0;
}

TEST(PeerLoads, AddUpTheNewestMessageOfEachGateway) {
  PeerLoads loads;
  EXPECT_EQ(loads.take(message("a", 10, 3), at(0)), PeerVerdict::kTaken);
  EXPECT_EQ(loads.take(message("b", 10, 4), at(0)), PeerVerdict::kTaken);
  EXPECT_EQ(loads.take(message("a", 30, 5), at(0.1)), PeerVerdict::kTaken);
  EXPECT_EQ(loads.take(message("a", 20, 9), at(0.2)), PeerVerdict::kOld);
  EXPECT_EQ(loads.take(message("a", 30, 9), at(0.2)), PeerVerdict::kOld) << "sent again";
  EXPECT_EQ(loads.gateways(), 2u);
  EXPECT_EQ(requests_at(loads, 1), 9u);
  EXPECT_EQ(requests_at(loads, 2), 2u);
  EXPECT_EQ(loads.sums()[0].work.tokens, 90u);
}

TEST(PeerLoads, ForgetTheChargesOfASilentGatewayAndNotItsTime) {
  PeerLoads loads;
  (void)loads.take(message("a", 10, 3), at(0));
  (void)loads.take(message("b", 10, 4), at(0.5));
  EXPECT_FALSE(loads.forget_silent(at(0.9)));
  EXPECT_TRUE(loads.forget_silent(at(1)));
  EXPECT_EQ(loads.gateways(), 1u);
  EXPECT_EQ(requests_at(loads, 1), 4u);
  EXPECT_FALSE(loads.forget_silent(at(1.1))) << "once";
  EXPECT_EQ(loads.take(message("a", 10, 3), at(1.2)), PeerVerdict::kOld)
      << "what was heard once brings no silent gateway back";
  EXPECT_EQ(loads.take(message("a", 11, 3), at(1.2)), PeerVerdict::kTaken);
  loads.keep([](const std::string& name) { return name == "a"; });
  EXPECT_EQ(loads.gateways(), 1u);
  EXPECT_EQ(requests_at(loads, 1), 3u);
}

TEST(PeerLoads, HearOneOfTwoGatewaysOfOneNameUntilItIsSilent) {
  PeerLoads loads;
  (void)loads.take(message("a", 10, 3), at(0));
  GatewayCharges other = message("a", 20, 8);
  other.process = 8;
  EXPECT_EQ(loads.take(other, at(0.5)), PeerVerdict::kSecond);
  EXPECT_EQ(requests_at(loads, 1), 3u);
  EXPECT_EQ(loads.take(other, at(1)), PeerVerdict::kTaken);
  EXPECT_EQ(requests_at(loads, 1), 8u);
  EXPECT_EQ(loads.take(message("a", 30, 3), at(1.1)), PeerVerdict::kSecond);
}

TEST(PeerLoads, EndAtTheTruthHoweverMessagesAreLostRepeatedAndReordered) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    PeerLoads loads;
    std::vector<GatewayCharges> sent;
    std::uint32_t truth = 0;
    for (std::uint64_t i = 1; i <= 100; ++i) {
      truth = static_cast<std::uint32_t>(rng.below(20));
      sent.push_back(message("a", i, truth));
      if (rng.below(3) == 0) (void)loads.take(sent[rng.below(sent.size())], at(0));
    }
    (void)loads.take(sent.back(), at(0));
    for (int i = 0; i < 20; ++i) (void)loads.take(sent[rng.below(sent.size())], at(0));
    ASSERT_EQ(requests_at(loads, 1), truth) << "seed " << seed;
  }
}

}  // namespace
}  // namespace orrery

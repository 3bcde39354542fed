// serving/peers/peer_message_test.cpp - messages are read as they were written, and no other bytes
// are.
#include "serving/peers/peer_message.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

Instant at(double seconds) { return Instant() + Duration::from_seconds(1000 + seconds); }

GatewayCharges two_replicas() {
  return {.gateway = "g1",
          .process = 0xFEDC'BA98'7654'3210,
          .sent_us = 1'700'000'000'000'000,
          .charges = {{{4, 2}, {3, 900, 400, at(0.25)}}, {{9, 1}, {1, 7, 0, Instant()}}}};
}

TEST(PeerMessage, IsReadAsItWasWrittenByAClockOfItsOwn) {
  const GatewayCharges written = two_replicas();
  const auto read = read_peer_message(write_peer_message(written, at(0)), at(500));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->gateway, "g1");
  EXPECT_EQ(read->process, written.process);
  EXPECT_EQ(read->sent_us, written.sent_us);
  ASSERT_EQ(read->charges.size(), 2u);
  EXPECT_EQ(read->charges[0].replica, (ReplicaKey{4, 2}));
  EXPECT_EQ(read->charges[0].work.in_flight, 3u);
  EXPECT_EQ(read->charges[0].work.tokens, 900u);
  EXPECT_EQ(read->charges[0].work.prompt_tokens, 400u);
  EXPECT_EQ(read->charges[0].work.prompts_until, at(500.25));
  EXPECT_EQ(read->charges[1].work.prompts_until, Instant()) << "no prompt is left";
}

TEST(PeerMessage, IsNotReadWhereAByteIsMissingOrMore) {
  const std::string bytes = write_peer_message(two_replicas(), at(0));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_FALSE(read_peer_message(bytes.substr(0, size), at(0))) << size;
  }
  EXPECT_FALSE(read_peer_message(bytes + "x", at(0)));
}

TEST(PeerMessage, IsNotReadWithWorkThatNoReplicaHas) {
  const auto readable = [](const ReplicaWork& work) {
    GatewayCharges message = two_replicas();
    std::string bytes = write_peer_message(message, at(0));
    message.charges[1].work = work;
    // The last replica's words stand at the end: requests, tokens, tokens of prompts, microseconds.
    std::string end = write_peer_message(message, at(0)).substr(bytes.size() - 28);
    bytes.replace(bytes.size() - 28, 28, end);
    return read_peer_message(bytes, at(0)).has_value();
  };
  EXPECT_TRUE(readable({1'000'000, 1'000'000'000'000, 1'000'000'000'000, at(3600)}));
  EXPECT_TRUE(readable({2'000'000, 5'000'000'000'000, 0, at(7200)})) << "it is written as the most";
  GatewayCharges twice = two_replicas();
  twice.charges[1].replica = twice.charges[0].replica;
  EXPECT_FALSE(read_peer_message(write_peer_message(twice, at(0)), at(0)));
  std::string bytes = write_peer_message(two_replicas(), at(0));
  bytes[bytes.size() - 1] = '\x7f';
  EXPECT_FALSE(read_peer_message(bytes, at(0))) << "prompts for longer than an hour";
}

TEST(PeerMessage, FitsADatagramAndTellsOfTheBusiestReplicas) {
  GatewayCharges message = two_replicas();
  message.gateway = std::string(kPeerNameMax, 'g');
  message.charges.clear();
  for (std::uint32_t job = 0; job < 3 * kPeerReplicasMax; ++job) {
    message.charges.push_back({{job, 1}, {.in_flight = job % 3 == 0 ? 2U : 1U}});
  }
  const std::string bytes = write_peer_message(message, at(0));
  EXPECT_LT(bytes.size() + 32, 65'507u) << "the largest datagram, with a tag";
  const auto read = read_peer_message(bytes, at(0));
  ASSERT_TRUE(read);
  ASSERT_EQ(read->charges.size(), kPeerReplicasMax);
  for (const ReplicaCharges& each : read->charges) ASSERT_EQ(each.work.in_flight, 2u);
}

}  // namespace
}  // namespace orrery

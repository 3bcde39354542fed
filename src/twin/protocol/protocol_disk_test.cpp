#include "twin/protocol/protocol_disk.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

/// A disk whose writes take no time.
class ProtocolDiskTest : public testing::Test {
 protected:
  struct Disk {
    explicit Disk(std::uint64_t seed) : context({}, seed, {}) { EXPECT_TRUE(disk.begin()); }

    void append(std::uint32_t events) {
      const std::vector<Event> all(events, SpareSet{NodeId(0), true});
      disk.append(context.now(), all);
    }

    ProtocolContext context;
    std::vector<std::size_t> durable;  ///< number of events of each input
    int writes = 0;                    ///< complete ones
    ProtocolDisk disk{context,
                      {[this](std::span<const Event> events) { durable.push_back(events.size()); },
                       [this] { ++writes; }}};
  };
};

TEST_F(ProtocolDiskTest, WhatComesDuringAWriteWaitsForTheNext) {
  Disk at(1);
  EXPECT_TRUE(at.disk.idle());
  at.append(1);
  at.append(2);
  at.append(3);
  EXPECT_EQ(at.disk.durable(), 0U);
  at.context.time().run_next();
  EXPECT_EQ(at.durable, (std::vector<std::size_t>{1}));
  EXPECT_EQ(at.disk.durable(), 1U);
  EXPECT_EQ(at.writes, 1);
  at.disk.write();
  at.context.time().run_next();
  EXPECT_EQ(at.durable, (std::vector<std::size_t>{1, 2, 3}));
  EXPECT_EQ(at.disk.appended(), 3U);
  EXPECT_EQ(at.writes, 2);
  EXPECT_TRUE(at.disk.idle());
  at.disk.write();
  EXPECT_EQ(at.context.time().next(), Instant::max()) << "nothing waits";
}

TEST_F(ProtocolDiskTest, AfterACrashTheWriteUnderWayIsCompleteOrAbsent) {
  int complete = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Disk at(seed);
    at.append(1);
    at.context.time().run_next();
    at.append(2);
    const bool all = at.disk.crash();
    complete += all ? 1 : 0;
    EXPECT_EQ(at.durable.size(), all ? 2U : 1U);
    at.context.time().run_next();
    EXPECT_EQ(at.writes, 1) << "the write of a dead controller has no effect";
    const Result<std::vector<TimedEvent>> events = at.disk.begin();
    ASSERT_TRUE(events) << events.error().text();
    EXPECT_EQ(events->size(), all ? 3U : 1U);
    EXPECT_EQ(at.disk.appended(), 0U) << "the next controller counts its own";
    EXPECT_TRUE(at.disk.idle());
  }
  EXPECT_GT(complete, 0);
  EXPECT_LT(complete, 40);
}

TEST_F(ProtocolDiskTest, InputsThatNoWriteHasBegunAreLost) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    Disk at(seed);
    at.append(1);
    at.append(2);
    EXPECT_FALSE(at.disk.crash());
    EXPECT_LE(at.durable.size(), 1U);
    EXPECT_EQ(at.disk.begin()->size(), at.durable.size());
  }
}

}  // namespace
}  // namespace orrery

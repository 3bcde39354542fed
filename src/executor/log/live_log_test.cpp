#include "executor/log/live_log.hpp"

#include "executor/log/live_log_test.hpp"

namespace orrery {
namespace {

class LiveLogTest : public LiveLogFixture {
 protected:
  void SetUp() override {
    make_host();
    make_log();
  }

  /// Appends the event of an input, and commits it unless it is held.
  std::uint64_t write() {
    const std::vector<Event> events = {SpareSet{NodeId(0), true}};
    const std::uint64_t input = log_->append(host_->now(), events);
    log_->commit();
    return input;
  }
  void await(std::uint64_t input) {
    real_->run_until([&] { return !durable_.empty() && durable_.back() >= input; });
  }
};

TEST_F(LiveLogTest, WhatIsHeldBecomesDurableTogether) {
  log_->hold();
  write();
  write();
  const std::uint64_t last = write();
  EXPECT_EQ(log_->waiting_bytes(), 0U) << "nothing was submitted yet";
  log_->release();
  await(last);
  EXPECT_EQ(durable_, std::vector<std::uint64_t>{3});
  EXPECT_EQ(store_.extent()->newest, 1U);
}

TEST_F(LiveLogTest, ASnapshotIsPutOnceEnoughWasAppended) {
  await(write());
  log_->snapshot_if_due();
  await(write());
  EXPECT_TRUE(store_.snapshots()->empty());
  settings_.snapshot_every = Bytes{1};
  log_->snapshot_if_due();
  await(write());
  EXPECT_EQ(store_.snapshots()->size(), 1U);
}

}  // namespace
}  // namespace orrery

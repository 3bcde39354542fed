#include "executor/log/live_log.hpp"

#include <gtest/gtest.h>

#include "base/system/real_env.hpp"
#include "control/scripted_cluster_test.hpp"
#include "executor/lab_test.hpp"
#include "store/memory_store.hpp"

namespace orrery {
namespace {

class LiveLogTest : public ::testing::Test {
 protected:
  LiveLogTest() {
    LiveLog::Options options{.store = store_,
                             .term = store_.claim().value(),
                             .state = cluster_.state(),
                             .settings = settings_,
                             .commit_times = times_,
                             .history = history_,
                             .writer = std::make_unique<HistoryWriter>(HistoryWriterOptions{})};
    options.durable = [this](std::uint64_t input) { durable_.push_back(input); };
    options.failed = [](const Error& error) { FAIL() << error.text(); };
    log_.emplace(real_->env(), Log(sink_), std::move(options));
  }

  /// Appends the event of an input, and commits it unless it is held.
  std::uint64_t append() {
    const std::vector<Event> events = {SpareSet{NodeId(0), true}};
    const std::uint64_t input = log_->append(cluster_.now(), events);
    log_->commit();
    return input;
  }
  void await(std::uint64_t input) {
    real_->run_until([&] { return !durable_.empty() && durable_.back() >= input; });
  }

  ScriptedCluster cluster_;
  SilentLog sink_;
  ControllerSettings settings_;
  TimeHistogram times_{{1}};
  RecoveredHistory history_;
  std::unique_ptr<RealEnv> real_ = RealEnv::create().value();
  MemoryDisk disk_;
  MemoryStore store_{disk_};
  std::vector<std::uint64_t> durable_;
  std::optional<LiveLog> log_;
};

TEST_F(LiveLogTest, WhatIsHeldBecomesDurableTogether) {
  log_->hold();
  append();
  append();
  const std::uint64_t last = append();
  EXPECT_EQ(log_->waiting_bytes(), 0U) << "nothing was submitted yet";
  log_->release();
  await(last);
  EXPECT_EQ(durable_, std::vector<std::uint64_t>{3});
  EXPECT_EQ(store_.extent()->newest, 1U);
}

TEST_F(LiveLogTest, ASnapshotIsPutOnceEnoughWasAppended) {
  await(append());
  log_->snapshot_if_due();
  await(append());
  EXPECT_TRUE(store_.snapshots()->empty());
  settings_.snapshot_every = Bytes{1};
  log_->snapshot_if_due();
  await(append());
  EXPECT_EQ(store_.snapshots()->size(), 1U);
}

}  // namespace
}  // namespace orrery

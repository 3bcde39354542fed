#include "control/state/invariants.hpp"

#include <gtest/gtest.h>

#include "control/scripted_cluster_test.hpp"

namespace orrery {
namespace {

/// A state without a core before it, for events that no core would decide.
class Unguarded {
 public:
  Unguarded() : state_(cluster_.setup()) {
    apply(JobSubmitted{JobId(0), cluster_.job(4), ""});
    apply(JobReleased{JobId(0)});
  }

  void apply(const Event& event) {
    now_ = now_ + Duration::seconds(1);
    state_.apply(now_, event);
  }
  void start(std::uint64_t devices) {
    PlacedGang gang;
    gang.allocation.ranks = {{NodeId(0), devices}};
    apply(JobStarted{.job = JobId(0), .attempt = 1, .gangs = {gang}, .terms = {{}}});
  }
  [[nodiscard]] std::string broken() const {
    return broken_invariant(state_).value_or("nothing is broken");
  }
  [[nodiscard]] const State& state() const { return state_; }

 private:
  ScriptedCluster cluster_;
  State state_;
  Instant now_;
};

TEST(Invariants, HoldOfAJobThatRuns) {
  Unguarded state;
  state.start(0x0f);
  EXPECT_EQ(state.broken(), "nothing is broken");
  EXPECT_EQ(broken_metering(state.state()), std::nullopt);
}

TEST(Invariants, NoticeAGangThatIsNotWhole) {
  Unguarded state;
  state.start(0x07);
  EXPECT_EQ(state.broken(), "a gang of job 0 has 3 devices of 4");
}

TEST(Invariants, NoticeASlotOfAJobThatDoesNotWait) {
  Unguarded state;
  state.start(0x0f);
  state.apply(SlotsReserved{{{.job = JobId(0)}}});
  EXPECT_EQ(state.broken(), "a slot is kept for job 0, which does not wait");
}

TEST(Invariants, NoticeMoreThanTheWholeDone) {
  Unguarded state;
  state.start(0x0f);
  state.apply(JobStopping{.job = JobId(0), .reason = StopReason::kPreempted});
  state.apply(DevicesFreed{JobId(0), 1, {}});
  state.apply(JobRequeued{JobId(0), {.done = 1.5}, {}});
  EXPECT_EQ(state.broken(), "job 0, held: 1.5 of it is done");
}

TEST(Invariants, NoticeWhatJobsWereNotMeteredFor) {
  Unguarded state;
  state.start(0x0f);
  state.apply(JobRunning{JobId(0)});
  state.apply(IdleCauseSet{FleetTypeId(0), static_cast<std::uint8_t>(DeviceUse::kSaving)});
  state.apply(PassDone{});
  EXPECT_NE(broken_metering(state.state()), std::nullopt);
}

}  // namespace
}  // namespace orrery

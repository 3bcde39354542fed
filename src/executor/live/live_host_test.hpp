// executor/live/live_host_test.hpp - a host of the lab's cluster whose time, log and network are
// the test.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/set_time_test.hpp"
#include "executor/lab_test.hpp"
#include "executor/live/live_host.hpp"
#include "executor/live/live_setup.hpp"

namespace orrery {

/// Control's time is an hour ahead of the clock. Nothing is durable until the test says so.
class LiveHostFixture : public ::testing::Test, public HostOutlet {
 protected:
  void make_host(ControlHost::LostJobs lost_jobs = ControlHost::LostJobs::kAsk) {
    auto core = std::make_unique<Core>(setup_->control());
    core->resume();
    const ControlClock clock(time_, time_.now + Duration::hours(1));
    host_ = std::make_unique<LiveHost>(
        time_,
        LiveHost::Options{.clock = clock,
                          .directory = "DIR",
                          .wake = [this] { ++woken_; },
                          .changed = [this] { ++changes_; }},
        std::make_unique<AgentHost>(std::move(core), AgentHost::Setup{{}, lost_jobs}, *this,
                                    clock.now()));
  }
  /// Submits a job of eight accelerators, and makes the answer durable.
  JobId submit() {
    const std::string text =
        "apiVersion: orrery/v1\nkind: Batch\nname: x\nroles: [{accelerators: 8}]\n"
        "launch: {command: [sh]}\n";
    auto jobs = setup_->intake().read({text, "job.yaml"}, host_->state(), host_->now());
    EXPECT_TRUE(jobs) << jobs.error().text();
    JobId job;
    host_->handle(std::move(jobs->front()), "", [&](const Answer& answer) { job = answer.job; });
    host_->control().durable(appended_);
    return job;
  }
  /// The agent of the node reports ranks of these attempts.
  static Report report_of(NodeId node, const std::vector<AttemptId>& attempts) {
    Hello hello;
    for (const AttemptId& id : attempts) {
      hello.attempts.push_back({1, {.token = {id, 0}, .stage = RankStage::kRunning}});
    }
    return {{node, 7, 1}, 0, std::move(hello)};
  }

  void note(const Input& /*input*/) override {}
  std::uint64_t append(Instant /*at*/, std::span<const Event> /*events*/) override {
    return ++appended_;
  }
  void send(const Order& /*order*/) override {}
  void run_full_pass(Core& /*core*/, Instant /*now*/) override {}
  void search_plan(const PlanKey& /*key*/) override {}

  SetTime time_;
  std::unique_ptr<LiveSetup> setup_ =
      LiveSetup::make(lab_facts(), store_texts(lab_setup()), {}).value();
  std::unique_ptr<LiveHost> host_;
  std::uint64_t appended_ = 0;  ///< inputs that had events
  int woken_ = 0;
  int changes_ = 0;
};

}  // namespace orrery

// executor/controller_test.hpp - the controller on a real loop, store and disk; the test plays the
// agents' sessions.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/system/real_env.hpp"
#include "executor/controller.hpp"
#include "executor/lab_test.hpp"

namespace orrery {

/// Collects what the controller sends to one agent.
class Session final : public AgentSession {
 public:
  void send(const ControllerMessage& message) override { messages.push_back(message); }
  void close(const Error& why) override { closed = why.text(); }

  template <class What>
  [[nodiscard]] std::vector<NodeOrder> orders() const {
    std::vector<NodeOrder> found;
    for (const ControllerMessage& message : messages) {
      const auto* order = std::get_if<NodeOrder>(&message);
      if (order != nullptr && std::holds_alternative<What>(order->order.what)) {
        found.push_back(*order);
      }
    }
    return found;
  }

  std::vector<ControllerMessage> messages;
  std::string closed;
};

/// A controller that a test starts and stops, and the loop that it runs on.
class ControllerFixture : public ::testing::Test {
 protected:
  void stop() {
    controller_.reset();
    real_.reset();
  }

  void await(const std::function<bool()>& condition) {
    bool late = false;
    const TimerId timer =
        real_->env().timers.call_after(Duration::seconds(60), [&] { late = true; });
    real_->run_until([&] { return late || condition(); });
    real_->env().timers.cancel(timer);
    ASSERT_FALSE(late);
  }

  SilentLog sink_;
  std::unique_ptr<RealEnv> real_;
  std::unique_ptr<Controller> controller_;
};

class ControllerTest : public ControllerFixture {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_ctl_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    start();
  }
  void TearDown() override {
    stop();
    std::filesystem::remove_all(directory_);
  }

  void start() {
    real_ = RealEnv::create().value();
    Result<std::unique_ptr<Controller>> made = Controller::open(
        real_->env(), Log(sink_),
        {.directory = directory_,
         .setup = lab_setup(tenants_),
         .facts = lab_facts(),
         .archived_form = [](const EndedJob& job) { return job.state.job(job.job).name; },
         .record = record_,
         .failed = [](const Error& error) { FAIL() << error.text(); }});
    ASSERT_TRUE(made) << made.error().text();
    controller_ = *std::move(made);
  }
  void set_tenants(const std::string& yaml) {
    std::optional<Result<JobId>> set;
    controller_->command(SetTenants{yaml}, "", [&](Result<JobId> done) { set = std::move(done); });
    await([&] { return set.has_value(); });
    ASSERT_TRUE(*set) << set->error().text();
  }

  /// Returns the spec of a job that runs a shell; `more` are further lines of it.
  static std::string job(const std::string& name, const std::string& more = "") {
    return "apiVersion: orrery/v1\nkind: Batch\nname: " + name +
           "\nroles: [{accelerators: 8}]\nlaunch: {command: [sh, -c, \"exit 0\"]}\n" + more;
  }
  Result<std::vector<JobId>> submit(const std::string& text, const std::string& request = "") {
    std::optional<Result<std::vector<JobId>>> answer;
    controller_->submissions().submit(
        {text, "job.yaml"}, request,
        [&](Result<std::vector<JobId>> jobs) { answer = std::move(jobs); });
    await([&] { return answer.has_value(); });
    return *answer;
  }

  static AgentOpening opening(const std::string& node, const std::string& accelerator = "h100") {
    return {.node = node,
            .address = "10.0.0." + node.substr(4),
            .boot = 7,
            .incarnation = 1,
            .version = "test",
            .inventory = {.accelerator = accelerator, .accelerators = 8}};
  }
  /// Makes the agent of `session` report that nothing runs on its node.
  void join(const std::string& node, Session& session, const std::string& accelerator = "h100") {
    controller_->sessions().open(opening(node, accelerator), session);
    const auto* welcome = std::get_if<AgentWelcome>(&session.messages.at(0));
    ASSERT_NE(welcome, nullptr);
    const NodeId id = welcome->node;
    const AgentIdentity self{id, 7, 1};
    controller_->receive(id, Report{self, 0, Heartbeat{1, Instant::from_ns(5), {}}});
    await([&] { return !session.orders<Reconcile>().empty(); });
    const OrderStamp question = session.orders<Reconcile>().back().order.stamp;
    controller_->receive(id, Report{self, 0, Hello{question, Instant::from_ns(6), {}}});
  }

  std::string directory_;
  std::string record_;
  std::string tenants_;  ///< tenants.yaml of the next start
};

}  // namespace orrery

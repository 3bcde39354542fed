// The users that jobs run as, and which messages of an agent are believed.
#include "executor/controller_test.hpp"

namespace orrery {
namespace {

constexpr const char* kTenantsWithUsers =
    "apiVersion: orrery/v1\nkind: Tenants\nname: t\n"
    "tenants: [{name: default}, {name: lab, run_as: svc-lab}]\n";

TEST_F(ControllerTest, AJobRunsAsItsSubmittersUserOrElseAsItsTenants) {
  set_tenants(kTenantsWithUsers);
  std::size_t told = 0;
  const auto submit_by = [&](const std::string& user, const std::string& tenant) {
    controller_->submissions().submit(
        {.text = job("x"), .file = "job", .tenant = tenant, .submitter = "ada", .run_as = user}, "",
        [&](const Result<std::vector<JobId>>& jobs) { told += jobs ? 1 : 0; });
  };
  submit_by("", "");
  submit_by("", "lab");
  submit_by("ada-l", "lab");
  await([&] { return told == 3; });
  const auto expect_users = [&] {
    EXPECT_EQ(controller_->state().job(JobId(0)).run_as, "");
    EXPECT_EQ(controller_->state().job(JobId(1)).run_as, "svc-lab");
    EXPECT_EQ(controller_->state().job(JobId(2)).run_as, "ada-l");
    EXPECT_EQ(controller_->state().job(JobId(2)).submitter, "ada");
  };
  expect_users();
  stop();
  start();
  expect_users();
  Session sessions[2];
  join("node0", sessions[0]);
  join("node1", sessions[1]);
  await([&] {
    return sessions[0].orders<LaunchRanks>().size() + sessions[1].orders<LaunchRanks>().size() >= 2;
  });
  std::vector<std::string> users;
  for (const Session& session : sessions) {
    for (const NodeOrder& order : session.orders<LaunchRanks>()) {
      users.push_back(order.program.user);
    }
  }
  EXPECT_NE(std::ranges::find(users, "svc-lab"), users.end());
}

TEST_F(ControllerTest, TheUserOfATenantIsForItsMembersAndForAdmins) {
  set_tenants(
      "apiVersion: orrery/v1\nkind: Tenants\nname: t\n"
      "tenants: [{name: default}, {name: lab}, {name: lab/vision, run_as: svc-lab}]\n");
  /// Returns the user that eve's job in lab/vision runs as, or the error.
  const auto runs_as = [&](JobText by) {
    by.text = job("x", "tenant: lab/vision\n");
    by.submitter = "eve";
    std::string told;
    controller_->submissions().submit(by, "", [&](const Result<std::vector<JobId>>& jobs) {
      told = jobs ? controller_->state().job(jobs->front()).run_as : jobs.error().text();
    });
    await([&] { return !told.empty(); });
    return told;
  };
  const std::string refused = runs_as({});
  EXPECT_NE(refused.find("orrery user add NAME --tenant lab/vision"), std::string::npos) << refused;
  EXPECT_NE(refused.find("--run-as USER"), std::string::npos) << refused;
  EXPECT_NE(refused.find("\"eve\" has no tenant"), std::string::npos) << refused;
  EXPECT_EQ(controller_->state().jobs(), 0U);
  EXPECT_EQ(runs_as({.run_as = "eve-own"}), "eve-own");
  EXPECT_EQ(runs_as({.tenant = "lab"}), "svc-lab") << "it may submit to the tenants below its own";
  EXPECT_EQ(runs_as({.tenant = "lab/vision"}), "svc-lab");
  EXPECT_EQ(runs_as({.tenant_users = JobText::TenantUsers::kAll}), "svc-lab");
}

TEST_F(ControllerTest, AnAgentSpeaksForTheRanksOfItsOwnNodeAlone) {
  Session honest;
  Session liar;
  join("node0", honest);
  ASSERT_TRUE(submit(job("one")));
  await([&] { return !honest.orders<LaunchRanks>().empty(); });
  join("node1", liar);
  const NodeId own(0);
  const NodeId other(1);
  const AttemptId id{JobId(0), 1};
  const auto notes_at = [&](const AttemptId& attempt, std::uint64_t step) {
    AttemptNotes notes{.attempt = attempt};
    notes.progress.step = step;
    return notes;
  };
  // Log ends and notes for a rank on another node, and for an attempt and a job that never existed.
  for (const AttemptId& told : {id, AttemptId{JobId(0), 2}, AttemptId{JobId(7), 1}}) {
    controller_->receive(other, KeptLog{told, 0, 0, {0, "forged"}});
    controller_->receive(other, notes_at(told, 99));
  }
  EXPECT_EQ(controller_->agents().notes_of(id.job), nullptr);
  EXPECT_EQ(controller_->agents().notes_of(JobId(7)), nullptr);
  controller_->receive(own, notes_at(id, 3));
  ASSERT_NE(controller_->agents().notes_of(id.job), nullptr);
  EXPECT_EQ(controller_->agents().notes_of(id.job)->progress.step, 3U);
  // The answer to a question for another node.
  std::string log;
  controller_->sessions().logs().ask(
      {id, {0, 0, 0}}, [&](const RankLogs::Answer& said) { log = said.part.part.bytes; });
  const auto answer = [](const std::string& bytes) {
    return AttemptLogPart{.id = 1, .found = true, .size = bytes.size(), .part = {0, bytes}};
  };
  controller_->receive(other, answer("forged"));
  EXPECT_EQ(log, "");
  controller_->receive(own, answer("said"));
  EXPECT_EQ(log, "said");
  EXPECT_EQ(controller_->counts().foreign_reports, (std::map<NodeId, std::uint64_t>{{other, 7U}}));
  controller_->sessions().close(honest);
  RankLogs::Answer kept;
  controller_->sessions().logs().ask({id, {0, 0, 0}},
                                     [&](const RankLogs::Answer& said) { kept = said; });
  EXPECT_FALSE(kept.part.found) << kept.part.part.bytes;
  controller_->sessions().close(liar);
}

TEST_F(ControllerTest, AJobThatNoNodeMayRunIsRefusedWhenItIsSubmitted) {
  AgentOpening root = opening("node0");
  root.user = "root";
  root.job_users = JobUsers::kMapped;
  Session session;
  controller_->sessions().open(root, session);
  const auto answer = submit(job("x"));
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().text().find("run_as of its tenant"), std::string::npos)
      << answer.error().text();
  EXPECT_EQ(controller_->state().jobs(), 0U);
  AgentOpening own = opening("node1");
  own.user = "orrery";
  own.job_users = JobUsers::kOwn;
  Session other;
  controller_->sessions().open(own, other);
  EXPECT_TRUE(submit(job("x"))) << "one node may";
}

}  // namespace
}  // namespace orrery

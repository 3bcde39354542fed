#include "verbs/services/service_update.hpp"

#include "base/format/document.hpp"
#include "verbs/cluster/live_cluster_test.hpp"

namespace orrery {
namespace {

const std::string kPresent =
    "apiVersion: orrery/v1\nkind: Serve\nname: chat\nroles: [{replicas: 2, accelerators: 1}]\n"
    "revisions: [{id: r9, model: gpt, artifact: /models/gpt, engine: {name: orrery, arguments: "
    "[--slots, '4']}}]\n";

JobSpec updated(const ServiceUpdateOptions& options, const std::string& present = kPresent) {
  const Result<std::string> text = updated_service_spec({present, 3}, options);
  EXPECT_TRUE(text) << text.error().text();
  Result<JobSpec> spec = read_job_spec(*Document::parse(text.value_or(""), "f"));
  EXPECT_TRUE(spec) << spec.error().text();
  return spec.value_or(JobSpec());
}

std::string refusal(const ServiceUpdateOptions& options, const std::string& present = kPresent) {
  const Result<std::string> text = updated_service_spec({present, 3}, options);
  EXPECT_FALSE(text) << *text;
  return text ? "" : text.error().text();
}

TEST(UpdatedServiceSpecTest, WhatIsNotGivenStays) {
  const JobSpec more = updated({.replicas = 5});
  EXPECT_EQ(more.roles.at(0).replicas, 5u);
  EXPECT_EQ(more.service.revisions.at(0).id, "r9") << "its replicas are no revision";
  const JobSpec other = updated({.arguments = {{"--slots", "8"}}, .rollout = {0, 1}});
  EXPECT_EQ(other.roles.at(0).replicas, 3u) << "as many as there are, whatever the spec said";
  const RevisionSpec& revision = other.service.revisions.at(0);
  EXPECT_EQ(revision.id, "r10");
  EXPECT_EQ(revision.artifact, "/models/gpt");
  EXPECT_EQ(revision.engine.arguments, (std::vector<std::string>{"--slots", "8"}));
  EXPECT_EQ(other.service.rollout.surge, 0u);
  EXPECT_EQ(other.service.rollout.unavailable, 1u);
}

TEST(UpdatedServiceSpecTest, OtherTermsAreNoRevision) {
  const JobSpec spec = updated({.slo = {"ttft_p99=1s"}, .scale = "4..8"});
  EXPECT_EQ(spec.service.revisions.at(0).id, "r9");
  EXPECT_EQ(spec.service.slo.ttft.p99, Seconds(1));
  EXPECT_EQ(spec.service.scaling->max, 8u);
  EXPECT_EQ(spec.roles.at(0).replicas, 4u) << "three are fewer than it may have";
  EXPECT_EQ(
      updated({.arguments = {{"--slots", "8"}}, .slo = {"ttft_p99=1s"}}).service.revisions.at(0).id,
      "r10");
}

TEST(UpdatedServiceSpecTest, TheNewRevisionHasAnIdOfItsOwn) {
  const auto id_after = [](const std::string& id) {
    std::string present = kPresent;
    present.replace(present.find("r9"), 2, id);
    return updated({.arguments = std::vector<std::string>()}, present).service.revisions.at(0).id;
  };
  EXPECT_EQ(id_after("v1-9"), "v1-10");
  EXPECT_EQ(id_after("blue"), "blue-2");
  EXPECT_EQ(updated({.revision = "green", .arguments = std::vector<std::string>()})
                .service.revisions.at(0)
                .id,
            "green");
}

TEST(UpdatedServiceSpecTest, WhatCannotBeUpdatedIsSaid) {
  EXPECT_EQ(refusal({}),
            "nothing to update: expected a MODEL, --replicas, --scale, --slo, or arguments of the "
            "inference engine behind --");
  EXPECT_NE(refusal({.artifact = "/no/such/model"}).find("/no/such/model"), std::string::npos);
  std::string launch = kPresent;
  launch = launch.substr(0, launch.find("revisions:")) + "launch: {command: [serve]}\n";
  EXPECT_EQ(refusal({.arguments = std::vector<std::string>()}, launch),
            "service chat has no revisions, its launch says what it runs: `orrery submit FILE "
            "--update` changes it");
  EXPECT_EQ(updated({.replicas = 3}, launch).roles.at(0).replicas, 3u);
  std::string roles = kPresent;
  roles.replace(roles.find("[{replicas"), 1, "[{name: a, accelerators: 1}, ");
  EXPECT_EQ(refusal({.replicas = 3}, roles),
            "service chat has several roles: it cannot be updated");
}

using ServiceUpdateTest = LiveClusterTest;

v1::Job chat(const std::string& state) {
  v1::Job job = job_named(7, "chat[0]", "running");
  job.set_kind("Serve");
  v1::ServiceView& service = *job.mutable_service();
  service.set_id(7);
  service.set_name("chat");
  service.set_model("gpt");
  service.set_revision("r2");
  service.add_endpoints("http://127.0.0.1:1");
  v1::ServiceReplica& replica = *service.add_replicas();
  replica.set_job(7);
  replica.set_state(state);
  replica.set_attempt(1);
  return job;
}

TEST_F(ServiceUpdateTest, TheSpecIsSentAndTheEndOfTheUpdateAwaited) {
  v1::UpdateServiceResponse updated;
  updated.set_id(7);
  answers<v1::UpdateServiceRequest>("UpdateService", updated);
  ASSERT_EQ(*update_service(session(), 8, {"spec", "chat.yaml", ""}), 7u);
  const auto asked = heard<v1::UpdateServiceRequest>("UpdateService");
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].id(), 8u);
  EXPECT_EQ(asked[0].spec(), "spec");
  EXPECT_EQ(asked[0].file(), "chat.yaml");
  EXPECT_NE(asked[0].request_id(), "");

  std::vector<v1::Job> seen{chat("loading"), chat("ready")};
  seen[0].mutable_service()->mutable_update()->set_revision("r2");
  std::size_t looked = 0;
  on<v1::GetJobRequest>("GetJob",
                        [&](const v1::GetJobRequest&) { return answer_with(seen.at(looked++)); });
  const auto service =
      await_update(session(), {"7", "r2"}, {.pause = [] {}, .said = progress().message});
  ASSERT_TRUE(service) << service.error().text();
  EXPECT_EQ(messages_, "orrery: replica 7 loading\norrery: replica 7 ready\n");
  EXPECT_EQ(updated_answer(*service).text,
            "service chat (job 7) runs revision r2: 1 of 1 replica ready\n");
}

TEST_F(ServiceUpdateTest, AnUpdateThatAnotherOneReplacedIsAnError) {
  on<v1::GetJobRequest>("GetJob",
                        [&](const v1::GetJobRequest&) { return answer_with(chat("ready")); });
  const auto service =
      await_update(session(), {"7", "r1"}, {.pause = [] {}, .said = progress().message});
  ASSERT_FALSE(service);
  EXPECT_EQ(service.error().text(),
            "the update of service chat to revision r1 was replaced by another one: it runs "
            "revision r2");
}

TEST_F(ServiceUpdateTest, WhatRunsIsThatOfTheServiceAndNotOfAJobThatWasReplaced) {
  v1::Job replaced = chat("ready");
  replaced.set_spec("old");
  v1::ServiceView& service = *replaced.mutable_service();
  service.mutable_replicas(0)->set_job(9);
  service.mutable_replicas(0)->set_revision("r2");
  *service.add_replicas() = service.replicas(0);
  service.mutable_replicas(1)->set_state("draining");
  service.set_spec("new");
  on<v1::GetJobRequest>("GetJob", [&](const v1::GetJobRequest&) { return answer_with(replaced); });
  const Result<PresentService> runs = present_service(session(), 7);
  ASSERT_TRUE(runs) << runs.error().text();
  EXPECT_EQ(runs->spec, "new");
  EXPECT_EQ(runs->replicas, 1u) << "the other one leaves";
}

TEST_F(ServiceUpdateTest, AServiceThatGoesBackIsAnError) {
  std::vector<v1::Job> seen{chat("ready"), chat("ready")};
  seen[0].mutable_service()->mutable_update()->set_revision("r1");
  seen[0].mutable_service()->mutable_update()->set_back("job 8 failed");
  seen[1].mutable_service()->set_revision("r1");
  seen[1].mutable_service()->set_outcome("job 8 failed");
  std::size_t looked = 0;
  on<v1::GetJobRequest>("GetJob",
                        [&](const v1::GetJobRequest&) { return answer_with(seen.at(looked++)); });
  const auto service =
      await_update(session(), {"7", "r2"}, {.pause = [] {}, .said = progress().message});
  ASSERT_FALSE(service);
  EXPECT_EQ(service.error().text(),
            "the update of service chat did not succeed: job 8 failed; it runs revision r1");
  EXPECT_NE(messages_.find("orrery: going back to revision r1: job 8 failed\n"), std::string::npos);
  EXPECT_EQ(updated_answer(seen[0].service()).text,
            "service chat (job 7) is updated to revision r1: 0 of 0 replicas ready; `orrery job "
            "chat` shows how far it is\n");
}

}  // namespace
}  // namespace orrery

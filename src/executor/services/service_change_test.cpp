// executor/services/service_change_test.cpp - specs of running services, as users submit them.
#include "executor/services/service_change.hpp"

#include "executor/controller_test.hpp"

namespace orrery {
namespace {

constexpr const char* kHead = "apiVersion: orrery/v1\nkind: Serve\n";
constexpr const char* kFirst = "revisions: [{model: gpt, artifact: /models/1}]\n";

class ServiceChangeTest : public ControllerTest {
 protected:
  void SetUp() override {
    ControllerTest::SetUp();
    const Result<std::vector<JobId>> jobs = submit(spec("", kFirst));
    ASSERT_TRUE(jobs) << jobs.error().text();
    ASSERT_EQ(jobs->size(), 1u);
  }
  static std::string spec(const std::string& role, const std::string& rest,
                          const std::string& name = "chat") {
    return kHead + ("name: " + name) + "\nroles: [{accelerators: 4" + role + "}]\n" + rest;
  }
  /// Updates the service of the first job; returns what is wrong, "" if nothing is.
  std::string update(const std::string& text, JobId job = JobId(0)) {
    std::optional<Result<std::vector<JobId>>> answer;
    controller_->submissions().update({text, "chat.yaml"}, job, "",
                                      [&](Result<std::vector<JobId>> of) { answer = of; });
    await([&] { return answer.has_value(); });
    return *answer ? "" : answer->error().text();
  }
  [[nodiscard]] const Service& service() const {
    return *controller_->state().services().find(JobId(0));
  }
};

TEST_F(ServiceChangeTest, AnotherRevisionReplacesTheReplicas) {
  EXPECT_EQ(controller_->state().job(JobId(0)).name, "chat[0]");
  const std::string text = spec(", replicas: 2",
                                "revisions: [{id: r2, model: gpt, artifact: /models/2}]\n"
                                "rollout: {surge: 3, unavailable: 2}\n");
  EXPECT_EQ(update(text), "");
  ASSERT_TRUE(service().update);
  EXPECT_EQ(service().update->to.number, 2u);
  EXPECT_EQ(service().update->replicas, 2u);
  EXPECT_EQ(service().update->terms, (RolloutTerms{3, 2}));
  EXPECT_EQ(service().live.size(), 2u) << "the first was not ready: it has gone";
  for (const JobId job : service().live) {
    EXPECT_EQ(controller_->state().job(job).spec, text);
  }
}

TEST_F(ServiceChangeTest, ACanaryHasTheTermsOfTheSpec) {
  const std::string revision = "revisions: [{id: r2, model: gpt, artifact: /models/2}]\n";
  EXPECT_EQ(update(spec("", revision + "rollout: {canary: [1%, 50%]}\n")), "");
  EXPECT_EQ(service().update->terms,
            (RolloutTerms{.canary = {100, 5000}, .bake = Duration::minutes(10)}));
  EXPECT_EQ(
      update(spec("", revision + "rollout: {canary: [2.5%], bake: 1 min, gates: [quality]}\n")),
      "");
  EXPECT_EQ(
      service().update->terms,
      (RolloutTerms{.canary = {250}, .bake = Duration::minutes(1), .gates = {false, false, true}}));
}

TEST_F(ServiceChangeTest, ASpecThatDiffersInItsReplicasAloneKeepsTheRevision) {
  EXPECT_EQ(update(spec(", replicas: 3", kFirst)), "");
  EXPECT_EQ(service().update->to.number, 1u);
  EXPECT_EQ(service().live.size(), 3u);
  EXPECT_EQ(update(spec("", kFirst)), "");
  EXPECT_EQ(service().live.size(), 1u);
}

TEST_F(ServiceChangeTest, OtherTermsAreThoseOfTheSameRevisionWhoseReplicasStay) {
  const std::string terms = "slo: {ttft_p99: 1 s}\ntenants: [lab]\nscaling: {max: 4}\n";
  EXPECT_EQ(update(spec("", kFirst + terms)), "");
  EXPECT_EQ(service().update->to.number, 1u);
  EXPECT_NE(service().update->to.texts.spec.find("ttft_p99"), std::string::npos);
  EXPECT_EQ(service().live, std::set<JobId>{JobId(0)});
  EXPECT_EQ(update(spec(", replicas: 3", kFirst + terms)), "");
  EXPECT_EQ(service().live.size(), 3u);
  EXPECT_EQ(update(spec(", replicas: 3", kFirst + terms + "rollout: {surge: 2}\n")), "");
  EXPECT_EQ(service().update->replicas, 3u);
  EXPECT_EQ(service().update->to.number, 1u);
}

TEST_F(ServiceChangeTest, AScaledServiceKeepsItsNumberWhereTheTextDoes) {
  EXPECT_EQ(update(spec("", std::string(kFirst) + "scaling: {max: 4}\n")), "");
  bool told = false;
  controller_->command(ScaleOrder{JobId(0), 3, "load"}, "",
                       [&](const Result<JobId>&) { told = true; });
  await([&] { return told; });
  EXPECT_EQ(service().update->replicas, 3u);
  EXPECT_EQ(update(spec("", std::string(kFirst) + "scaling: {max: 6}\n")), "");
  EXPECT_EQ(service().update->replicas, 3u);
  EXPECT_EQ(update(spec("", std::string(kFirst) + "scaling: {max: 2}\n")), "");
  EXPECT_EQ(service().update->replicas, 2u);
}

TEST_F(ServiceChangeTest, WhatIsOfNoServiceOrAnotherOneIsRefusedWithItsPlace) {
  EXPECT_EQ(
      update(spec("", "revisions: [{model: gpt, artifact: /models/2}]\n")),
      "chat.yaml:5:13: revision \"r1\" of the service runs already and differs from this one, "
      "expected another id");
  EXPECT_EQ(update(spec("", "revisions: [{id: r2, model: x, artifact: /models/2}]\n")),
            "chat.yaml:1:1: model is \"x\", expected \"gpt\": clients of the service ask for it by "
            "that name");
  EXPECT_EQ(update(spec("", kFirst, "chit")),
            "chat.yaml:1:1: name is \"chit\", expected \"chat\", the service's");
  EXPECT_EQ(update(spec("", "rollout: {surge: 0}\n" + std::string(kFirst))),
            "chat.yaml:5:10: rollout has surge 0 and unavailable 0, expected one of them above 0: "
            "no replica could be replaced");
  const Result<std::vector<JobId>> batch = submit(
      "apiVersion: orrery/v1\nkind: Batch\nname: b\nroles: [{accelerators: 1}]\n"
      "launch: {command: [a]}\n");
  ASSERT_TRUE(batch);
  EXPECT_EQ(update(spec("", kFirst), batch->front()), "job 1 is no replica of a service that runs");
}

}  // namespace
}  // namespace orrery

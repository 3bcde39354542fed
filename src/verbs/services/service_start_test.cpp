#include "verbs/services/service_start.hpp"

#include <fmt/format.h>

#include <array>

#include "verbs/cluster/live_cluster_test.hpp"

namespace orrery {
namespace {

using ServiceStartTest = LiveClusterTest;

struct ReplicaNow {
  std::string state;
  std::uint32_t attempt = 1;
};

v1::Job chat_with(const std::vector<ReplicaNow>& replicas, const std::string& endpoint) {
  v1::Job job = job_named(7, "chat[0]", "running");
  v1::ServiceView& service = *job.mutable_service();
  service.set_id(7);
  service.set_name("chat");
  service.set_model("gpt");
  if (!endpoint.empty()) service.add_endpoints(endpoint);
  std::uint64_t id = 7;
  for (const ReplicaNow& now : replicas) {
    v1::ServiceReplica& replica = *service.add_replicas();
    replica.set_job(id++);
    replica.set_state(now.state);
    replica.set_attempt(now.attempt);
    replica.set_node("node-0");
  }
  return job;
}

TEST_F(ServiceStartTest, PhasesAreToldUntilAReplicaIsReadyAndAGatewayConnected) {
  const std::vector<v1::Job> seen{chat_with({{"requested"}, {"requested"}}, ""),
                                  chat_with({{"loading"}, {"requested"}}, ""),
                                  chat_with({{"ready"}, {"loading"}}, ""),
                                  chat_with({{"ready"}, {"loading"}}, "http://127.0.0.1:1")};
  std::size_t looked = 0;
  on<v1::GetJobRequest>("GetJob",
                        [&](const v1::GetJobRequest&) { return answer_with(seen.at(looked++)); });
  int paused = 0;
  const auto service =
      await_service(session(), 7, {.pause = [&] { ++paused; }, .said = progress().message});
  ASSERT_TRUE(service) << service.error().text();
  EXPECT_EQ(paused, 3);
  EXPECT_EQ(messages_,
            "orrery: replica 7 requested on node-0\n"
            "orrery: replica 8 requested on node-0\n"
            "orrery: replica 7 loading on node-0\n"
            "orrery: replica 7 ready on node-0\n"
            "orrery: replica 8 loading on node-0\n"
            "orrery: no gateway of the cluster is connected yet\n");
}

TEST_F(ServiceStartTest, TheLogOfAReplicaThatFailsIsShownAndTheEndOfAllIsAnError) {
  const std::vector<v1::Job> seen{chat_with({{"loading", 1}}, "http://127.0.0.1:1"),
                                  chat_with({{"requested", 2}}, "http://127.0.0.1:1"),
                                  chat_with({{"failed", 2}}, "http://127.0.0.1:1")};
  std::size_t looked = 0;
  on<v1::GetJobRequest>("GetJob",
                        [&](const v1::GetJobRequest&) { return answer_with(seen.at(looked++)); });
  v1::LogChunk chunk;
  chunk.set_bytes("loading\nno \x1bmemory");
  answers<v1::ReadLogRequest>("ReadLog", chunk);
  const auto service = await_service(session(), 7, {.pause = [] {}, .said = progress().message});
  ASSERT_FALSE(service);
  EXPECT_EQ(service.error().text(),
            "service chat has ended: none of its replicas is left; `orrery job 7` shows why");
  const auto failure = [](int attempt) {
    return "orrery: attempt " + std::to_string(attempt) +
           " of replica 7 failed; the end of its log (all of it: `orrery logs 7 --attempt " +
           std::to_string(attempt) + "`):\n  loading\n  no \\x1bmemory\n";
  };
  EXPECT_EQ(messages_, "orrery: replica 7 loading on node-0\n" + failure(1) +
                           "orrery: replica 7 requested on node-0\n" + failure(2) +
                           "orrery: replica 7 failed on node-0\n");
  const auto read = heard<v1::ReadLogRequest>("ReadLog");
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].attempt(), 1u);
  EXPECT_FALSE(read[0].follow());
}

TEST_F(ServiceStartTest, AServiceOfWhichEachReplicaFailsAtItsStartIsNotWaitedFor) {
  // Replica 7 fails from the begin; 8 is at its first attempt, then was preempted, then fails, too.
  std::size_t round = 0;
  on<v1::GetJobRequest>("GetJob", [&](const v1::GetJobRequest& asked) {
    const std::array<std::uint32_t, 3> attempts{1, 3, 5};
    v1::Job job = chat_with({{"loading", 3}, {"loading", attempts.at(round)}}, "http://[::1]:1");
    for (const int times : {1, 2}) {
      v1::JobAttempt& attempt = *job.add_attempts();
      *attempt.mutable_stopped() = seconds_from_noon(times);
      const bool fails = asked.id() == 7 || round == 2;
      if (fails) attempt.set_blame(fmt::format("program: exit status {} of rank 0", times));
    }
    return answer_with(job);
  });
  answers<v1::ReadLogRequest>("ReadLog", v1::LogChunk());
  const auto service =
      await_service(session(), 7, {.pause = [&] { ++round; }, .said = progress().message});
  ASSERT_FALSE(service);
  EXPECT_EQ(round, 2u) << "until then replica 8 may start";
  EXPECT_EQ(service.error().kind, ErrorKind::kInfeasible);
  EXPECT_EQ(service.error().text(),
            "service chat does not start: replica 7 failed 2 times before it was ready: program: "
            "exit status 2 of rank 0; `orrery logs 7` shows its log. It is started again until "
            "`orrery cancel chat` ends it");
}

TEST_F(ServiceStartTest, AJobWithoutAModelIsNoService) {
  answers<v1::GetJobRequest>("GetJob", job_named(7, "train", "running"));
  EXPECT_EQ(service_of_job(session(), 7).error().text(),
            "job 7 (train) has no model to serve: expected a service with revisions");
  v1::Job ended = job_named(7, "chat", "cancelled");
  *ended.mutable_ended() = seconds_from_noon(0);
  answers<v1::GetJobRequest>("GetJob", ended);
  EXPECT_EQ(service_of_job(session(), 7).error().text(), "job 7 (chat) cancelled");
}

TEST_F(ServiceStartTest, AServiceIsFoundByItsNameOrANumber) {
  EXPECT_EQ(service_job(session(), "12").value(), 12u);
  on<v1::ListJobsRequest>("ListJobs", [](const v1::ListJobsRequest& request) {
    v1::ListJobsResponse jobs;
    if (request.name() == "chat[*]") {
      *jobs.add_jobs() = job_named(9, "chat[1]", "running");
      jobs.mutable_jobs(0)->set_kind("Serve");
    }
    return answer_with(jobs);
  });
  EXPECT_EQ(service_job(session(), "chat").value(), 9u);
  EXPECT_NE(service_job(session(), "chit").error().text().find("there is no service \"chit\""),
            std::string::npos);
}

TEST_F(ServiceStartTest, AKeyIsAskedForTheJob) {
  v1::AddServiceKeyResponse made;
  made.set_key("k");
  answers<v1::AddServiceKeyRequest>("AddServiceKey", made);
  EXPECT_EQ(add_service_key(session(), 7)->key(), "k");
  const auto asked = heard<v1::AddServiceKeyRequest>("AddServiceKey");
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].id(), 7u);
}

TEST(ServiceAnswerTest, SaysHowTheServiceIsCalled) {
  v1::AddServiceKeyResponse key;
  key.set_key("secret");
  key.set_name("chat-key-1");
  const v1::ServiceView service =
      chat_with({{"ready"}, {"loading"}}, "http://127.0.0.1:1").service();
  const LiveAnswer answer = service_answer(service, key);
  EXPECT_EQ(answer.text,
            "service chat (job 7): 1 of 2 replicas ready\n"
            "endpoint  http://127.0.0.1:1\n"
            "model     gpt\n"
            "key       secret   (chat-key-1, shown only this once)\n"
            "\n  curl http://127.0.0.1:1/v1/completions -H 'Authorization: Bearer secret' \\\n"
            "    -H 'Content-Type: application/json' \\\n"
            "    -d '{\"model\": \"gpt\", \"prompt\": \"Hello\", \"max_tokens\": 32}'\n");
  EXPECT_EQ(*answer.json, Json::parse(R"({"id": "7", "endpoint": "http://127.0.0.1:1",
                                          "model": "gpt", "api_key": "secret"})"));
  const LiveAnswer alone = service_answer(chat_with({}, "").service(), key);
  EXPECT_EQ(alone.text.find("curl"), std::string::npos);
  EXPECT_NE(alone.text.find("no gateway is connected"), std::string::npos);
}

}  // namespace
}  // namespace orrery

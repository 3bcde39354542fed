// A controller that serves in another thread, called as clients do: over gRPC and over HTTP.
#include "api/grpc/server.hpp"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <nlohmann/json.hpp>

#include "api/agents/agent_messages.hpp"
#include "api/serving_test.hpp"

namespace orrery {
namespace {

TEST_F(ServerTest, EveryMethodRefusesThoseWhoMayNotCallIt) {
  for (std::size_t role = 0; role < std::size(kRoleNames); ++role) {
    Client caller = client(kRoleNames[role]);
    for (const auto& [name, method] : serving_->methods.all()) {
      const bool may = static_cast<std::size_t>(method.rule.role) <= role;
      if (may) continue;
      const auto answer = caller.call<v1::CancelJobResponse>(name, *method.request());
      ASSERT_FALSE(answer) << kRoleNames[role] << " called " << name;
      const std::string why = role == 0 ? "no token" : "may not call";
      EXPECT_NE(answer.error().text().find(why), std::string::npos) << answer.error().text();
    }
    for (const HttpRoute& route : http_routes()) {
      const Method& method = *serving_->methods.find(route.method);
      if (static_cast<std::size_t>(method.rule.role) <= role) continue;
      std::string path(route.path);
      if (const std::size_t at = path.find('{'); at != std::string::npos) {
        path.replace(at, path.find('}') + 1 - at, "0");
      }
      const std::string answer = ask(std::string(route.verb) + " " + path, kRoleNames[role]);
      EXPECT_TRUE(answer.starts_with(role == 0 ? "HTTP/1.1 401" : "HTTP/1.1 403"))
          << kRoleNames[role] << " " << path << ": " << answer;
    }
  }
}

v1::AddUserRequest user_asked(const std::string& name, const std::string& role,
                              const std::string& tenant) {
  v1::AddUserRequest asked;
  asked.set_name(name);
  asked.set_role(role);
  asked.set_tenant(tenant);
  return asked;
}

TEST_F(ServerTest, AUserComesAndGoesAndKeepsToItsTenant) {
  const v1::AddUserRequest asked = user_asked("ada", "user", "default");
  const auto added = client().call<v1::AddUserResponse>("AddUser", asked);
  ASSERT_TRUE(added) << added.error().text();
  EXPECT_FALSE(client().call<v1::AddUserResponse>("AddUser", asked)) << "twice";
  const auto days = (static_cast<double>(added->expires().seconds()) -
                     (RealClock().now_wall() - Instant()).count_seconds()) /
                    86'400;
  EXPECT_NEAR(days, 365, 1);
  Client ada = client(added->token());
  v1::SubmitJobRequest work;
  work.set_spec(std::string(kSubmittedJob) + "tenant: other\n");
  const auto other = ada.call<v1::SubmitJobResponse>("SubmitJob", work);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().text().find("expected \"default\""), std::string::npos);
  v1::RemoveUserRequest remove;
  remove.set_name("ada");
  EXPECT_TRUE(client().call<v1::RemoveUserResponse>("RemoveUser", remove));
  EXPECT_NE(ada.call<v1::Job>("GetJob", v1::GetJobRequest()).error().text().find("no token"),
            std::string::npos);
  remove.set_name("admin");
  EXPECT_FALSE(client().call<v1::RemoveUserResponse>("RemoveUser", remove)) << "the last admin";
}

TEST_F(ServerTest, AnAdminOrOperatorOfATenantIsRefusedAndSoIsATenantThatIsNotThere) {
  for (const char* role : {"admin", "operator"}) {
    const auto made =
        client().call<v1::AddUserResponse>("AddUser", user_asked("tadmin", role, "default"));
    ASSERT_FALSE(made) << role;
    EXPECT_NE(made.error().text().find("expected no tenant"), std::string::npos)
        << made.error().text();
  }
  const auto lost =
      client().call<v1::AddUserResponse>("AddUser", user_asked("zz", "user", "defalt"));
  ASSERT_FALSE(lost);
  EXPECT_NE(lost.error().text().find("did you mean \"default\""), std::string::npos)
      << lost.error().text();
  // What the review tried: a token with a tenant that makes itself another user.
  const auto user =
      client().call<v1::AddUserResponse>("AddUser", user_asked("u", "user", "default"));
  ASSERT_TRUE(user) << user.error().text();
  const auto boss =
      client(user->token()).call<v1::AddUserResponse>("AddUser", user_asked("boss", "admin", ""));
  ASSERT_FALSE(boss);
  EXPECT_NE(boss.error().text().find("may not call AddUser"), std::string::npos);
}

TEST_F(ServerTest, ARotatedTokenWorksUntilTheOverlapEnds) {
  ASSERT_TRUE(client().call<v1::AddUserResponse>("AddUser", user_asked("ada", "viewer", "")));
  v1::RotateUserRequest rotate;
  rotate.set_name("ada");
  rotate.set_overlap_s(3600);
  const auto first = client().call<v1::RotateUserResponse>("RotateUser", rotate);
  rotate.set_overlap_s(0);
  const auto second = client().call<v1::RotateUserResponse>("RotateUser", rotate);
  ASSERT_TRUE(first && second);
  const std::string refused = ask("GET /v1/jobs", first->token());
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 401")) << refused;
  EXPECT_NE(refused.find("the token of ada expired on "), std::string::npos) << refused;
  EXPECT_NE(refused.find("a newer one took its place"), std::string::npos) << refused;
  EXPECT_TRUE(ask("GET /v1/jobs", second->token()).starts_with("HTTP/1.1 200"));
  const auto users = client().call<v1::ListUsersResponse>("ListUsers", v1::ListUsersRequest());
  ASSERT_TRUE(users);
  EXPECT_EQ(std::count_if(users->users().begin(), users->users().end(),
                          [](const v1::User& user) { return user.name() == "ada"; }),
            3);
}

TEST_F(ServerTest, StreamsEndWhenTheirUserIsRemovedOrTheirTokenExpires) {
  const auto removed = client().call<v1::AddUserResponse>("AddUser", user_asked("a", "viewer", ""));
  v1::AddUserRequest brief = user_asked("b", "viewer", "");
  brief.set_lifetime_s(1);
  const auto expires = client().call<v1::AddUserResponse>("AddUser", brief);
  ASSERT_TRUE(removed && expires);
  std::thread remover([&] {
    for (bool watched = false; !watched;) {
      serving_->run([&](Controller& controller) { watched = controller.events().watched(); });
    }
    v1::RemoveUserRequest remove;
    remove.set_name("a");
    EXPECT_TRUE(client().call<v1::RemoveUserResponse>("RemoveUser", remove));
  });
  const std::string request = "GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ";
  const std::string ended = http(request + removed->token() + "\r\n\r\n", "no token");
  remover.join();
  EXPECT_NE(ended.find("no token"), std::string::npos) << ended;
  // Nothing else happens meanwhile; the call may also come too late to begin.
  const std::string over = http(request + expires->token() + "\r\n\r\n", "expired on");
  EXPECT_NE(over.find("the token of b expired on "), std::string::npos) << over;
}

TEST_F(ServerTest, EveryChangeIsInTheAuditLogWithoutWhatIsSecret) {
  (void)submit();
  v1::CancelJobRequest cancel;
  EXPECT_TRUE(client("user").call<v1::CancelJobResponse>("CancelJob", cancel)) << "job 0";
  cancel.set_id(99);
  EXPECT_FALSE(client("user").call<v1::CancelJobResponse>("CancelJob", cancel));
  EXPECT_FALSE(client("viewer").call<v1::CancelJobResponse>("CancelJob", cancel));
  v1::SubmitJobRequest wrong;
  wrong.set_spec("kind: Batch\nlaunch: {environment: {KEY=sk-123456: x}}\n");
  EXPECT_FALSE(client("user").call<v1::SubmitJobResponse>("SubmitJob", wrong));
  (void)ask("GET /v1/jobs");
  std::ifstream file(directory_ + "/audit.log");
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(lines.size(), 5U);
  const auto expect = [&](std::size_t at, const std::string& caller, CallCode code) {
    EXPECT_EQ(lines[at]["caller"], caller) << at;
    EXPECT_EQ(lines[at]["role"], caller) << at;
    EXPECT_EQ(lines[at]["code"], static_cast<int>(code)) << lines[at];
  };
  expect(0, "admin", CallCode::kOk);
  EXPECT_EQ(lines[0]["method"], "SubmitJob");
  EXPECT_EQ(lines[0]["jobs"], "0");
  EXPECT_EQ(lines[0]["job_tenant"], "default");
  EXPECT_EQ(lines[0]["request"]["spec"], "sha256:" + sha256_text(kSubmittedJob));
  expect(1, "user", CallCode::kOk);
  EXPECT_EQ(lines[1]["jobs"], "0");
  EXPECT_EQ(lines[1]["request"]["id"], "0");
  expect(2, "user", CallCode::kNotFound);
  EXPECT_EQ(lines[2]["message"], "no job 99");
  expect(3, "viewer", CallCode::kPermissionDenied);
  EXPECT_EQ(lines[3]["jobs"], "99");
  expect(4, "user", CallCode::kInvalidArgument);
  EXPECT_EQ(lines[4].dump().find("sk-123456"), std::string::npos) << lines[4];
}

TEST_F(ServerTest, AJobIsTheSameByBothWays) {
  const std::uint64_t id = submit();
  EXPECT_EQ(submit(), id);
  v1::GetJobRequest asked;
  asked.set_id(id);
  const auto job = client().call<v1::Job>("GetJob", asked);
  ASSERT_TRUE(job) << job.error().text();
  EXPECT_EQ(job->phase(), "queued");
  EXPECT_EQ(job->spec(), kSubmittedJob);
  const std::string shown = ask("GET /v1/jobs/" + std::to_string(id));
  EXPECT_NE(shown.find("\"phase\":\"queued\""), std::string::npos) << shown;
  EXPECT_NE(ask("GET /v1/jobs?page_size=1").find("\"name\":\"one\""), std::string::npos);
}

TEST_F(ServerTest, CallersWhoCountTheirRequestsAlikeMeanTwoJobs) {
  v1::SubmitJobRequest asked;
  asked.set_request_id("1");
  asked.set_spec(kSubmittedJob);
  const auto one = client("user").call<v1::SubmitJobResponse>("SubmitJob", asked);
  const auto other = client("operator").call<v1::SubmitJobResponse>("SubmitJob", asked);
  const auto again = client("user").call<v1::SubmitJobResponse>("SubmitJob", asked);
  ASSERT_TRUE(one && other && again);
  EXPECT_NE(one->id(), other->id());
  EXPECT_EQ(one->id(), again->id());
}

TEST_F(ServerTest, ListsArePagedNewestFirst) {
  for (int i = 0; i < 5; ++i) (void)submit("r" + std::to_string(i));
  v1::ListJobsRequest asked;
  asked.set_page_size(2);
  std::vector<std::uint64_t> seen;
  do {
    const auto page = client().call<v1::ListJobsResponse>("ListJobs", asked);
    ASSERT_TRUE(page) << page.error().text();
    ASSERT_LE(page->jobs_size(), 2);
    for (const v1::Job& job : page->jobs()) seen.push_back(job.id());
    asked.set_page_token(page->next_page_token());
  } while (!asked.page_token().empty());
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{4, 3, 2, 1, 0}));
}

TEST_F(ServerTest, AListSaysWhyEachJobWaitsAsTheJobItselfDoes) {
  for (int i = 0; i < 3; ++i) (void)submit("r" + std::to_string(i));
  const auto list = client().call<v1::ListJobsResponse>("ListJobs", v1::ListJobsRequest());
  ASSERT_TRUE(list) << list.error().text();
  ASSERT_EQ(list->jobs_size(), 3);
  for (const v1::Job& row : list->jobs()) {
    v1::GetJobRequest asked;
    asked.set_id(row.id());
    const auto job = client().call<v1::Job>("GetJob", asked);
    ASSERT_TRUE(job) << job.error().text();
    EXPECT_FALSE(row.waiting().empty());
    EXPECT_EQ(row.waiting(), job->waiting());
  }
}

TEST_F(ServerTest, WhatIsWrongIsSaidWithItsPlace) {
  EXPECT_NE(ask("POST /v1/jobs", "admin", "{\"spec\": \"kind: Batch\", \"file\": \"a.yaml\"}")
                .find("a.yaml:1"),
            std::string::npos);
  EXPECT_TRUE(ask("POST /v1/jobs", "admin", "{not json").starts_with("HTTP/1.1 400"));
  EXPECT_NE(ask("POST /v1/jobs", "admin", "{\"speck\": 1}").find("speck"), std::string::npos);
  EXPECT_TRUE(ask("GET /v1/jobs?page_size=5000").starts_with("HTTP/1.1 400"));
  EXPECT_TRUE(ask("GET /v1/jobs?page_token=x").starts_with("HTTP/1.1 400"));
  EXPECT_TRUE(ask("GET /v1/jobs/x").starts_with("HTTP/1.1 400"));
  EXPECT_TRUE(ask("GET /v1/jobs/99").starts_with("HTTP/1.1 404"));
  EXPECT_NE(ask("GET /v1/nodes/nod0").find("node0"), std::string::npos);
  EXPECT_TRUE(ask("GET /v1/else").starts_with("HTTP/1.1 404"));
  const std::string large(5 << 20, ' ');
  EXPECT_TRUE(ask("POST /v1/jobs", "admin", large).starts_with("HTTP/1.1 400"));
}

/// An agent's stream as bytes.
class RawStream {
 public:
  RawStream(const std::string& address, const AgentTls& tls)
      : stub_(grpc::CreateChannel(
            address, grpc::SslCredentials({.pem_root_certs = tls.authority,
                                           .pem_private_key = tls.identity.key,
                                           .pem_cert_chain = tls.identity.certificate}))),
        call_(stub_.PrepareCall(&context_, "/orrery.v1.AgentService/Connect", &queue_)) {
    call_->StartCall(this);
    EXPECT_TRUE(next());
  }
  ~RawStream() {
    context_.TryCancel();
    queue_.Shutdown();
    while (queue_.Next(&tag_, &good_)) {
    }
  }
  RawStream(const RawStream&) = delete;
  RawStream& operator=(const RawStream&) = delete;

  void write(const std::string& bytes) {
    const grpc::Slice slice(bytes);
    call_->Write(grpc::ByteBuffer(&slice, 1), this);
    EXPECT_TRUE(next());
  }
  [[nodiscard]] std::string read() {
    grpc::ByteBuffer answer;
    call_->Read(&answer, this);
    std::vector<grpc::Slice> slices;
    if (!next() || !answer.Dump(&slices).ok()) return "";
    std::string bytes;
    for (const grpc::Slice& slice : slices) {
      bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    return bytes;
  }

 private:
  bool next() { return queue_.Next(&tag_, &good_) && good_; }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  void* tag_ = nullptr;
  bool good_ = false;
};

TEST_F(ServerTest, WhatOnlyANewerAgentSaysIsPassedOver) {
  RawStream agent(serving_->grpc, agent_tls(serving_->authority, "node0"));
  agent.write("\x9a\x06\x02hi");  // field 99
  AgentOpening opening{.node = "node0", .address = "10.0.0.1", .boot = 7, .incarnation = 1};
  opening.inventory = {.accelerator = "h100", .accelerators = 8};
  agent.write(to_proto(AgentMessage(opening)).SerializeAsString());
  v1::ControllerMessage answer;
  ASSERT_TRUE(answer.ParseFromString(agent.read()));
  EXPECT_TRUE(answer.has_welcome());
}

/// An agent that ignores all messages.
class DeafSession final : public AgentSession {
 public:
  void send(const ControllerMessage&) override {}
  void close(const Error& why) override { ADD_FAILURE() << why.text(); }
};

TEST_F(ServerTest, ShowsWhatANodeLastReadAndNothingOfWhatItDidNot) {
  DeafSession session;
  serving_->run([&](Controller& controller) {
    AgentOpening opening{.node = "node1", .address = "10.0.0.1", .boot = 7, .incarnation = 1};
    opening.inventory = {.accelerator = "h100", .accelerators = 8};
    controller.sessions().open(opening, session);
    NodeReading reading{.cpu_busy = 0.25, .received_bytes = 5'000'000'000, .unwell = "worn"};
    reading.accelerators = {{.power_w = 300.5, .memory_errors = 2}, {.busy = 0.5}};
    controller.receive(NodeId(1), reading);
  });
  const std::string metrics = ask("GET /metrics", "viewer");
  const auto has = [&](const std::string& line) { return metrics.find(line) != metrics.npos; };
  EXPECT_TRUE(has("orrery_node_cpu_busy_ratio{node=\"node1\"} 0.25"));
  EXPECT_TRUE(has("orrery_node_network_receive_bytes_total{node=\"node1\"} 5000000000"));
  EXPECT_TRUE(has("orrery_accelerator_power_watts{node=\"node1\",device=\"0\"} 300.5"));
  EXPECT_TRUE(has("orrery_accelerator_memory_errors_total{node=\"node1\",device=\"0\"} 2"));
  EXPECT_TRUE(has("orrery_accelerator_busy_ratio{node=\"node1\",device=\"1\"} 0.5"));
  EXPECT_FALSE(has("orrery_accelerator_power_watts{node=\"node1\",device=\"1\"}"));
  EXPECT_FALSE(has("orrery_node_cpu_busy_ratio{node=\"node0\"}"));
  EXPECT_FALSE(has("orrery_node_power_watts{")) << "no agent has said it";
  const std::string node = ask("GET /v1/nodes/node1");
  EXPECT_NE(node.find("\"power_w\":300.5"), std::string::npos) << node;
  EXPECT_NE(node.find("\"unwell\":\"worn\""), std::string::npos);
  EXPECT_NE(node.find("\"reading_at\""), std::string::npos);
  serving_->run([&](Controller& controller) { controller.sessions().close(session); });
  EXPECT_EQ(ask("GET /metrics", "viewer").find("orrery_node_cpu_busy_ratio{"), std::string::npos);
}

/// A manager that answers nothing.
class SilentManager final : public ResourceManager {
 public:
  void carry_out(const ManagerOrder&) override {}
};

TEST_F(ServerTest, TellsWhatIsWrongWithResourceManagers) {
  EXPECT_EQ(ask("GET /metrics", "viewer").find("orrery_manager"), std::string::npos);
  serving_->run([&](Controller& controller) {
    ResourceManager::Reported report;
    controller.holds().begin({.managers = {{.name = "hpc", .nodes = "node0"}}},
                             [&](const ManagerSpec&, std::uint64_t, auto reported) {
                               report = std::move(reported);
                               return std::make_unique<SilentManager>();
                             });
    report({0, ManagerListing{.trouble = "Unable to contact slurm controller"}});
  });
  const std::string metrics = ask("GET /metrics", "viewer");
  for (const char* line :
       {"orrery_manager_trouble{manager=\"hpc\"} 1", "orrery_manager_refused{manager=\"hpc\"} 0",
        "orrery_manager_newer{manager=\"hpc\"} 0",
        "orrery_manager_nodes_out_of_service{manager=\"hpc\"} 0",
        "orrery_lent_nodes{manager=\"hpc\"} 0",
        "orrery_holds{manager=\"hpc\",state=\"waiting\"} 0"}) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line;
  }
  const std::string holds = ask("GET /v1/holds");
  EXPECT_NE(holds.find("\"trouble\":\"Unable to contact slurm controller\""), std::string::npos)
      << holds;
}

TEST_F(ServerTest, TellsOfItselfAndEndsStreamsWhenAJobEnds) {
  EXPECT_NE(ask("GET /healthz").find("ok"), std::string::npos);
  EXPECT_NE(ask("GET /metrics", "viewer").find("orrery_jobs{phase=\"queued\"} 0"),
            std::string::npos);
  EXPECT_NE(ask("GET /openapi.json", "").find("\"/v1/jobs/{id}:cancel\""), std::string::npos);
  const std::uint64_t id = submit();
  EXPECT_EQ(submit("again"), id + 1);
  const std::string metrics = ask("GET /metrics", "viewer");
  for (const char* line :
       {"orrery_build_info{version=\"",
        "orrery_api_calls_total{method=\"SubmitJob\",code=\"OK\"} 2",
        "orrery_tenant_jobs{tenant=\"default\",phase=\"queued\"} 2",
        "orrery_job_queue_wait_seconds_bucket{le=\"+Inf\"} 0", "orrery_log_commit_seconds_count ",
        "orrery_scheduler_pass_seconds_bucket{kind=\"full\",le=\"1\"}"}) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line;
  }
  std::thread canceller([&] {
    // Waits until there is a watcher.
    for (bool watched = false; !watched;) {
      serving_->run([&](Controller& controller) { watched = controller.events().watched(); });
    }
    v1::CancelJobRequest cancel;
    cancel.set_id(id);
    EXPECT_TRUE(client().call<v1::CancelJobResponse>("CancelJob", cancel));
  });
  const std::string events = http(
      "GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer viewer\r\n\r\n", "JobEnded");
  canceller.join();
  EXPECT_NE(events.find("text/event-stream"), std::string::npos);
  EXPECT_NE(events.find("data: {"), std::string::npos);
  v1::WaitJobRequest wait;
  wait.set_id(id);
  const auto job = client("viewer").wait<v1::Job>("WaitJob", wait);
  ASSERT_TRUE(job) << job.error().text();
  EXPECT_EQ(job->phase(), "cancelled");
}

TEST_F(ServerTest, AJobSaysWhoSubmittedItAndListsAreAskedByUser) {
  const std::uint64_t id = submit();
  v1::SubmitJobRequest asked;
  asked.set_spec(kSubmittedJob);
  ASSERT_TRUE(client("user").call<v1::SubmitJobResponse>("SubmitJob", asked));
  v1::GetJobRequest one;
  one.set_id(id);
  EXPECT_EQ(client().call<v1::Job>("GetJob", one)->submitter(), "admin");
  v1::ListJobsRequest list;
  list.set_user("user");
  const auto found = client().call<v1::ListJobsResponse>("ListJobs", list);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->jobs_size(), 1);
  EXPECT_EQ(found->jobs(0).submitter(), "user");
  const std::string shown = ask("GET /v1/jobs?user=admin");
  EXPECT_NE(shown.find("\"submitter\":\"admin\""), std::string::npos) << shown;
  EXPECT_EQ(shown.find("\"submitter\":\"user\""), std::string::npos) << shown;
}

}  // namespace
}  // namespace orrery

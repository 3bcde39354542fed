// Callers with a tenant against a controller that serves: what each method shows them, and what it
// keeps from them.
#include "api/access/authorization.hpp"

#include "api/access/spec_redaction.hpp"
#include "api/recorded_call_test.hpp"
#include "api/serving_test.hpp"

namespace orrery {
namespace {

constexpr const char* kTwoTenants =
    "apiVersion: orrery/v1\nkind: Tenants\nname: lab\n"
    "tenants: [{name: alab}, {name: bteam}]\n";
/// What must not be shown outside of bteam.
constexpr const char* kTheirSecrets[] = {"sk-123456-SECRET", "hunter2", "bsecret", "bteam"};

std::string secret_spec(const std::string& tenant, const std::string& name) {
  return "apiVersion: orrery/v1\nkind: Batch\nname: " + name + "\ntenant: " + tenant +
         "\nroles: [{accelerators: 8}]\n"
         "launch: {command: [tool, --password=hunter2], environment: {API_KEY: "
         "sk-123456-SECRET}}\n";
}
std::string plain_spec(const std::string& name) {
  return "apiVersion: orrery/v1\nkind: Batch\nname: " + name +
         "\ntenant: alab\nroles: [{accelerators: 8}]\nlaunch: {command: [\"true\"]}\n";
}

/// An agent of node1 on which nothing runs and nothing is started.
class IdleAgent final : public AgentSession {
 public:
  void send(const ControllerMessage& message) override {
    const auto* order = std::get_if<NodeOrder>(&message);
    if (order != nullptr && std::holds_alternative<Reconcile>(order->order.what)) {
      question = order->order.stamp;
    }
  }
  void close(const Error& why) override { ADD_FAILURE() << why.text(); }
  std::optional<OrderStamp> question;
};

class AuthorizationTest : public ServerTest {
 protected:
  void SetUp() override { serve({.tenants = kTwoTenants}, users()); }
  static std::string users() {
    std::string lines;
    for (const char* tenant : {"alab", "bteam"}) {
      for (const char* role : {"viewer", "user"}) {
        const std::string name = std::string(tenant) + "-" + role;
        lines += name + " " + role + " " + sha256_text(name) + " " + tenant + "\n";
      }
    }
    return lines;
  }
  void TearDown() override {
    serving_->run([&](Controller& controller) { controller.sessions().close(agent_); });
    ServerTest::TearDown();
  }

  void make_node_ready() {
    const AgentIdentity self{NodeId(1), 7, 1};
    serving_->run([&](Controller& controller) {
      controller.sessions().open(opening("node1"), agent_);
      controller.receive(NodeId(1), Report{self, 0, Heartbeat{1, Instant::from_ns(5), {}}});
    });
    await([&](Controller& controller) {
      if (!agent_.question) return false;
      controller.receive(NodeId(1),
                         Report{self, 0, Hello{*agent_.question, Instant::from_ns(6), {}}});
      return true;
    });
  }
  void await(const std::function<bool(Controller&)>& condition) {
    for (bool met = false; !met;) {
      serving_->run([&](Controller& controller) { met = condition(controller); });
    }
  }
  [[nodiscard]] Result<std::uint64_t> submit_as(const std::string& token, const std::string& spec) {
    v1::SubmitJobRequest asked;
    asked.set_spec(spec);
    const auto answer = client(token).call<v1::SubmitJobResponse>("SubmitJob", asked);
    if (!answer) return tl::unexpected(answer.error());
    return answer->id();
  }
  [[nodiscard]] Result<v1::Job> job_as(const std::string& token, std::uint64_t id) {
    v1::GetJobRequest asked;
    asked.set_id(id);
    return client(token).call<v1::Job>("GetJob", asked);
  }
  [[nodiscard]] Status cancel_as(const std::string& token, std::uint64_t id) {
    v1::CancelJobRequest asked;
    asked.set_id(id);
    const auto answer = client(token).call<v1::CancelJobResponse>("CancelJob", asked);
    if (!answer) return tl::unexpected(answer.error());
    return {};
  }

  /// Begins a call of a method with a job's number and a node's name where the request has them.
  std::shared_ptr<RecordedCall> begin(const std::string& name, const std::string& token,
                                      std::uint64_t id) {
    const Method& method = *serving_->methods.find(name);
    const std::shared_ptr<google::protobuf::Message> request = method.request();
    const auto set = [&](const char* field, auto setter, const auto& value) {
      const auto* known = request->GetDescriptor()->FindFieldByName(field);
      if (known != nullptr) (request->GetReflection()->*setter)(request.get(), known, value);
    };
    using google::protobuf::Reflection;
    set("id", &Reflection::SetUInt64, id);
    set("follow", &Reflection::SetBool, true);
    const bool of_node = request->GetDescriptor()->name() == "GetNodeRequest";
    if (of_node) set("name", &Reflection::SetString, std::string("node1"));
    const Role role = token.ends_with("viewer") ? Role::kViewer : Role::kUser;
    auto call = std::make_shared<RecordedCall>(Caller{.name = token,
                                                      .role = role,
                                                      .tenant = "alab",
                                                      .node = "",
                                                      .credential = sha256_text(token)});
    serving_->run([&](Controller&) { method.handle(*request, call); });
    return call;
  }

  IdleAgent agent_;
};

TEST_F(AuthorizationTest, EveryMethodStatesItsScope) {
  for (const auto& [name, method] : serving_->methods.all()) {
    EXPECT_NE(method.rule.scope, Scope::kUnstated)
        << name << ": say what callers with a tenant see of it (api/grpc/method_table.hpp)";
  }
}

TEST_F(AuthorizationTest, AMethodWithoutAScopeIsClosedToCallersWithATenant) {
  MethodTable open;
  open.add<v1::GetClusterRequest>(
      "New", {Role::kViewer, Effect::kRead},
      [](const auto&, const std::shared_ptr<Call>& call) { call->reply(v1::Cluster()); });
  serving_->run([&](Controller& controller) {
    const MethodTable closed = authorized(open, controller);
    for (const char* tenant : {"", "alab"}) {
      const auto call = std::make_shared<RecordedCall>(
          Caller{.name = "x", .role = Role::kAdmin, .tenant = tenant, .node = ""});
      closed.find("New")->handle(v1::GetClusterRequest(), call);
      EXPECT_EQ(call->ended->code, *tenant == '\0' ? CallCode::kOk : CallCode::kPermissionDenied);
    }
  });
}

TEST_F(AuthorizationTest, NoReadShowsAnythingOfAnotherTenant) {
  make_node_ready();
  const std::uint64_t theirs = submit_as("bteam-user", secret_spec("bteam", "bsecret")).value();
  await([&](Controller& controller) {
    return holds_devices(controller.state().job(JobId::at(theirs)).phase);
  });
  const std::uint64_t waits = submit_as("bteam-user", secret_spec("bteam", "bsecret2")).value();
  const std::uint64_t own = submit_as("alab-user", plain_spec("mine")).value();
  std::vector<std::pair<std::string, std::shared_ptr<RecordedCall>>> calls;
  for (const char* token : {"alab-viewer", "alab-user"}) {
    for (const auto& [name, method] : serving_->methods.all()) {
      if (method.rule.effect != Effect::kRead || method.rule.role > Role::kUser) continue;
      for (const std::uint64_t id : {theirs, waits, own}) {
        const auto call = begin(name, token, id);
        calls.emplace_back(name + " by " + token, call);
        if (method.rule.scope != Scope::kJob) continue;
        const bool missing = call->ended && call->ended->code == CallCode::kNotFound;
        EXPECT_EQ(missing, id != own) << name << " of job " << id;
        if (missing) {
          EXPECT_EQ(call->ended->message, no_such_job(id).message);
        }
      }
    }
  }
  // Explanations wait for their turn.
  await([&](Controller&) {
    return std::all_of(calls.begin(), calls.end(), [](const auto& each) {
      return !each.first.starts_with("ExplainJob") || each.second->ended.has_value();
    });
  });
  // What watchers are told of meanwhile.
  (void)submit_as("bteam-user", secret_spec("bteam", "bsecret3")).value();
  EXPECT_TRUE(cancel_as("bteam-user", waits));
  EXPECT_TRUE(cancel_as("bteam-user", theirs));
  EXPECT_TRUE(cancel_as("alab-user", own));
  const std::string end = "JobEnded";
  await([&](Controller&) {
    return std::all_of(calls.begin(), calls.end(), [&](const auto& each) {
      return !each.first.starts_with("WatchEvents") ||
             each.second->text.find(end) != std::string::npos;
    });
  });
  std::string all;
  for (const auto& [name, call] : calls) {
    const std::string told = call->text + (call->ended ? call->ended->message : "");
    all += told;
    for (const char* secret : kTheirSecrets) {
      EXPECT_EQ(told.find(secret), std::string::npos)
          << name << " shows " << secret << ": " << told;
    }
  }
  EXPECT_NE(all.find("mine"), std::string::npos);
  EXPECT_NE(all.find("a job of another tenant"), std::string::npos) << "explain names it so";
  EXPECT_NE(all.find("other_jobs: 1"), std::string::npos) << "counted on its node";
}

TEST_F(AuthorizationTest, AJobOfAnotherTenantIsAsOneThatDoesNotExist) {
  const std::uint64_t theirs = submit_as("bteam-user", secret_spec("bteam", "bsecret")).value();
  const Status cancelled = cancel_as("alab-user", theirs);
  ASSERT_FALSE(cancelled);
  const Status absent = cancel_as("alab-user", 99);
  ASSERT_FALSE(absent);
  EXPECT_NE(cancelled.error().text().find(no_such_job(theirs).message), std::string::npos);
  EXPECT_NE(absent.error().text().find(no_such_job(99).message), std::string::npos);
  for (const char* path :
       {"/v1/jobs/0", "/v1/jobs/0:explain", "/v1/jobs/0:wait", "/v1/jobs/0/log", "/v1/jobs/99"}) {
    EXPECT_TRUE(ask(std::string("GET ") + path, "alab-viewer").starts_with("HTTP/1.1 404")) << path;
  }
  EXPECT_TRUE(ask("GET /v1/jobs/0", "bteam-viewer").starts_with("HTTP/1.1 200"));
  // A job of one tenant cannot wait for one of another.
  for (const char* before : {"0", "bsecret", "99"}) {
    const auto after = submit_as("alab-user", plain_spec("next") + "after: [\"" + before + "\"]\n");
    ASSERT_FALSE(after) << before;
    EXPECT_NE(after.error().text().find(std::string("no job \"") + before + "\" of tenant"),
              std::string::npos)
        << after.error().text();
  }
}

TEST_F(AuthorizationTest, FiltersDoNotTellOfOtherTenants) {
  const std::uint64_t theirs = submit_as("bteam-user", secret_spec("bteam", "bsecret")).value();
  const auto why = [&](const std::string& path) { return ask("GET " + path, "alab-viewer"); };
  for (const char* list : {"/v1/jobs?tenant=", "/v1/events:list?tenant="}) {
    EXPECT_TRUE(why(std::string(list) + "alab").starts_with("HTTP/1.1 200")) << list;
    EXPECT_TRUE(why(std::string(list) + "bteam").starts_with("HTTP/1.1 400")) << list;
    const std::string near = why(std::string(list) + "bteamx");
    EXPECT_TRUE(near.starts_with("HTTP/1.1 400")) << near;
    EXPECT_EQ(near.find("\\\"bteam\\\""), std::string::npos) << near;
  }
  EXPECT_NE(why("/v1/events:list?job=" + std::to_string(theirs)).find(no_such_job(theirs).message),
            std::string::npos);
  EXPECT_NE(why("/v1/events:list?job=99").find(no_such_job(99).message), std::string::npos);
}

TEST_F(AuthorizationTest, PagesHoldTheCallersJobsAloneAndAllOfThem) {
  std::vector<std::uint64_t> own;
  for (int i = 0; i < 4; ++i) {
    (void)submit_as("bteam-user", secret_spec("bteam", "bsecret")).value();
    own.push_back(submit_as("alab-user", plain_spec("mine")).value());
  }
  std::reverse(own.begin(), own.end());
  v1::ListJobsRequest asked;
  asked.set_page_size(1);
  std::vector<std::uint64_t> seen;
  do {
    const auto page = client("alab-viewer").call<v1::ListJobsResponse>("ListJobs", asked);
    ASSERT_TRUE(page) << page.error().text();
    for (const v1::Job& job : page->jobs()) seen.push_back(job.id());
    asked.set_page_token(page->next_page_token());
  } while (!asked.page_token().empty());
  EXPECT_EQ(seen, own);
  const auto cluster =
      client("alab-viewer").call<v1::Cluster>("GetCluster", v1::GetClusterRequest());
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->jobs(), 4U);
  EXPECT_EQ(cluster->jobs_waiting(), 4U);
}

TEST_F(AuthorizationTest, EnvironmentIsShownToThoseWhoMaySubmitInTheTenantAlone) {
  const std::uint64_t id = submit_as("bteam-user", secret_spec("bteam", "bsecret")).value();
  for (const char* token : {"bteam-user", "user", "operator", "admin"}) {
    EXPECT_NE(job_as(token, id).value().spec().find("sk-123456-SECRET"), std::string::npos)
        << token;
  }
  for (const char* token : {"bteam-viewer", "viewer"}) {
    const std::string spec = job_as(token, id).value().spec();
    EXPECT_EQ(spec.find("sk-123456"), std::string::npos) << token << ": " << spec;
    EXPECT_NE(spec.find("***"), std::string::npos) << spec;
    EXPECT_NE(spec.find("API_KEY"), std::string::npos) << spec;
  }
  EXPECT_EQ(ask("GET /v1/jobs/0", "viewer").find("sk-123456"), std::string::npos);
  std::ifstream file(directory_ + "/audit.log");
  const std::string audit{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(audit.find("sk-123456"), std::string::npos) << audit;
}

TEST_F(AuthorizationTest, EventsShowNoEnvironmentToAnyone) {
  std::thread submitter([&] {
    await([](Controller& controller) { return controller.events().watched(); });
    EXPECT_TRUE(submit_as("bteam-user", secret_spec("bteam", "bsecret")));
  });
  const std::string events = http(
      "GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin\r\n\r\n", "JobSubmitted");
  submitter.join();
  EXPECT_EQ(events.find("sk-123456"), std::string::npos) << events;
  EXPECT_NE(events.find("***"), std::string::npos) << events;
}

TEST_F(AuthorizationTest, ASpecThatCannotBeReadIsNotShown) {
  EXPECT_EQ(without_environment(plain_spec("x")), plain_spec("x"));
  EXPECT_EQ(without_environment(""), "");
  for (const char* spec : {"launch: {environment: {A: sk-123456}}", "{", "kind: Batch\n- x"}) {
    EXPECT_TRUE(without_environment(spec).starts_with("#")) << without_environment(spec);
  }
}

TEST_F(AuthorizationTest, TheEnvironmentOfAnEngineIsNotShown) {
  const std::string shown = without_environment(
      "apiVersion: orrery/v1\nkind: Serve\nname: chat\nroles: [{accelerators: 1}]\n"
      "revisions: [{model: m, artifact: /m, engine: {name: vllm, environment: {HF_TOKEN: "
      "hf_secret}}}]\n");
  EXPECT_EQ(shown.find("hf_secret"), std::string::npos) << shown;
  EXPECT_NE(shown.find("HF_TOKEN"), std::string::npos) << shown;
}

TEST_F(AuthorizationTest, MetricsAreForCallersWithoutATenant) {
  EXPECT_TRUE(ask("GET /metrics", "viewer").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(ask("GET /metrics", "client").starts_with("HTTP/1.1 403"));
  EXPECT_TRUE(ask("GET /metrics", "bteam-user").starts_with("HTTP/1.1 403"));
  EXPECT_TRUE(ask("GET /metrics", "nobody").starts_with("HTTP/1.1 401"));
}

TEST_F(AuthorizationTest, AKeyOfAServiceIsForItsTenantAndCallsNothingHere) {
  const std::string chat =
      "apiVersion: orrery/v1\nkind: Serve\nname: chat\ntenant: alab\n"
      "roles: [{replicas: 2, accelerators: 1}]\nlaunch: {command: [\"true\"]}\n";
  const std::uint64_t job = submit_as("alab-user", chat).value();
  v1::AddServiceKeyRequest asked;
  asked.set_id(job);
  const auto add = [&](const std::string& token) {
    return client(token).call<v1::AddServiceKeyResponse>("AddServiceKey", asked);
  };
  const auto key = add("alab-user");
  ASSERT_TRUE(key) << key.error().text();
  EXPECT_EQ(key->name(), "chat-key-1");
  EXPECT_EQ(add("alab-user")->name(), "chat-key-2");
  EXPECT_NE(add("alab-viewer").error().text().find("expected user"), std::string::npos);
  EXPECT_NE(add("bteam-user").error().text().find("no job"), std::string::npos);
  const auto list =
      client(key->key()).call<v1::ListJobsResponse>("ListJobs", v1::ListJobsRequest());
  EXPECT_NE(list.error().text().find("its role is client"), std::string::npos);
  const auto users = client().call<v1::ListUsersResponse>("ListUsers", v1::ListUsersRequest());
  const auto made = std::ranges::find(users->users(), "chat-key-1", &v1::User::name);
  ASSERT_NE(made, users->users().end());
  EXPECT_EQ(made->role(), "client");
  EXPECT_EQ(made->tenant(), "alab");
  asked.set_name("chat-key-1");
  EXPECT_NE(add("alab-user").error().text().find("a user \"chat-key-1\" already"),
            std::string::npos);
}

TEST_F(AuthorizationTest, OnlyAServiceThatRunsGetsAKey) {
  v1::AddServiceKeyRequest asked;
  asked.set_id(submit_as("alab-user", plain_spec("train")).value());
  const auto add = [&] {
    return client().call<v1::AddServiceKeyResponse>("AddServiceKey", asked).error().text();
  };
  EXPECT_NE(add().find("expected a job of kind Serve"), std::string::npos) << add();
  const std::string chat =
      "apiVersion: orrery/v1\nkind: Serve\nname: chat\ntenant: alab\n"
      "roles: [{accelerators: 1}]\nlaunch: {command: [\"true\"]}\n";
  asked.set_id(submit_as("alab-user", chat).value());
  ASSERT_TRUE(cancel_as("alab-user", asked.id()));
  EXPECT_NE(add().find("has ended"), std::string::npos) << add();
}

class ArchivedJobsTest : public AuthorizationTest {
 protected:
  void SetUp() override {
    ServingOptions options{.tenants = kTwoTenants};
    options.settings.retain = Seconds(0);
    serve(options, users());
  }
};

TEST_F(ArchivedJobsTest, AreShownToTheirTenantAlone) {
  const std::uint64_t theirs = submit_as("bteam-user", secret_spec("bteam", "bsecret")).value();
  const std::uint64_t own = submit_as("alab-user", plain_spec("mine")).value();
  EXPECT_TRUE(cancel_as("bteam-user", theirs));
  EXPECT_TRUE(cancel_as("alab-user", own));
  await([&](Controller& controller) {
    return !controller.state().has(JobId::at(theirs)) && !controller.state().has(JobId::at(own));
  });
  EXPECT_TRUE(job_as("bteam-viewer", theirs));
  EXPECT_TRUE(job_as("alab-viewer", own));
  const auto hidden = job_as("alab-viewer", theirs);
  ASSERT_FALSE(hidden);
  EXPECT_NE(hidden.error().text().find(no_such_job(theirs).message), std::string::npos);
  EXPECT_FALSE(cancel_as("alab-user", theirs).error().text().find("archive") != std::string::npos);
  v1::ListJobsRequest all;
  all.set_all(true);
  const auto list = client("alab-user").call<v1::ListJobsResponse>("ListJobs", all);
  ASSERT_TRUE(list) << list.error().text();
  ASSERT_EQ(list->jobs_size(), 1);
  EXPECT_EQ(list->jobs(0).id(), own);
  // So are their events, also those from before they were archived.
  const std::string events = ask("GET /v1/events:list", "alab-viewer");
  for (const char* kind : {"JobSubmitted", "JobReleased", "JobEnded", "JobsArchived"}) {
    EXPECT_NE(events.find(kind), std::string::npos) << kind << ": " << events;
  }
  for (const char* secret : kTheirSecrets) EXPECT_EQ(events.find(secret), std::string::npos);
  EXPECT_EQ(events.find("\"job\":\"" + std::to_string(theirs)), std::string::npos) << events;
  const std::string of_job = ask("GET /v1/events:list?job=" + std::to_string(own), "alab-viewer");
  EXPECT_NE(of_job.find("JobEnded"), std::string::npos) << of_job;
  EXPECT_TRUE(ask("GET /v1/events:list?job=" + std::to_string(theirs), "alab-viewer")
                  .starts_with("HTTP/1.1 400"));
}

class TenantUsersTest : public AuthorizationTest {
 protected:
  void SetUp() override {
    serve({.tenants = "apiVersion: orrery/v1\nkind: Tenants\nname: lab\n"
                      "tenants: [{name: alab, run_as: svc-alab}, {name: bteam}]\n"},
          users());
  }
};

TEST_F(TenantUsersTest, AreNotLentToOperatorsAndUsersWithoutATenant) {
  for (const char* token : {"operator", "user"}) {
    const Result<std::uint64_t> refused = submit_as(token, plain_spec("x"));
    ASSERT_FALSE(refused) << token;
    EXPECT_NE(refused.error().text().find("--run-as USER"), std::string::npos)
        << refused.error().text();
  }
  for (const char* token : {"alab-user", "admin"}) {
    const Result<std::uint64_t> id = submit_as(token, plain_spec("x"));
    ASSERT_TRUE(id) << id.error().text();
    EXPECT_EQ(job_as(token, *id).value().run_as(), "svc-alab") << token;
  }
}

TEST_F(AuthorizationTest, ARefusedAgentIsShownToCallersWithoutATenantAlone) {
  serving_->run([](Controller& controller) {
    struct RefusedAgentSession final : AgentSession {
      void send(const ControllerMessage&) override {}
      void close(const Error&) override {}
    };
    IdleAgent holder;
    RefusedAgentSession second;
    controller.sessions().open(opening("node0"), holder);
    AgentOpening copied = opening("node0");
    copied.boot = 99;
    controller.sessions().open(copied, second);
    controller.sessions().close(holder);
  });
  v1::GetNodeRequest which;
  which.set_name("node0");
  const auto shown = [&](const char* token) {
    const auto node = client(token).call<v1::Node>("GetNode", which);
    return node ? node->refused_agent() : node.error().text();
  };
  EXPECT_NE(shown("viewer").find("refused"), std::string::npos) << shown("viewer");
  EXPECT_EQ(shown("alab-user"), "");
}

}  // namespace
}  // namespace orrery

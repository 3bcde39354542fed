// A controller that serves in another thread, called as clients and agents do: over gRPC and over
// HTTP.
#include "api/server.hpp"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "api/access_service.hpp"
#include "api/agent_channel.hpp"
#include "api/agent_messages.hpp"
#include "api/audit_log.hpp"
#include "api/client.hpp"
#include "api/http_routes.hpp"
#include "api/http_server.hpp"
#include "api/orrery_service.hpp"
#include "base/real_clock.hpp"
#include "base/real_env.hpp"
#include "executor/lab_test.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {
namespace {

constexpr const char* kJob =
    "apiVersion: orrery/v1\nkind: Batch\nname: one\nroles: [{accelerators: 1}]\n"
    "launch: {command: [\"true\"]}\n";
constexpr const char* kRoles[] = {"nobody", "viewer", "user", "operator", "admin"};

/// A controller with both servers; everything of it lives in its own thread.
class Serving {
 public:
  explicit Serving(std::string directory) : directory_(std::move(directory)) {
    std::promise<void> ready;
    thread_ = std::thread([this, &ready] { serve(ready); });
    ready.get_future().wait();
  }
  ~Serving() {
    loop_->env().post([this] { loop_->stop(); });
    thread_.join();
  }

  /// For tests that look inside; in the controller's thread.
  void run(const std::function<void(Controller&)>& what) {
    std::promise<void> done;
    loop_->env().post([&] {
      what(*controller_);
      done.set_value();
    });
    done.get_future().wait();
  }

  std::string grpc;
  std::string http;
  MethodTable methods;
  TlsIdentity authority;

 private:
  void serve(std::promise<void>& ready) {
    const auto real = RealEnv::create().value();
    loop_ = real.get();
    SilentLog sink;
    const auto controller =
        Controller::open(real->env(), Log(sink),
                         {.directory = directory_,
                          .setup = lab_setup(),
                          .facts = lab_facts(),
                          .failed = [](const Error& error) { FAIL() << error.text(); }})
            .value();
    controller_ = controller.get();
    const auto tokens = TokenBook::open(real->env(), directory_).value();
    authority = open_authority(real->env(), directory_).value();
    JoinBook joins = JoinBook::open(real->env(), directory_).value();
    const auto audit = AuditLog::open(real->env(), Log(sink), directory_).value();
    MethodTable table = orrery_methods(*controller, real->env());
    add_access_methods(table, *controller, real->env(), {*tokens, joins, authority});
    methods = audited(table, *audit);
    const ServerTls tls = certify_server(authority, {}, real->env().clock.now_wall()).value();
    const auto server = Server::start(real->env(), *controller,
                                      {.methods = &methods, .tokens = tokens.get(), .tls = &tls})
                            .value();
    const auto rest = HttpServer::start(real->env(), *controller,
                                        {.methods = &methods, .tokens = tokens.get(), .tls = &tls})
                          .value();
    grpc = server->address();
    http = rest->address();
    ready.set_value();
    real->run();
  }

  std::string directory_;
  RealEnv* loop_ = nullptr;
  Controller* controller_ = nullptr;
  std::thread thread_;
};

template <auto kFree>
struct Freed {
  template <class T>
  void operator()(T* of) const {
    kFree(of);
  }
};

/// To a server that shows a certificate of the authority for this address.
class TlsConnection {
 public:
  TlsConnection(const std::string& address, const std::string& authority)
      : context_(SSL_CTX_new(TLS_client_method())) {
    const std::unique_ptr<BIO, Freed<&BIO_free_all>> pem(
        BIO_new_mem_buf(authority.data(), static_cast<int>(authority.size())));
    const std::unique_ptr<X509, Freed<&X509_free>> root(
        PEM_read_bio_X509(pem.get(), nullptr, nullptr, nullptr));
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), root.get());
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    stream_.reset(BIO_new_ssl_connect(context_.get()));
    BIO_set_conn_hostname(stream_.get(), address.c_str());
    SSL* tls = nullptr;
    BIO_get_ssl(stream_.get(), &tls);
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), "127.0.0.1");
    EXPECT_EQ(BIO_do_handshake(stream_.get()), 1) << address;
  }
  void send(const std::string& text) {
    (void)BIO_write(stream_.get(), text.data(), static_cast<int>(text.size()));
  }
  /// Empty: no more comes.
  [[nodiscard]] std::string receive() {
    char block[4096];
    const int got = BIO_read(stream_.get(), block, sizeof block);
    return {block, static_cast<std::size_t>(std::max(got, 0))};
  }

 private:
  std::unique_ptr<SSL_CTX, Freed<&SSL_CTX_free>> context_;
  std::unique_ptr<BIO, Freed<&BIO_free_all>> stream_;
};

/// What an agent hears first.
class FirstWord final : public ChannelEvents {
 public:
  void on_welcome(const AgentWelcome&) override { heard = "welcome"; }
  void on_order(const NodeOrder&) override {}
  void on_log_question(const AttemptLogQuestion&) override {}
  void on_burn_in() override {}
  void on_lost(const Error& why) override {
    if (heard.empty()) heard = "lost: " + why.message;
  }
  std::string heard;
};

/// By this authority, for this node.
AgentTls agent_tls(const TlsIdentity& authority, const std::string& node) {
  const CertificateRequest request = request_certificate().value();
  const Instant now = RealClock().now_wall();
  return {{certify_node(authority, {node, request.request}, now).value(), request.key},
          authority.certificate};
}

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_api_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    std::ofstream tokens(directory_ + "/tokens");
    for (const char* role : kRoles) {
      if (std::string_view(role) == "nobody") continue;
      tokens << role << " " << role << " " << sha256_text(role) << "\n";
    }
    tokens.close();
    serving_ = std::make_unique<Serving>(directory_);
  }
  void TearDown() override {
    serving_.reset();
    std::filesystem::remove_all(directory_);
  }

  [[nodiscard]] Client client(const std::string& token = "admin") const {
    return Client({.address = serving_->grpc,
                   .authority = serving_->authority.certificate,
                   .token = token,
                   .retry = Duration::seconds(5)});
  }
  [[nodiscard]] std::uint64_t submit(const std::string& request = "r") {
    v1::SubmitJobRequest asked;
    asked.set_request_id(request);
    asked.set_spec(kJob);
    const auto answer = client().call<v1::SubmitJobResponse>("SubmitJob", asked);
    EXPECT_TRUE(answer) << answer.error().text();
    return answer ? answer->id() : 0;
  }

  /// The whole answer, or, of a stream, what came before `until`.
  [[nodiscard]] std::string http(const std::string& request, const std::string& until = "") const {
    TlsConnection connection(serving_->http, serving_->authority.certificate);
    connection.send(request);
    std::string answer;
    while (until.empty() || answer.find(until) == std::string::npos) {
      const std::string block = connection.receive();
      if (block.empty()) break;
      answer += block;
    }
    return answer;
  }
  [[nodiscard]] std::string ask(const std::string& line, const std::string& token = "admin",
                                const std::string& body = "") const {
    return http(line + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " +
                token + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }

  /// What an agent with these certificates that opens as `node` hears first.
  [[nodiscard]] std::string agent_hears(const AgentTls& tls, const std::string& node) const {
    const auto real = RealEnv::create().value();
    FirstWord first;
    AgentChannel channel(real->env().inbox, {.controller = serving_->grpc, .tls = tls});
    channel.open({.node = node,
                  .address = "127.0.0.1",
                  .boot = 7,
                  .incarnation = 1,
                  .version = "test",
                  .inventory = {.accelerator = "h100", .accelerators = 8}},
                 first);
    real->run_until([&] { return !first.heard.empty(); });
    return first.heard;
  }

  std::string directory_;
  std::unique_ptr<Serving> serving_;
};

TEST_F(ServerTest, EveryMethodRefusesThoseWhoMayNotCallIt) {
  for (std::size_t role = 0; role < std::size(kRoles); ++role) {
    Client caller = client(kRoles[role]);
    for (const auto& [name, method] : serving_->methods.all()) {
      const bool may = static_cast<std::size_t>(method.rule.role) <= role;
      if (may) continue;
      const auto answer = caller.call<v1::CancelJobResponse>(name, *method.request());
      ASSERT_FALSE(answer) << kRoles[role] << " called " << name;
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
      const std::string answer = ask(std::string(route.verb) + " " + path, kRoles[role]);
      EXPECT_TRUE(answer.starts_with(role == 0 ? "HTTP/1.1 401" : "HTTP/1.1 403"))
          << kRoles[role] << " " << path << ": " << answer;
    }
  }
}

TEST_F(ServerTest, AnAgentIsHeardOnlyForTheNodeOfItsCertificate) {
  const TlsIdentity& authority = serving_->authority;
  EXPECT_EQ(agent_hears(agent_tls(authority, "node1"), "node1"), "welcome");
  EXPECT_EQ(agent_hears(agent_tls(authority, "node1"), "node0"),
            "lost: a certificate of node \"node1\" opens no stream of \"node0\"");
  EXPECT_EQ(agent_hears({{}, authority.certificate}, "node0"),
            "lost: an agent shows a certificate of its node");
  // Another authority: the server does not believe the agent.
  AgentTls foreign = agent_tls(make_authority(RealClock().now_wall()).value(), "node0");
  foreign.authority = authority.certificate;
  EXPECT_TRUE(agent_hears(foreign, "node0").starts_with("lost: ")) << "a foreign certificate";
  // Nor does it take its own for one of an agent.
  const ServerTls own = certify_server(authority, {"node0"}, RealClock().now_wall()).value();
  EXPECT_TRUE(agent_hears({own.identity, authority.certificate}, "node0").starts_with("lost: "));
}

TEST_F(ServerTest, ATokenLetsOneAgentJoinOnceAndAsItsNodeAlone) {
  v1::MakeJoinTokenRequest asked;
  asked.set_node("node9");
  const auto unknown = client().call<v1::MakeJoinTokenResponse>("MakeJoinToken", asked);
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().text().find("did you mean"), std::string::npos);
  asked.set_node("node1");
  const auto made = client().call<v1::MakeJoinTokenResponse>("MakeJoinToken", asked);
  ASSERT_TRUE(made) << made.error().text();
  const CertificateRequest own = request_certificate().value();
  v1::JoinRequest join;
  join.set_token(made->token());
  join.set_certificate_request("nothing");
  Client nobody = client("");
  // What is wrong with the request uses nothing up.
  EXPECT_FALSE(nobody.call<v1::JoinResponse>("Join", join));
  join.set_certificate_request(own.request);
  const auto joined = nobody.call<v1::JoinResponse>("Join", join);
  ASSERT_TRUE(joined) << joined.error().text();
  EXPECT_EQ(joined->node(), "node1");
  const std::string& authority = serving_->authority.certificate;
  EXPECT_EQ(agent_hears({{joined->certificate(), own.key}, authority}, "node1"), "welcome");
  const auto again = nobody.call<v1::JoinResponse>("Join", join);
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().text().find("lets nobody join"), std::string::npos);
}

TEST_F(ServerTest, AUserComesAndGoesAndKeepsToItsTenant) {
  v1::AddUserRequest asked;
  asked.set_name("ada");
  asked.set_role("user");
  asked.set_tenant("lab");
  const auto added = client().call<v1::AddUserResponse>("AddUser", asked);
  ASSERT_TRUE(added) << added.error().text();
  EXPECT_FALSE(client().call<v1::AddUserResponse>("AddUser", asked)) << "twice";
  Client ada = client(added->token());
  v1::CancelJobRequest cancel;
  cancel.set_id(submit());
  const auto cancelled = ada.call<v1::CancelJobResponse>("CancelJob", cancel);
  ASSERT_FALSE(cancelled);
  EXPECT_NE(cancelled.error().text().find("may cancel in \"lab\""), std::string::npos);
  v1::SubmitJobRequest work;
  work.set_spec(std::string(kJob) + "tenant: other\n");
  const auto other = ada.call<v1::SubmitJobResponse>("SubmitJob", work);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().text().find("expected \"lab\""), std::string::npos);
  v1::RemoveUserRequest remove;
  remove.set_name("ada");
  EXPECT_TRUE(client().call<v1::RemoveUserResponse>("RemoveUser", remove));
  EXPECT_NE(ada.call<v1::Job>("GetJob", v1::GetJobRequest()).error().text().find("no token"),
            std::string::npos);
  remove.set_name("admin");
  EXPECT_FALSE(client().call<v1::RemoveUserResponse>("RemoveUser", remove)) << "the last admin";
}

TEST_F(ServerTest, EveryChangeIsInTheAuditLogWithoutWhatIsSecret) {
  (void)submit();
  v1::CancelJobRequest cancel;
  cancel.set_id(99);
  EXPECT_FALSE(client("user").call<v1::CancelJobResponse>("CancelJob", cancel));
  (void)ask("GET /v1/jobs");
  std::ifstream lines(directory_ + "/audit.log");
  std::string submitted, refused, more;
  ASSERT_TRUE(std::getline(lines, submitted) && std::getline(lines, refused));
  EXPECT_FALSE(std::getline(lines, more)) << more;
  EXPECT_NE(submitted.find(R"("caller":"admin","code":0,"method":"SubmitJob")"), std::string::npos)
      << submitted;
  EXPECT_NE(submitted.find(sha256_text(kJob)), std::string::npos) << submitted;
  EXPECT_EQ(submitted.find("kind: Batch"), std::string::npos) << submitted;
  EXPECT_NE(refused.find(R"("caller":"user","code":5,"message":"no job 99")"), std::string::npos)
      << refused;
}

TEST_F(ServerTest, AJobIsTheSameByBothWays) {
  const std::uint64_t id = submit();
  EXPECT_EQ(submit(), id);
  v1::GetJobRequest asked;
  asked.set_id(id);
  const auto job = client().call<v1::Job>("GetJob", asked);
  ASSERT_TRUE(job) << job.error().text();
  EXPECT_EQ(job->phase(), "queued");
  EXPECT_EQ(job->spec(), kJob);
  const std::string shown = ask("GET /v1/jobs/" + std::to_string(id));
  EXPECT_NE(shown.find("\"phase\":\"queued\""), std::string::npos) << shown;
  EXPECT_NE(ask("GET /v1/jobs?page_size=1").find("\"name\":\"one\""), std::string::npos);
}

TEST_F(ServerTest, CallersWhoCountTheirRequestsAlikeMeanTwoJobs) {
  v1::SubmitJobRequest asked;
  asked.set_request_id("1");
  asked.set_spec(kJob);
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

/// An agent that listens to nobody.
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
    controller.open_session(opening, session);
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
  const std::string node = ask("GET /v1/nodes/node1");
  EXPECT_NE(node.find("\"power_w\":300.5"), std::string::npos) << node;
  EXPECT_NE(node.find("\"unwell\":\"worn\""), std::string::npos);
  EXPECT_NE(node.find("\"reading_at\""), std::string::npos);
  serving_->run([&](Controller& controller) { controller.close_session(session); });
  EXPECT_EQ(ask("GET /metrics", "viewer").find("orrery_node_cpu_busy_ratio{"), std::string::npos);
}

TEST_F(ServerTest, TellsOfItselfAndEndsStreamsWhenAJobEnds) {
  EXPECT_NE(ask("GET /healthz").find("ok"), std::string::npos);
  EXPECT_NE(ask("GET /metrics", "viewer").find("orrery_jobs{phase=\"queued\"} 0"),
            std::string::npos);
  EXPECT_NE(ask("GET /openapi.json", "").find("\"/v1/jobs/{id}:cancel\""), std::string::npos);
  const std::uint64_t id = submit();
  std::thread canceller([&] {
    // Once somebody watches.
    for (bool watched = false; !watched;) {
      serving_->run([&](Controller& controller) { watched = controller.watched(); });
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

}  // namespace
}  // namespace orrery

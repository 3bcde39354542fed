// api/serving_test.hpp - a controller that serves in another thread, and its clients, for tests.
#pragma once

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

#include "api/access/access_service.hpp"
#include "api/access/audit_log.hpp"
#include "api/access/authorization.hpp"
#include "api/agents/agent_channel.hpp"
#include "api/grpc/client.hpp"
#include "api/grpc/counted_calls.hpp"
#include "api/grpc/open_calls.hpp"
#include "api/grpc/server.hpp"
#include "api/hold_service.hpp"
#include "api/http/http_routes.hpp"
#include "api/http/http_server.hpp"
#include "api/orrery_service.hpp"
#include "api/renewal/certificate_call.hpp"
#include "api/services/service_methods.hpp"
#include "api/standby/standby_service.hpp"
#include "api/store_service.hpp"
#include "api/views.hpp"
#include "base/system/real_clock.hpp"
#include "base/system/real_env.hpp"
#include "executor/lab_test.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {

inline constexpr const char* kSubmittedJob =
    "apiVersion: orrery/v1\nkind: Batch\nname: one\nroles: [{accelerators: 1}]\n"
    "launch: {command: [\"true\"]}\n";
inline constexpr const char* kRoleNames[] = {"nobody", "client",   "viewer",
                                             "user",   "operator", "admin"};

struct ServingOptions {
  std::string tenants = {};  ///< a Tenants file; empty: there is none
  ControllerSettings settings = {};
  enum class Lead : std::uint8_t { kAtOnce, kLater } lead = Lead::kAtOnce;
};

/// A controller with both servers, set up as orreryd does; everything lives in its own thread.
class Serving {
 public:
  explicit Serving(std::string directory, ServingOptions options = {})
      : directory_(std::move(directory)), options_(std::move(options)) {
    std::promise<void> ready;
    thread_ = std::thread([this, &ready] { serve(ready); });
    ready.get_future().wait();
  }
  ~Serving() {
    loop_->env().post([this] { loop_->stop(); });
    thread_.join();
  }

  /// What a standby that serves says of itself.
  static StandbyProgress progress() {
    return {.leader = "10.0.0.7:70 10.0.0.7:71",
            .term = 5,
            .batch = 812,
            .behind_batches = 3,
            .behind = Duration::milliseconds(1500)};
  }

  /// Runs a function in the controller's thread, for tests that inspect it.
  void run(const std::function<void(Controller&)>& what) {
    std::promise<void> done;
    loop_->env().post([&] {
      what(*controller_);
      done.set_value();
    });
    done.get_future().wait();
  }

  /// Runs a function for callers that are on the controller's loop already.
  void run_here(const std::function<void(Controller&)>& what) { what(*controller_); }
  /// Runs on the controller's loop, later. Any thread.
  void post(std::function<void()> what) { loop_->env().post(std::move(what)); }
  /// Lets the loop do what it has to do, `count` times over.
  void turn(int count) {
    for (int i = 0; i < count; ++i) run([](Controller&) {});
  }

  std::function<void()> lead;                             ///< called on the loop
  std::function<void(const std::string& leader)> follow;  ///< called on the loop
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
        Controller::open(
            real->env(), Log(sink),
            {.directory = directory_,
             .setup = lab_setup(options_.tenants),
             .facts = lab_facts(),
             .settings = options_.settings,
             .archived_form =
                 [](const EndedJob& job) { return ended_job_view(job).SerializeAsString(); },
             .failed = [](const Error& error) { FAIL() << error.text(); }})
            .value();
    controller_ = controller.get();
    const auto tokens = TokenBook::open(real->env(), directory_).value();
    authority = open_authority(real->env(), directory_).value();
    JoinBook joins = JoinBook::open(real->env(), directory_).value();
    const auto audit = AuditLog::open(real->env(), Log(sink), directory_).value();
    MethodTable table = orrery_methods(*controller, real->env());
    add_access_methods(table, *controller, real->env(), {*tokens, joins, authority});
    add_store_methods(table, *controller);
    add_fleet_methods(table, *controller);
    add_hold_methods(table, *controller);
    add_service_methods(table, *controller, real->env(), *tokens);
    add_controller_method(table, *controller);
    OpenCalls calls(real->env(), *tokens);
    methods = calls.watched(counted(audited(authorized(table, *controller), *audit, *controller),
                                    controller->counts()));
    const ServerTls tls = certify_server(authority, {}, real->env().clock.now_wall()).value();
    const MethodTable standing = standby_methods(progress);
    const auto server = Server::start(real->env(), {.tls = &tls, .standby = &standing}).value();
    const auto rest = HttpServer::start(real->env(), {.tls = &tls, .standby = progress}).value();
    lead = [&] {
      server->lead({*controller, methods, *tokens});
      rest->lead({*controller, methods, *tokens});
    };
    follow = [&](const std::string& leader) {
      server->follow(leader);
      rest->follow(leader);
    };
    if (options_.lead == ServingOptions::Lead::kAtOnce) lead();
    grpc = server->address();
    http = rest->address();
    ready.set_value();
    real->run();
  }

  std::string directory_;
  ServingOptions options_;
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

/// A TLS connection to a server whose certificate is of the authority and for this address.
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
  /// Returns empty at the end.
  [[nodiscard]] std::string receive() {
    char block[4096];
    const int got = BIO_read(stream_.get(), block, sizeof block);
    return {block, static_cast<std::size_t>(std::max(got, 0))};
  }

 private:
  std::unique_ptr<SSL_CTX, Freed<&SSL_CTX_free>> context_;
  std::unique_ptr<BIO, Freed<&BIO_free_all>> stream_;
};

/// Records an agent's first event.
class FirstWord final : public ChannelEvents {
 public:
  void on_welcome(const AgentWelcome&) override { heard = "welcome"; }
  void on_order(const NodeOrder&) override {}
  void on_log_question(const AttemptLogQuestion&) override {}
  void on_burn_in() override {}
  void on_command(const AttemptExecOpen&) override {}
  void on_command_input(const ExecInput&) override {}
  void on_lost(const Error& why) override {
    if (heard.empty()) heard = "lost: " + why.message;
  }
  std::string heard;
};

/// Makes an agent's identity by this authority, for this node, issued so many days ago.
inline AgentTls agent_tls(const TlsIdentity& authority, const std::string& node,
                          std::int64_t days = 0) {
  const CertificateRequest request = request_certificate().value();
  const Instant made = RealClock().now_wall() - Duration::hours(24) * days;
  return {{certify_node(authority, {node, request.request}, made).value(), request.key},
          authority.certificate};
}

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override { serve({}); }
  /// Every role has a token of its name; `users` are further lines of the tokens file.
  void serve(const ServingOptions& options, const std::string& users = "") {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_api_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    std::ofstream tokens(directory_ + "/tokens");
    for (const char* role : kRoleNames) {
      if (std::string_view(role) == "nobody") continue;
      tokens << role << " " << role << " " << sha256_text(role) << "\n";
    }
    tokens << users;
    tokens.close();
    serving_ = std::make_unique<Serving>(directory_, options);
  }
  void TearDown() override {
    serving_.reset();
    std::filesystem::remove_all(directory_);
  }

  [[nodiscard]] Client client(const std::string& token = "admin") const {
    return Client({.addresses = {serving_->grpc},
                   .authority = serving_->authority.certificate,
                   .token = token,
                   .retry = Duration::seconds(5)});
  }
  [[nodiscard]] std::uint64_t submit(const std::string& request = "r") {
    v1::SubmitJobRequest asked;
    asked.set_request_id(request);
    asked.set_spec(kSubmittedJob);
    const auto answer = client().call<v1::SubmitJobResponse>("SubmitJob", asked);
    EXPECT_TRUE(answer) << answer.error().text();
    return answer ? answer->id() : 0;
  }

  /// Returns the whole answer, or, for a stream, the part before `until`.
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

  /// Returns the first event of an agent with these certificates that opens as `node`.
  [[nodiscard]] std::string agent_hears(const AgentTls& tls, const std::string& node) const {
    const auto real = RealEnv::create().value();
    FirstWord first;
    AgentChannel channel(real->env().inbox, {.controller = serving_->grpc, .tls = tls});
    channel.open(opening(node), first);
    real->run_until([&] { return !first.heard.empty(); });
    return first.heard;
  }
  [[nodiscard]] static AgentOpening opening(const std::string& node) {
    return {.node = node,
            .address = "127.0.0.1",
            .boot = 7,
            .incarnation = 1,
            .version = "test",
            .inventory = {.accelerator = "h100", .accelerators = 8}};
  }
  /// Returns the answer to an agent with these certificates that asks to renew its certificate.
  [[nodiscard]] Result<std::string> renew(const AgentTls& tls) const {
    const auto real = RealEnv::create().value();
    std::optional<Result<std::string>> heard;
    const CertificateCall call(real->env().inbox, {.controllers = {serving_->grpc}, .tls = tls},
                               request_renewal(tls.identity.key).value(),
                               [&](const Result<std::string>& answer) { heard = answer; });
    real->run_until([&] { return heard.has_value(); });
    return *heard;
  }

  std::string directory_;
  std::unique_ptr<Serving> serving_;
};

}  // namespace orrery

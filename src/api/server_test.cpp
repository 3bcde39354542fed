// A controller that serves in another thread, called as clients do: over gRPC and over HTTP.
#include "api/server.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "api/client.hpp"
#include "api/http_routes.hpp"
#include "api/http_server.hpp"
#include "api/orrery_service.hpp"
#include "base/file_descriptor.hpp"
#include "base/real_env.hpp"
#include "hardware/builtin_catalog.hpp"
#include "orrery/v1/orrery.pb.h"
#include "perf/builtin_calibration.hpp"
#include "workload/builtin_models.hpp"

namespace orrery {
namespace {

constexpr const char* kFleet = R"(apiVersion: orrery/v1
kind: Fleet
name: local
sites:
- name: here
  halls:
  - name: hall
    pods:
    - name: pod
      racks:
      - nodes: [{type: dgx-h100, count: 2, names: "node[0-1]"}]
)";
constexpr const char* kJob =
    "apiVersion: orrery/v1\nkind: Batch\nname: one\nroles: [{accelerators: 1}]\n"
    "launch: {command: [\"true\"]}\n";
constexpr const char* kRoles[] = {"nobody", "agent", "viewer", "user", "operator", "admin"};

class Silent final : public LogSink {
 public:
  void write_line(std::string_view) override {}
};

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

 private:
  void serve(std::promise<void>& ready) {
    const auto real = RealEnv::create().value();
    loop_ = real.get();
    Silent sink;
    const Catalog catalog = Catalog::load(builtin_catalog(), "").value();
    const Calibration calibration = Calibration::load(builtin_calibration(), {}).value();
    const ModelCatalog models = ModelCatalog::load(builtin_models(), {}).value();
    const auto controller =
        Controller::open(real->env(), Log(sink),
                         {.directory = directory_,
                          .setup = {.fleet = kFleet,
                                    .tenants = {},
                                    .policy = "apiVersion: orrery/v1\nkind: Policy\nname: fifo\n",
                                    .begin = {},
                                    .writer = "test"},
                          .facts = {catalog, calibration, models},
                          .failed = [](const Error& error) { FAIL() << error.text(); }})
            .value();
    controller_ = controller.get();
    methods = orrery_methods(*controller, real->env());
    const TokenBook tokens = TokenBook::open(real->env(), directory_).value();
    const auto server =
        Server::start(real->env(), *controller, {.methods = &methods, .tokens = &tokens}).value();
    const auto rest =
        HttpServer::start(real->env(), *controller, {.methods = &methods, .tokens = &tokens})
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
    return Client({.address = serving_->grpc, .token = token, .retry = Duration::seconds(5)});
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
    const std::size_t colon = serving_->http.rfind(':');
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(std::stoi(serving_->http.substr(colon + 1))));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    std::size_t sent = 0;
    while (sent < request.size()) {
      const ssize_t now =
          ::send(socket.get(), request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      if (now <= 0) break;
      sent += static_cast<std::size_t>(now);
    }
    std::string answer;
    char block[4096];
    while (until.empty() || answer.find(until) == std::string::npos) {
      const ssize_t got = ::recv(socket.get(), block, sizeof block, 0);
      if (got <= 0) break;
      answer.append(block, static_cast<std::size_t>(got));
    }
    return answer;
  }
  [[nodiscard]] std::string ask(const std::string& line, const std::string& token = "admin",
                                const std::string& body = "") const {
    return http(line + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " +
                token + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }

  std::string directory_;
  std::unique_ptr<Serving> serving_;
};

TEST_F(ServerTest, EveryMethodRefusesThoseWhoMayNotCallIt) {
  for (std::size_t role = 0; role < std::size(kRoles); ++role) {
    Client caller = client(kRoles[role]);
    for (const auto& [name, method] : serving_->methods.all()) {
      const bool may = static_cast<std::size_t>(method.role) <= role;
      if (may) continue;
      const auto answer = caller.call<v1::CancelJobResponse>(name, *method.request());
      ASSERT_FALSE(answer) << kRoles[role] << " called " << name;
      const std::string why = role == 0 ? "no token" : "may not call";
      EXPECT_NE(answer.error().text().find(why), std::string::npos) << answer.error().text();
    }
    for (const HttpRoute& route : http_routes()) {
      const Method& method = *serving_->methods.find(route.method);
      if (static_cast<std::size_t>(method.role) <= role) continue;
      std::string path(route.path);
      if (const std::size_t at = path.find("{id}"); at != std::string::npos)
        path.replace(at, 4, "0");
      const std::string answer = ask(std::string(route.verb) + " " + path, kRoles[role]);
      EXPECT_TRUE(answer.starts_with(role == 0 ? "HTTP/1.1 401" : "HTTP/1.1 403"))
          << kRoles[role] << " " << path << ": " << answer;
    }
  }
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

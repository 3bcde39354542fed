#include "api/http/http_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <netinet/in.h>

#include <atomic>
#include <mutex>
#include <set>

#include "api/access/token_book.hpp"
#include "api/grpc/controller_route.hpp"
#include "api/http/http_exchange.hpp"
#include "api/http/http_routes.hpp"
#include "api/http/metrics.hpp"
#include "base/system/socket_address.hpp"

namespace orrery {
namespace {

constexpr std::size_t kBodyMax = std::size_t{4} << 20;
constexpr unsigned int kConnectionsMax = 16'384;
constexpr unsigned int kIdleSeconds = 60;
constexpr std::size_t kConnectionBytes = 16 << 10;
/// In the syntax of GnuTLS.
constexpr const char* kProtocols = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
constexpr Duration kComment = Duration::seconds(15);
constexpr const char* kMetricsType = "text/plain; version=0.0.4";

using ExchangePtr = std::shared_ptr<HttpExchange>;

/// Encodes what RFC 3986 does not leave as it is in a URL, and leaves the characters of `also`.
std::string url_part(std::string_view text, std::string_view also = "") {
  constexpr std::string_view kUnreserved = "-._~";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char each : text) {
    const bool plain = (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
                       (each >= '0' && each <= '9') || kUnreserved.find(each) != kUnreserved.npos ||
                       also.find(each) != also.npos;
    if (plain) {
      encoded.push_back(each);
    } else {
      fmt::format_to(std::back_inserter(encoded), "%{:02X}", static_cast<unsigned char>(each));
    }
  }
  return encoded;
}

class HttpCall final : public Call {
 public:
  HttpCall(const Env& env, ExchangePtr exchange, Caller caller)
      : env_(env), exchange_(std::move(exchange)), caller_(std::move(caller)) {}

  void send(const google::protobuf::Message& message) override {
    exchange_->put(message_json(message));
  }
  void open() override { exchange_->open(); }
  void when_taken(std::function<void()> ready) override {
    exchange_->when_taken([env = env_, ready = std::move(ready)] { env.post(ready); });
  }
  void receive(Received received) override {
    env_.post([received = std::move(received)] { received(nullptr); });
  }
  void when_gone(std::function<void()>) override {}
  void finish(const CallStatus& status) override { exchange_->end(status); }
  [[nodiscard]] bool wanted() const override { return exchange_->wanted(); }
  [[nodiscard]] const Caller& caller() const override { return caller_; }

 private:
  Env env_;
  ExchangePtr exchange_;
  Caller caller_;
};

class MicroHttpServer final : public HttpServer {
 public:
  MicroHttpServer(const Env& env, AskProgress standby) : env_(env), standby_(std::move(standby)) {}
  ~MicroHttpServer() override;

  [[nodiscard]] Status listen(const HttpServerOptions& options);
  void lead(const Served& served) override;
  void follow(const std::string& leader) override {
    const std::scoped_lock lock(mutex_);
    leader_ = leader;
  }
  [[nodiscard]] const std::string& address() const override { return address_; }

 private:
  /// What it serves, and the description of that.
  struct Leading {
    Served served;
    std::string open_api;
  };
  static MHD_Result on_request(void* server, MHD_Connection* connection, const char* path,
                               const char* verb, const char*, const char* bytes, std::size_t* size,
                               void** exchange);
  static void on_end(void* server, MHD_Connection*, void** exchange, MHD_RequestTerminationCode);

  void handle(const ExchangePtr& exchange, MHD_Connection* connection);
  using Known = tl::expected<Caller, CallStatus>;
  [[nodiscard]] bool handle_plain(const Leading& leading, const ExchangePtr& exchange,
                                  const Known& caller);
  void begin(const Leading& leading, const ExchangePtr& exchange, const Known& caller);
  void answer_as_standby(const ExchangePtr& exchange);
  /// Returns false where the path is none that a standby answers.
  [[nodiscard]] bool answer_of_standby(const ExchangePtr& exchange, const std::string& leader);
  void put_metrics(Controller& controller, const ExchangePtr& exchange, const Known& caller);
  void comment_soon();
  void forget(const ExchangePtr& exchange) {
    const std::scoped_lock lock(mutex_);
    exchanges_.erase(exchange);
  }

  Env env_;
  const AskProgress standby_;  ///< called on the loop; may be empty
  std::unique_ptr<const Leading> leading_;
  std::atomic<const Leading*> leads_ = nullptr;  ///< nullptr: the controller does not lead
  std::string address_;
  MHD_Daemon* daemon_ = nullptr;
  std::mutex mutex_;
  std::set<ExchangePtr> exchanges_;  ///< guarded; that are not over
  std::string leader_;               ///< guarded
  std::optional<TimerId> timer_;
};

MicroHttpServer::~MicroHttpServer() {
  if (timer_) env_.timers.cancel(*timer_);
  {
    // The server must not be stopped while a connection waits.
    const std::scoped_lock lock(mutex_);
    for (const ExchangePtr& each : exchanges_) {
      each->end({CallCode::kUnavailable, "the controller ends"});
    }
  }
  if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
}

Status MicroHttpServer::listen(const HttpServerOptions& options) {
  const std::string& address = options.address;
  const TlsIdentity& identity = options.tls->identity;
  const Result<SocketAddress> parsed = SocketAddress::parse("tcp:" + address);
  if (!parsed) return tl::unexpected(parsed.error());
  daemon_ = MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TLS |
          (parsed->family() == AF_INET6 ? MHD_USE_IPv6 : MHD_NO_FLAG),
      0, nullptr, nullptr, &on_request, this, MHD_OPTION_SOCK_ADDR, parsed->get(),
      MHD_OPTION_NOTIFY_COMPLETED, &on_end, this, MHD_OPTION_CONNECTION_LIMIT, kConnectionsMax,
      MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
      kConnectionBytes, MHD_OPTION_HTTPS_MEM_KEY, identity.key.c_str(), MHD_OPTION_HTTPS_MEM_CERT,
      identity.certificate.c_str(), MHD_OPTION_HTTPS_PRIORITIES, kProtocols, MHD_OPTION_END);
  if (daemon_ == nullptr) {
    return environment_error(fmt::format("cannot listen at {}: is it in use?", address));
  }
  const MHD_DaemonInfo* info = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_BIND_PORT);
  address_ = address.substr(0, address.rfind(':') + 1) + std::to_string(info->port);
  comment_soon();
  return {};
}

/// A waiting connection is not polled, so only a write shows that its client has gone.
void MicroHttpServer::comment_soon() {
  timer_ = env_.timers.call_after(kComment, [this] {
    {
      const std::scoped_lock lock(mutex_);
      for (const ExchangePtr& each : exchanges_) each->put_comment();
    }
    comment_soon();
  });
}

void MicroHttpServer::lead(const Served& served) {
  leading_ = std::make_unique<const Leading>(Leading{served, open_api_json(served.methods)});
  leads_ = leading_.get();
}

/// Returns the user of the token; without one, a caller of kNobody.
tl::expected<Caller, CallStatus> caller_of(MHD_Connection* connection, const TokenBook& tokens) {
  const char* value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
  constexpr std::string_view kBearer = "Bearer ";
  if (value == nullptr || !std::string_view(value).starts_with(kBearer)) return tokens.caller("");
  return tokens.caller(std::string_view(value).substr(kBearer.size()));
}

bool MicroHttpServer::answer_of_standby(const ExchangePtr& exchange, const std::string& leader) {
  const HttpRequest& request = exchange->request;
  const bool health = request.path == "/healthz";
  const bool metrics = request.path == "/metrics" && standby_;
  if (request.verb != "GET" || (!health && !metrics)) return false;
  env_.post([this, exchange, health, leader] {
    const StandbyProgress progress = standby_ ? standby_() : StandbyProgress();
    if (health) {
      exchange->put_text("text/plain", standby_health(progress, leader));
    } else {
      exchange->put_text(kMetricsType, metrics_text(progress));
    }
    exchange->end({});
  });
  return true;
}

void MicroHttpServer::answer_as_standby(const ExchangePtr& exchange) {
  std::string leader;
  {
    const std::scoped_lock lock(mutex_);
    leader = leader_;
  }
  if (answer_of_standby(exchange, leader)) return;
  if (leader.empty()) {
    return exchange->end(
        {CallCode::kUnavailable, fmt::format("{}; no leader is known", kStandbyText)});
  }
  const HttpRequest& request = exchange->request;
  std::string url = fmt::format("https://{}{}", leader, url_part(request.path, "/"));
  char mark = '?';
  for (const auto& [key, value] : request.query) {
    fmt::format_to(std::back_inserter(url), "{}{}={}", mark, url_part(key), url_part(value));
    mark = '&';
  }
  exchange->redirect(std::move(url));
}

MHD_Result MicroHttpServer::on_request(void* server, MHD_Connection* connection, const char* path,
                                       const char* verb, const char*, const char* bytes,
                                       std::size_t* size, void** exchange) {
  if (*exchange == nullptr) {
    auto* made = new ExchangePtr(std::make_shared<HttpExchange>(connection));
    *exchange = made;
    (*made)->request.verb = verb;
    (*made)->request.path = path;
    return MHD_YES;
  }
  const ExchangePtr& its = *static_cast<ExchangePtr*>(*exchange);
  if (*size > 0) {
    its->too_large = its->too_large || its->request.body.size() + *size > kBodyMax;
    if (!its->too_large) its->request.body.append(bytes, *size);
    *size = 0;
    return MHD_YES;
  }
  if (its->answered()) return MHD_YES;
  if (its->ready()) return its->answer(its);
  static_cast<MicroHttpServer*>(server)->handle(its, connection);
  return MHD_YES;
}

void MicroHttpServer::on_end(void* server, MHD_Connection*, void** exchange,
                             MHD_RequestTerminationCode) {
  if (*exchange == nullptr) return;
  const auto* its = static_cast<ExchangePtr*>(*exchange);
  (*its)->close();
  static_cast<MicroHttpServer*>(server)->forget(*its);
  delete its;
}

/// Decides what can be decided on this thread, and posts the rest. The connection waits in any
/// case, and is answered at its next turn.
void MicroHttpServer::handle(const ExchangePtr& exchange, MHD_Connection* connection) {
  const auto add_query = [](void* query, MHD_ValueKind, const char* key, const char* value) {
    auto& values = *static_cast<std::map<std::string, std::string>*>(query);
    values[key] = value == nullptr ? "" : value;
    return MHD_YES;
  };
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_query, &exchange->request.query);
  {
    const std::scoped_lock lock(mutex_);
    exchanges_.insert(exchange);
  }
  exchange->wait();
  const Leading* leading = leads_;
  if (leading == nullptr) return answer_as_standby(exchange);
  const Known caller = caller_of(connection, leading->served.tokens);
  if (exchange->too_large) {
    return exchange->end(
        {CallCode::kInvalidArgument, fmt::format("the body is larger than {} bytes", kBodyMax)});
  }
  if (handle_plain(*leading, exchange, caller)) return;
  begin(*leading, exchange, caller);
}

bool MicroHttpServer::handle_plain(const Leading& leading, const ExchangePtr& exchange,
                                   const Known& caller) {
  Controller& controller = leading.served.controller;
  const std::string& path = exchange->request.path;
  if (exchange->request.verb != "GET") return false;
  if (path == "/openapi.json") {
    exchange->put_text("application/json", leading.open_api);
    exchange->end({});
    return true;
  }
  if (path == "/healthz") {
    // The loop answers, because its state decides the answer.
    env_.post([&controller, exchange] {
      if (std::string why = controller.host().halted(); !why.empty()) {
        return exchange->end({CallCode::kUnavailable, std::move(why)});
      }
      if (std::string why = controller.store().log().silence(); !why.empty()) {
        return exchange->end({CallCode::kUnavailable, std::move(why)});
      }
      const bool full = controller.store().disk().room() == DiskRoom::kLow;
      exchange->put_text(
          "text/plain",
          full ? "ok, but the log's disk is full: submissions are refused\n" : "ok\n");
      exchange->end({});
    });
    return true;
  }
  if (path != "/metrics") return false;
  put_metrics(controller, exchange, caller);
  return true;
}

/// Sends metrics of the whole cluster, with figures of every tenant.
void MicroHttpServer::put_metrics(Controller& controller, const ExchangePtr& exchange,
                                  const Known& caller) {
  if (!caller) return exchange->end(caller.error());
  if (caller->role < Role::kViewer) {
    return exchange->end({CallCode::kPermissionDenied,
                          fmt::format("\"{}\" may not read /metrics: its role is {}, expected "
                                      "viewer or above",
                                      caller->name, role_word(caller->role))});
  }
  if (!caller->tenant.empty()) {
    return exchange->end(
        {CallCode::kPermissionDenied,
         fmt::format("\"{}\" may not read /metrics: it has the tenant \"{}\", and they are of all "
                     "tenants",
                     caller->name, caller->tenant)});
  }
  env_.post([&controller, exchange] {
    exchange->put_text(kMetricsType, metrics_text(controller));
    exchange->end({});
  });
}

/// Begins the call; the method decides whether the caller may (api/access/authorization.hpp).
void MicroHttpServer::begin(const Leading& leading, const ExchangePtr& exchange,
                            const Known& caller) {
  if (!caller) return exchange->end(caller.error());
  const HttpRequest& request = exchange->request;
  const HttpRoute* route = find_route(request);
  if (route == nullptr) {
    return exchange->end(
        {CallCode::kNotFound, fmt::format("there is nothing at {} {}; /openapi.json says what is",
                                          request.verb, request.path)});
  }
  const Method& method = *leading.served.methods.find(route->method);
  const Result<std::shared_ptr<google::protobuf::Message>> message =
      message_of(*route, request, method);
  if (!message) return exchange->end({CallCode::kInvalidArgument, message.error().text()});
  env_.post([this, exchange, caller = *caller, route, &method, message = *message] {
    if (!exchange->wanted()) return;
    if (route->stream) exchange->stream_events();
    method.handle(*message, std::make_shared<HttpCall>(env_, exchange, caller));
  });
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(const Env& env,
                                                      const HttpServerOptions& options) {
  auto server = std::make_unique<MicroHttpServer>(env, options.standby);
  if (Status listening = server->listen(options); !listening) {
    return forward_error(listening);
  }
  return server;
}

}  // namespace orrery

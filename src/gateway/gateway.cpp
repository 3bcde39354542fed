#include "gateway/gateway.hpp"

#include <array>
#include <utility>

#include "gateway/caches/cache_events.hpp"
#include "gateway/canary/feedback.hpp"
#include "gateway/error_answer.hpp"
#include "gateway/gateway_call.hpp"
#include "gateway/gateway_core.hpp"
#include "gateway/gateway_pages.hpp"
#include "gateway/peers/peer_link.hpp"
#include "gateway/picker/picker.hpp"
#include "gateway/request_facts.hpp"

namespace orrery {
namespace {

constexpr std::string_view kJson = "application/json";

ErrorAnswer without_key() {
  return {.status = 401,
          .message = "A valid key is needed: Authorization: Bearer KEY.",
          .type = "invalid_request_error",
          .code = "invalid_api_key"};
}

ErrorAnswer unknown_path(const WebRequest& request) {
  return {.status = 404,
          .message = fmt::format("Unknown request: {} {}", request.method, request.path()),
          .type = "invalid_request_error",
          .code = "unknown_url"};
}

bool calls_a_model(std::string_view path) {
  return path == "/v1/chat/completions" || path == "/v1/completions" || path == "/v1/embeddings";
}

/// A client's own id of its request, where it may stand in a header and a log.
std::optional<std::string_view> id_of_client(const WebRequest& request) {
  constexpr std::size_t kIdMax = 128;
  const auto id = request.headers.find("x-request-id");
  if (!id || id->empty() || id->size() > kIdMax) return std::nullopt;
  for (const char c : *id) {
    if (c <= ' ' || c > '~') return std::nullopt;
  }
  return id;
}

class HttpGateway final : public Gateway, public WebHandler {
 public:
  HttpGateway(RealEnv& env, const Log& log, const GatewayOptions& options)
      : core_(env, log, options) {}

  Status listen(RealLoop& loop, WebServerOptions options) {
    options.error_body = &error_json_of;
    Result<std::unique_ptr<WebServer>> server = WebServer::listen(loop, options, *this);
    if (!server) return forward_error(server);
    server_ = *std::move(server);
    Result<std::unique_ptr<PeerLink>> peers = PeerLink::open(core_, peer_address());
    if (!peers) return forward_error(peers);
    peers_ = *std::move(peers);
    if (!core_.options().tokenizers.empty()) caches_ = std::make_unique<CacheEvents>(core_);
    if (core_.options().picker.address.empty()) return {};
    Result<std::unique_ptr<Picker>> picker = Picker::start(loop, core_);
    if (!picker) return forward_error(picker);
    picker_ = *std::move(picker);
    return {};
  }

  void export_spans(SpanReceiver receiver) { core_.export_spans(std::move(receiver)); }

  const std::string& address() const override { return server_->address(); }
  std::string picker_address() const override { return picker_ ? picker_->address() : ""; }
  void set_table(RouteTable table) override {
    core_.set_table(std::move(table));
    peers_->set_table(core_.table());
    if (caches_) caches_->set_table(core_.table());
    if (picker_) picker_->look();
  }
  const RouteTable& table() const override { return core_.table(); }
  GatewayReport report() const override {
    GatewayReport report = report_of(core_);
    if (report.url.empty()) report.url = "http://" + address();
    report.process = peers_->process();
    report.peer_address = peers_->address();
    return report;
  }
  std::size_t calls() const override {
    return core_.calls() + (picker_ ? picker_->calls() : std::size_t{0});
  }
  void stop(Callback stopped) override {
    if (!picker_) return server_->stop(std::move(stopped));
    server_->stop(
        [this, stopped = std::move(stopped)]() mutable { picker_->stop(std::move(stopped)); });
    picker_->refuse();
  }

  void on_request(WebExchange exchange) override {
    const WebRequest& request = exchange.request();
    const std::string_view path = request.path();
    constexpr std::string_view kExplain = "/explain/";
    constexpr std::string_view kModel = "/v1/models/";
    if (request.method == "POST" && calls_a_model(path)) {
      call_model(std::move(exchange));
    } else if (request.method == "POST" && path == "/v1/feedback") {
      take_feedback(exchange);
    } else if (request.method != "GET") {
      refuse(exchange, unknown_path(request));
    } else if (path == "/v1/models") {
      if (const RoutedKey* key = authorise(exchange)) {
        exchange.respond(200, kJson, models_json(core_, *key));
      }
    } else if (path.starts_with(kModel)) {
      show_model(exchange, decode_query_text(path.substr(kModel.size())));
    } else if (path == "/metrics") {
      exchange.respond(
          200, "text/plain; version=0.0.4",
          metrics_text(core_, peers_->figures(), caches_ ? caches_->figures() : CacheFigures()));
    } else if (path == "/healthz" || path == "/health") {
      exchange.respond(200, kJson,
                       fmt::format(R"({{"status":"ok","epoch":{}}})", core_.table().epoch));
    } else if (path.starts_with(kExplain)) {
      explain(exchange, path.substr(kExplain.size()));
    } else {
      refuse(exchange, unknown_path(request));
    }
  }

 private:
  [[nodiscard]] std::string peer_address() const {
    const GatewayOptions& options = core_.options();
    if (!options.peer_address.empty()) return options.peer_address;
    return options.server.address.substr(0, options.server.address.rfind(':')) + ":0";
  }

  /// The id of a request: its client's own, or a new one.
  std::string id_of(const WebRequest& request) {
    const auto own = id_of_client(request);
    return own ? std::string(*own) : core_.make_request_id();
  }

  void refuse(WebExchange& exchange, const ErrorAnswer& error) {
    const std::string id = id_of(exchange.request());
    const std::array<WebHeader, 2> headers{{{"Content-Type", kJson}, {"x-request-id", id}}};
    exchange.respond(error.status, headers, error_json(error));
  }

  /// The key of the request; null: it is refused.
  const RoutedKey* authorise(WebExchange& exchange) {
    const auto shown = exchange.request().headers.find("authorization");
    const RoutedKey* key = shown ? core_.keys().find(*shown) : nullptr;
    if (key == nullptr) refuse(exchange, without_key());
    return key;
  }

  void explain(WebExchange& exchange, std::string_view request) {
    const RoutedKey* key = authorise(exchange);
    if (key == nullptr) return;
    const std::string json = explain_json(core_, *key, decode_query_text(request));
    if (json.empty()) {
      refuse(exchange, unknown_request());
    } else {
      exchange.respond(200, kJson, json);
    }
  }

  void show_model(WebExchange& exchange, const std::string& model) {
    const RoutedKey* key = authorise(exchange);
    if (key == nullptr) return;
    if (const GatewayService* service = core_.find_service(model, *key)) {
      exchange.respond(200, kJson, model_json(*service));
    } else {
      refuse(exchange, unknown_model(model));
    }
  }

  void take_feedback(WebExchange& exchange) {
    const RoutedKey* key = authorise(exchange);
    if (key == nullptr) return;
    if (const auto wrong = note_feedback(core_, *key, exchange.request().body)) {
      refuse(exchange, *wrong);
    } else {
      exchange.respond(200, kJson, "{}");
    }
  }

  void call_model(WebExchange exchange) {
    const RoutedKey* key = authorise(exchange);
    if (key == nullptr) return;
    auto facts = reader_.read(exchange.request().body);
    if (!facts) {
      refuse(exchange, bad_request(std::move(facts.error().message), facts.error().param));
      return;
    }
    GatewayService* service = core_.find_service(facts->model, *key);
    if (service == nullptr) {
      refuse(exchange, unknown_model(facts->model));
      return;
    }
    // What a tenant may use, and has used, is that of the service which it asks.
    CallerAccount& tenant = service->tenants.of(*key, core_.now());
    ChosenTier tier = core_.tiers().choose(*service, exchange.request());
    if (tier.is_small()) service = &core_.services().at(tier.ticket->small);
    const SpanExport exported = core_.spans() == nullptr ? SpanExport::kOff : SpanExport::kOn;
    GatewayRequest request{.id = id_of(exchange.request()),
                           .service = *service,
                           .tenant = tenant,
                           .facts = *std::move(facts),
                           .trace = CallTrace(exchange.request().headers, exported, core_.draws()),
                           .tier = std::move(tier)};
    auto made = std::make_unique<GatewayCall>(core_, std::move(request), std::move(exchange));
    GatewayCall& call = *made;
    core_.add(std::move(made));
    call.start();
  }

  // Reading the metrics looks at the same state that calls change.
  mutable GatewayCore core_;
  RequestReader reader_;
  std::unique_ptr<WebServer> server_;
  std::unique_ptr<PeerLink> peers_;
  std::unique_ptr<CacheEvents> caches_;  ///< null: no prompt is read as tokens
  std::unique_ptr<Picker> picker_;       ///< null: there is none
};

}  // namespace

Result<std::unique_ptr<Gateway>> Gateway::start(RealEnv& env, const Log& log,
                                                const GatewayOptions& options) {
  auto gateway = std::make_unique<HttpGateway>(env, log, options);
  if (!options.otlp.empty()) {
    Result<SpanReceiver> receiver = read_span_receiver(options.otlp);
    if (!receiver) return forward_error(receiver);
    gateway->export_spans(*std::move(receiver));
  }
  if (Status listening = gateway->listen(env.loop(), options.server); !listening) {
    return forward_error(listening);
  }
  return gateway;
}

}  // namespace orrery

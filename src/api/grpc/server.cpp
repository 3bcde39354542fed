#include "api/grpc/server.hpp"

#include <fmt/format.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <set>

#include "api/agents/agent_messages.hpp"
#include "api/grpc/controller_route.hpp"
#include "api/grpc/grpc_stream.hpp"

namespace orrery {
namespace {

constexpr int kMessageBytesMax = 4 << 20;
constexpr int kKeepaliveMs = 10'000;
constexpr int kKeepalivePatienceMs = 5'000;
/// Limit of calls that wait for the loop.
constexpr std::int64_t kWaitingCallsMax = 10'000;
constexpr auto kShutdownPatience = std::chrono::milliseconds(200);

constexpr std::string_view kService = "/orrery.v1.Orrery/";
constexpr std::string_view kAgents = "/orrery.v1.AgentService/Connect";

/// The peer of a connection, from its certificate.
struct CertifiedPeer {
  std::string node;  ///< empty: it has shown none
  ShownKey key;
};

class GrpcAgent;

/// State that all streams share. It outlives them: the server waits for them.
struct Shared {
  Env env;
  std::atomic<const Served*> served = nullptr;  ///< nullptr: the controller does not lead
  std::atomic<std::int64_t> waiting = 0;
  std::set<GrpcAgent*> warm = {};  ///< agents that a standby has heard; used on the loop alone
};

CallStatus not_of_this_method() {
  return {CallCode::kInvalidArgument, "the message is not of this method"};
}

class GrpcCall final : public Call {
 public:
  GrpcCall(const Env& env, const Method& method, std::shared_ptr<GrpcStream> stream, Caller caller)
      : env_(env), method_(method), stream_(std::move(stream)), caller_(std::move(caller)) {}

  void send(const google::protobuf::Message& message) override { stream_->send(message); }
  void when_taken(std::function<void()> ready) override {
    stream_->when_taken([env = env_, ready = std::move(ready)] { env.post(ready); });
  }
  void receive(Received received) override {
    stream_->receive([env = env_, &method = method_, stream = stream_,
                      received = std::move(received)](const grpc::ByteBuffer* bytes) {
      std::shared_ptr<google::protobuf::Message> message;
      if (bytes != nullptr) {
        message = method.request();
        if (!parse(*bytes, *message)) {
          stream->finish(not_of_this_method());
          message = nullptr;
        }
      }
      env.post([received, message] { received(message.get()); });
    });
  }
  void when_gone(std::function<void()> gone) override {
    stream_->when_gone([env = env_, gone = std::move(gone)] { env.post(gone); });
  }
  void finish(const CallStatus& status) override { stream_->finish(status); }
  [[nodiscard]] bool wanted() const override { return stream_->wanted(); }
  [[nodiscard]] const Caller& caller() const override { return caller_; }

 private:
  Env env_;
  const Method& method_;
  std::shared_ptr<GrpcStream> stream_;
  Caller caller_;
};

class Refusal final : public GrpcReactor {
 public:
  explicit Refusal(const CallStatus& status) { stream_->finish(status); }
};

/// A call of a client: one message, then the answer, or more messages as the method reads them.
class CallReactor final : public GrpcReactor {
 public:
  CallReactor(Shared& shared, const Method& method, Caller caller)
      : shared_(shared), method_(method), caller_(std::move(caller)) {
    stream_->read(bytes_);
  }

  void OnReadDone(bool read) override {
    if (std::exchange(begun_, true)) return read ? stream_->on_read() : stream_->on_read_over();
    std::shared_ptr<google::protobuf::Message> request = method_.request();
    if (!read || !parse(bytes_, *request)) return stream_->finish(not_of_this_method());
    if (shared_.waiting.fetch_add(1) >= kWaitingCallsMax) {
      shared_.waiting.fetch_sub(1);
      return stream_->finish({CallCode::kResourceExhausted, "the controller is overloaded"});
    }
    auto call = std::make_shared<GrpcCall>(shared_.env, method_, stream_, caller_);
    shared_.env.post([&shared = shared_, &method = method_, request, call] {
      shared.waiting.fetch_sub(1);
      if (call->wanted()) method.handle(*request, call);
    });
  }

 private:
  Shared& shared_;
  const Method& method_;
  Caller caller_;
  bool begun_ = false;  ///< the first message has come
};

/// The controller's end of an agent's stream. Made and ended on the loop, but for its first
/// message.
class GrpcAgent final : public AgentSession {
 public:
  GrpcAgent(Shared& shared, std::shared_ptr<GrpcStream> stream, CertifiedPeer certified)
      : shared_(shared), stream_(std::move(stream)), certified_(std::move(certified)) {}

  void send(const ControllerMessage& message) override {
    if (const auto* welcome = std::get_if<AgentWelcome>(&message)) node_ = welcome->node;
    stream_->send(to_proto(message));
  }
  void close(const Error& why) override { stream_->finish(status_of(why)); }
  void replace(const Error& why) override {
    stream_->finish({CallCode::kAlreadyExists, why.text()});
  }

  void take(const AgentMessage& message) {
    if (const auto* opening = std::get_if<AgentOpening>(&message); opening != nullptr && !node_) {
      if (opening->node != certified_.node) {
        return stream_->finish(
            {CallCode::kPermissionDenied,
             fmt::format("a certificate of node \"{}\" opens no stream of \"{}\"", certified_.node,
                         opening->node)});
      }
      AgentOpening whole = *opening;
      whole.key = certified_.key;
      opening_ = std::move(whole);
      begin();
    } else if (node_ && opening == nullptr) {
      shared_.served.load()->controller.receive(*node_, message);
    } else {
      close({ErrorKind::kInput, "an agent opens its stream once, and first", {}});
    }
  }
  /// Opens the session of an agent that has opened its stream, or keeps it for later where the
  /// controller does not lead.
  void begin() {
    const Served* served = shared_.served;
    if (served == nullptr) {
      shared_.warm.insert(this);
    } else {
      served->controller.sessions().open(opening_, *this);
    }
  }
  void end() {
    shared_.warm.erase(this);
    if (const Served* served = shared_.served; served != nullptr) {
      served->controller.sessions().close(*this);
    }
  }

 private:
  Shared& shared_;
  std::shared_ptr<GrpcStream> stream_;
  CertifiedPeer certified_;
  AgentOpening opening_;
  std::optional<NodeId> node_;  ///< once it is welcome
};

/// Sends one message of an agent at a time to the loop, so a slow loop slows the agents.
class AgentReactor final : public GrpcReactor {
 public:
  AgentReactor(Shared& shared, CertifiedPeer certified)
      : shared_(shared),
        agent_(std::make_shared<GrpcAgent>(shared, stream_, std::move(certified))),
        read_(std::make_shared<grpc::ByteBuffer>()) {
    stream_->read(*read_);
  }

  void OnReadDone(bool read) override {
    if (!read) return stream_->finish({});
    v1::AgentMessage bytes;
    if (!parse(*read_, bytes)) return refuse("the message is none of an agent");
    if (bytes.what_case() == v1::AgentMessage::WHAT_NOT_SET) {  // of a newer agent
      return stream_->read(*read_);
    }
    Result<AgentMessage> message = from_proto(bytes);
    if (!message) return refuse(message.error().text());
    shared_.env.post(
        [agent = agent_, stream = stream_, into = read_, message = *std::move(message)] {
          agent->take(message);
          stream->read(*into);
        });
  }
  void OnDone() override {
    shared_.env.post([agent = agent_] { agent->end(); });
    GrpcReactor::OnDone();
  }

 private:
  void refuse(const std::string& why) { stream_->finish({CallCode::kInvalidArgument, why}); }

  Shared& shared_;
  std::shared_ptr<GrpcAgent> agent_;
  std::shared_ptr<grpc::ByteBuffer> read_;
};

class GrpcServer final : public Server, private grpc::CallbackGenericService {
 public:
  GrpcServer(const Env& env, const MethodTable* standby) : shared_{env}, standby_(standby) {}
  ~GrpcServer() override {
    if (server_) server_->Shutdown(std::chrono::system_clock::now() + kShutdownPatience);
  }

  [[nodiscard]] Status listen(const std::string& address, const ServerTls& tls);
  void lead(const Served& served) override;
  void follow(const std::string& leader) override {
    const std::scoped_lock lock(mutex_);
    leader_ = leader;
  }
  [[nodiscard]] const std::string& address() const override { return address_; }

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

 private:
  [[nodiscard]] CallStatus refusal_of_standby(grpc::GenericCallbackServerContext& context) const;
  [[nodiscard]] grpc::ServerGenericBidiReactor* reactor_of_standby(
      grpc::GenericCallbackServerContext& context);

  Shared shared_;
  const MethodTable* standby_;  ///< none: a standby has no methods
  std::optional<Served> served_;
  mutable std::mutex mutex_;
  std::string leader_;  ///< guarded
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

/// Clients show a token, agents a certificate: a certificate that is shown must be valid.
std::shared_ptr<grpc::ServerCredentials> credentials(const ServerTls& tls) {
  grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = tls.authority;
  options.pem_key_cert_pairs.push_back({tls.identity.key, tls.identity.certificate});
  return grpc::SslServerCredentials(options);
}

Status GrpcServer::listen(const std::string& address, const ServerTls& tls) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, credentials(tls), &port);
  builder.RegisterCallbackGenericService(this);
  builder.SetMaxReceiveMessageSize(kMessageBytesMax);
  // Two controllers at one port would share its calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepalivePatienceMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kKeepaliveMs / 2);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port == 0) {
    return environment_error(fmt::format("cannot listen at {}: is it in use?", address));
  }
  address_ = address.substr(0, address.rfind(':') + 1) + std::to_string(port);
  return {};
}

CertifiedPeer certified_peer(const grpc::GenericCallbackServerContext& context) {
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  if (peer == nullptr || !peer->IsPeerAuthenticated()) return {};
  const std::vector<grpc::string_ref> names = peer->FindPropertyValues("x509_common_name");
  const std::vector<grpc::string_ref> shown = peer->FindPropertyValues("x509_pem_cert");
  if (names.size() != 1 || shown.size() != 1) return {};
  return {std::string(names[0].data(), names[0].size()),
          shown_key(std::string(shown[0].data(), shown[0].size()))};
}

/// Returns the user of the token; without one, a caller of kNobody.
tl::expected<Caller, CallStatus> caller_of(const grpc::GenericCallbackServerContext& context,
                                           const TokenBook& tokens) {
  constexpr std::string_view kBearer = "Bearer ";
  const auto found = context.client_metadata().find("authorization");
  if (found == context.client_metadata().end()) return tokens.caller("");
  const std::string_view value(found->second.data(), found->second.size());
  if (!value.starts_with(kBearer)) return tokens.caller("");
  return tokens.caller(value.substr(kBearer.size()));
}

void GrpcServer::lead(const Served& served) {
  served_.emplace(served);
  shared_.served = &*served_;
  for (GrpcAgent* agent : std::exchange(shared_.warm, {})) agent->begin();
}

CallStatus GrpcServer::refusal_of_standby(grpc::GenericCallbackServerContext& context) const {
  const std::scoped_lock lock(mutex_);
  if (leader_.empty()) {
    return {CallCode::kUnavailable, fmt::format("{}; no leader is known", kStandbyText)};
  }
  context.AddTrailingMetadata(kLeaderKey, leader_);
  return {CallCode::kUnavailable, fmt::format("{}; the leader is at {}", kStandbyText, leader_)};
}

grpc::ServerGenericBidiReactor* GrpcServer::reactor_of_standby(
    grpc::GenericCallbackServerContext& context) {
  const std::string& name = context.method();
  const Method* method = nullptr;
  if (standby_ != nullptr && name.starts_with(kService)) {
    method = standby_->find(name.substr(kService.size()));
  }
  if (method == nullptr) return new Refusal(refusal_of_standby(context));
  return new CallReactor(shared_, *method, Caller());
}

/// Identifies the caller; the method decides whether it may (api/access/authorization.hpp).
grpc::ServerGenericBidiReactor* GrpcServer::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  const std::string& name = context->method();
  CertifiedPeer peer = certified_peer(*context);
  if (name == kAgents) {
    if (!peer.node.empty()) return new AgentReactor(shared_, std::move(peer));
    return new Refusal({CallCode::kUnauthenticated, "an agent shows a certificate of its node"});
  }
  const Served* served = shared_.served;
  if (served == nullptr) return reactor_of_standby(*context);
  const tl::expected<Caller, CallStatus> known = caller_of(*context, served->tokens);
  const Method* method = nullptr;
  if (name.starts_with(kService)) method = served->methods.find(name.substr(kService.size()));
  const bool for_all = method != nullptr && method->rule.role == Role::kNobody;
  if (!known && !for_all) return new Refusal(known.error());
  if (method == nullptr) {
    return new Refusal({CallCode::kUnimplemented, "there is no method " + name});
  }
  Caller caller = known.value_or(Caller());
  caller.node = std::move(peer.node);
  caller.key = std::move(peer.key.hash);
  return new CallReactor(shared_, *method, std::move(caller));
}

}  // namespace

Result<std::unique_ptr<Server>> Server::start(const Env& env, const ServerOptions& options) {
  auto server = std::make_unique<GrpcServer>(env, options.standby);
  if (Status listening = server->listen(options.address, *options.tls); !listening) {
    return forward_error(listening);
  }
  return server;
}

}  // namespace orrery

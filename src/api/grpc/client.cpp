#include "api/grpc/client.hpp"

#include <fmt/format.h>
#include <google/protobuf/message_lite.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "api/agents/certificate_check.hpp"
#include "api/grpc/controller_route.hpp"
#include "base/system/real_clock.hpp"

namespace orrery {
namespace {

constexpr int kMessageBytesMax = 64 << 20;
constexpr int kReconnectMsMin = 50;
constexpr int kReconnectMsMax = 500;
constexpr int kKeepaliveMs = 20'000;
/// Serves where another controller may have taken over from a silent one. A server accepts a ping
/// each 5 s.
constexpr int kKeepaliveAmongSeveralMs = 6'000;
constexpr Duration kPause = Duration::milliseconds(50);
/// Bounds of one attempt to connect; gRPC's own 20 s are longer than most users wait.
constexpr std::int64_t kConnectMsMin = 1'000;
constexpr std::int64_t kConnectMsMax = 20'000;

gpr_timespec deadline_in(Duration wait) {
  if (wait == Duration::max()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(wait.count_ns(), GPR_TIMESPAN));
}

std::shared_ptr<grpc::Channel> make_channel(const ClientOptions& options,
                                            const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMsMin);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMsMax);
  // In spite of its name, this option limits an attempt to connect. Where there are several
  // controllers, one that does not answer must not use up the time for the others.
  const bool one = options.addresses.size() == 1;
  const std::int64_t retry_ms = one ? options.retry.count_ns() / 1'000'000 : kConnectMsMin;
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                   static_cast<int>(std::clamp(retry_ms, kConnectMsMin, kConnectMsMax)));
  // A connection that fell silent is noticed while a call waits on it.
  const int keepalive_ms = one ? kKeepaliveMs : kKeepaliveAmongSeveralMs;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, keepalive_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, keepalive_ms);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A web proxy does not serve a controller.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = options.authority;
  return grpc::CreateCustomChannel(address, grpc::SslCredentials(tls), arguments);
}

grpc::ByteBuffer encoded(const google::protobuf::MessageLite& message) {
  const grpc::Slice bytes(message.SerializeAsString());
  return {&bytes, 1};
}

bool decode(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite& message) {
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) return false;
  std::string whole;
  whole.reserve(bytes.Length());
  for (const grpc::Slice& slice : slices) {
    whole.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return message.ParseFromString(whole);
}

ErrorKind kind_of_code(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::OUT_OF_RANGE:
      return ErrorKind::kInput;
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::ALREADY_EXISTS:
    case grpc::StatusCode::ABORTED:
      return ErrorKind::kInfeasible;
    default:
      return ErrorKind::kEnvironment;
  }
}

/// How a call ended, and whom a standby named as the leader.
struct CallEnd {
  grpc::Status status;
  std::string leader = {};  ///< empty: no one
};

CallEnd end_of(grpc::Status status, const grpc::ClientContext& context) {
  CallEnd end{std::move(status)};
  if (end.status.ok()) return end;
  const auto named = context.GetServerTrailingMetadata().find(kLeaderKey);
  if (named == context.GetServerTrailingMetadata().end()) return end;
  end.leader.assign(named->second.data(), named->second.size());
  return end;
}

bool by_standby(const grpc::Status& status) {
  return status.error_message().starts_with(kStandbyText);
}

}  // namespace

/// The connections, and the retries of one thread's calls over them.
class Client::Wire {
 public:
  explicit Wire(const ClientOptions& options) : options_(options), route_(options.addresses) {}

  CallEnd call(const Call& call, const Message& request, Message& response) {
    grpc::ClientContext context;
    prepare(context, call.patience);
    auto rpc = connection().stub.PrepareUnaryCall(&context, path_of(call.method), encoded(request),
                                                  &queue_);
    rpc->StartCall();
    grpc::ByteBuffer bytes;
    grpc::Status status;
    rpc->Finish(&bytes, &status, this);
    next();
    if (status.ok() && !decode(bytes, response)) return {malformed()};
    return end_of(std::move(status), context);
  }

  struct Stream {
    std::string_view method;
    const Message& request;
    Message& into;
    const std::function<bool()>& visit;
  };
  struct StreamEnd {
    CallEnd end;
    bool stopped = false;   ///< because the visitor wants no more
    bool progress = false;  ///< anything came
  };
  StreamEnd read(const Stream& stream);
  std::unique_ptr<ClientStream> open(std::string_view method) {
    return std::make_unique<ClientStream>(
        ClientStream::Setup{connection().channel, path_of(method), options_.token,
                            [this, address = route_.address()](const grpc::Status& status) {
                              return error_of(status, address);
                            }});
  }

  /// Counts the time that no controller serves.
  class Patience {
   public:
    explicit Patience(Wire& wire) : wire_(wire), begun_(wire.clock_.now_monotonic()) {
      wire_.route_.begin_round();
    }
    void met() {
      until_.reset();
      told_ = false;
      wire_.route_.begin_round();
    }
    /// Whether the call may be made again, to the controller that the route names now.
    bool again(const CallEnd& end) {
      if (end.status.error_code() != grpc::StatusCode::UNAVAILABLE) return false;
      if (!until_) {
        // A call that was never connected has waited since it began; another one was lost now.
        const bool connected =
            end.status.error_message().find("failed to connect") == std::string::npos;
        until_ = (connected ? wire_.clock_.now_monotonic() : begun_) + wire_.options_.retry;
      }
      wire_.connection().said = end.status;
      if (wire_.route_.move_on(end.leader)) return true;
      if (wire_.options_.retry > Duration() && !std::exchange(told_, true)) {
        wire_.options_.on_retry();
      }
      return wire_.begin_round(*until_);
    }

   private:
    Wire& wire_;
    Instant begun_;
    std::optional<Instant> until_;
    bool told_ = false;  ///< on_retry was called
  };

  /// Returns the error of a call whose last status this is.
  [[nodiscard]] Error error_of(const grpc::Status& status) const {
    const bool one = route_.addresses().size() == 1;
    const bool unavailable = status.error_code() == grpc::StatusCode::UNAVAILABLE;
    return one || !unavailable ? error_of(status, route_.address()) : none_serves();
  }

 private:
  struct Connection {
    std::shared_ptr<grpc::Channel> channel;
    grpc::GenericStub stub;
    grpc::Status said = {};  ///< why it did not take the last call that it did not take

    explicit Connection(std::shared_ptr<grpc::Channel> its)
        : channel(std::move(its)), stub(channel) {}
  };

  /// Returns the connection to the controller that the route names.
  Connection& connection() {
    const std::string& address = route_.address();
    const auto found = connections_.find(address);
    if (found != connections_.end()) return found->second;
    return connections_.try_emplace(address, make_channel(options_, address)).first->second;
  }

  /// Waits for a moment; for a single controller, until it is in reach. Returns false where `until`
  /// has passed.
  bool begin_round(Instant until) {
    void* tag = nullptr;
    bool ok = false;
    queue_.AsyncNext(&tag, &ok, deadline_in(kPause));
    route_.begin_round();
    const Duration left = until - clock_.now_monotonic();
    if (left <= Duration()) return false;
    return route_.addresses().size() > 1 ||
           connection().channel->WaitForConnected(deadline_in(left));
  }

  [[nodiscard]] Error error_of(const grpc::Status& status, const std::string& address) const;
  [[nodiscard]] Error none_serves() const;
  /// Returns why a controller was not available, as a clause.
  [[nodiscard]] std::string reason(const grpc::Status& status, const std::string& address) const;
  /// Returns a clause about the certificate of a controller that cannot be reached; empty: it is
  /// not the cause.
  [[nodiscard]] std::string certificate_cause(const grpc::Status& status,
                                              const std::string& address) const;

  static std::string path_of(std::string_view method) {
    return fmt::format("/orrery.v1.Orrery/{}", method);
  }
  static grpc::Status malformed() {
    return {grpc::StatusCode::INTERNAL, "the controller's answer cannot be read"};
  }

  void prepare(grpc::ClientContext& context, Duration patience) const {
    context.set_deadline(deadline_in(patience));
    if (!options_.token.empty()) context.AddMetadata("authorization", "Bearer " + options_.token);
  }

  /// Returns the outcome of the one operation that is under way.
  bool next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  const ClientOptions& options_;
  RealClock clock_;
  ControllerRoute route_;
  std::map<std::string, Connection> connections_;  ///< by address
  grpc::CompletionQueue queue_;
};

std::string Client::Wire::certificate_cause(const grpc::Status& status,
                                            const std::string& address) const {
  const std::string& why = status.error_message();
  if (why.find("andshake failed") == why.npos && why.find("peer certificate") == why.npos)
    return "";
  std::string cause = certificate_complaint(address, options_.authority);
  if (cause.empty()) cause = "is not accepted: it is of another authority, or of another name";
  return cause;
}

Error Client::Wire::error_of(const grpc::Status& status, const std::string& address) const {
  const auto environment = [](std::string text) {
    return Error{ErrorKind::kEnvironment, std::move(text), {}};
  };
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      if (by_standby(status)) {
        return environment(fmt::format("the controller at {} does not serve: {}", address,
                                       status.error_message()));
      }
      if (status.error_details() == kRefusedByController) {
        return environment(status.error_message());
      }
      if (const std::string cause = certificate_cause(status, address); !cause.empty()) {
        return environment(
            fmt::format("the certificate of the controller at {} {}", address, cause));
      }
      return environment(fmt::format(
          "cannot reach the controller at {} (is it running? start it with `orrery up`)", address));
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return environment(fmt::format("the controller at {} did not answer within {}", address,
                                     options_.patience.text()));
    case grpc::StatusCode::UNIMPLEMENTED:
      return environment(fmt::format(
          "the controller at {} does not know this call: its program is older than this one",
          address));
    default:
      return {kind_of_code(status.error_code()), status.error_message(), {}};
  }
}

std::string Client::Wire::reason(const grpc::Status& status, const std::string& address) const {
  if (by_standby(status) || status.error_details() == kRefusedByController) {
    return status.error_message();
  }
  const std::string cause = certificate_cause(status, address);
  return cause.empty() ? "it cannot be reached" : "its certificate " + cause;
}

/// Names each controller and why it did not take the call.
Error Client::Wire::none_serves() const {
  std::string text;
  for (const std::string& address : route_.addresses()) {
    const auto found = connections_.find(address);
    if (found == connections_.end()) continue;
    fmt::format_to(std::back_inserter(text), "{}{} ({})", text.empty() ? "" : ", ", address,
                   reason(found->second.said, address));
  }
  return {ErrorKind::kEnvironment,
          fmt::format("no controller serves (is one running? start it with `orrery up`): {}", text),
          {}};
}

Client::Wire::StreamEnd Client::Wire::read(const Stream& stream) {
  grpc::ClientContext context;
  prepare(context, Duration::max());
  auto rpc = connection().stub.PrepareCall(&context, path_of(stream.method), &queue_);
  rpc->StartCall(this);
  bool good = next();
  if (good) {
    rpc->WriteLast(encoded(stream.request), {}, this);
    good = next();
  }
  StreamEnd end;
  bool readable = true;
  while (good) {
    grpc::ByteBuffer bytes;
    rpc->Read(&bytes, this);
    if (!next()) break;
    end.progress = true;
    readable = decode(bytes, stream.into);
    end.stopped = readable && !stream.visit();
    good = readable && !end.stopped;
    if (!good) context.TryCancel();
  }
  grpc::Status status;
  rpc->Finish(&status, this);
  next();
  end.end = readable ? end_of(std::move(status), context) : CallEnd{malformed()};
  return end;
}

Client::Client(ClientOptions options)
    : options_(std::move(options)), wire_(std::make_unique<Wire>(options_)) {}

Client::~Client() = default;

Status Client::call_with(const Call& call, const Message& request, Message& response) {
  Wire::Patience patience(*wire_);
  while (true) {
    const CallEnd end = wire_->call(call, request, response);
    if (end.status.ok()) return {};
    if (!patience.again(end)) return tl::unexpected(wire_->error_of(end.status));
  }
}

Status Client::read(std::string_view method, const std::function<const Message&()>& request,
                    Message& into, const std::function<bool()>& visit) {
  Wire::Patience patience(*wire_);
  while (true) {
    const Wire::StreamEnd read = wire_->read({method, request(), into, visit});
    if (read.end.status.ok() || read.stopped) return {};
    if (read.progress) patience.met();
    if (!patience.again(read.end)) return tl::unexpected(wire_->error_of(read.end.status));
  }
}

std::unique_ptr<ClientStream> Client::open_stream(std::string_view method) {
  return wire_->open(method);
}

std::string make_request_id(Entropy& entropy) {
  const std::uint64_t high = entropy.draw();
  return fmt::format("{:016x}{:016x}", high, entropy.draw());
}

}  // namespace orrery

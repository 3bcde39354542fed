#include "api/grpc/client.hpp"

#include <fmt/format.h>
#include <google/protobuf/message_lite.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "api/agents/certificate_check.hpp"
#include "base/system/real_clock.hpp"

namespace orrery {
namespace {

constexpr int kMessageBytesMax = 64 << 20;
constexpr int kReconnectMsMin = 50;
constexpr int kReconnectMsMax = 500;
constexpr int kKeepaliveMs = 20'000;
constexpr Duration kPause = Duration::milliseconds(50);
/// Bounds of one attempt to connect; gRPC's own 20 s are longer than most users wait.
constexpr std::int64_t kConnectMsMin = 1'000;
constexpr std::int64_t kConnectMsMax = 20'000;

gpr_timespec deadline_in(Duration wait) {
  if (wait == Duration::max()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(wait.count_ns(), GPR_TIMESPAN));
}

std::shared_ptr<grpc::Channel> make_channel(const ClientOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMsMin);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMsMax);
  // In spite of its name, this option limits an attempt to connect.
  const std::int64_t retry_ms = options.retry.count_ns() / 1'000'000;
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                   static_cast<int>(std::clamp(retry_ms, kConnectMsMin, kConnectMsMax)));
  // A connection that fell silent is noticed while a call waits on it.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A web proxy does not serve a controller.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = options.authority;
  return grpc::CreateCustomChannel(options.address, grpc::SslCredentials(tls), arguments);
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

}  // namespace

/// The connection, and the retries of one thread's calls over it.
class Client::Wire {
 public:
  explicit Wire(const ClientOptions& options)
      : options_(options), channel_(make_channel(options)), stub_(channel_) {}

  grpc::Status call(const Call& call, const Message& request, Message& response) {
    grpc::ClientContext context;
    prepare(context, call.patience);
    auto rpc = stub_.PrepareUnaryCall(&context, path_of(call.method), encoded(request), &queue_);
    rpc->StartCall();
    grpc::ByteBuffer bytes;
    grpc::Status status;
    rpc->Finish(&bytes, &status, this);
    next();
    if (status.ok() && !decode(bytes, response)) return malformed();
    return status;
  }

  struct Stream {
    std::string_view method;
    const Message& request;
    Message& into;
    const std::function<bool()>& visit;
  };
  struct StreamEnd {
    grpc::Status status;
    bool stopped = false;   ///< because the visitor wants no more
    bool progress = false;  ///< anything came
  };
  StreamEnd read(const Stream& stream);
  std::unique_ptr<ClientStream> open(std::string_view method) {
    return std::make_unique<ClientStream>(
        ClientStream::Setup{channel_, path_of(method), options_.token,
                            [this](const grpc::Status& status) { return error_of(status); }});
  }

  /// Returns false where it is still out of reach at `until`.
  bool reach_again(Instant until) {
    void* tag = nullptr;
    bool ok = false;
    queue_.AsyncNext(&tag, &ok, deadline_in(kPause));
    const Duration left = until - clock_.now_monotonic();
    return left > Duration() && channel_->WaitForConnected(deadline_in(left));
  }

  /// Counts the time that the controller is out of reach.
  class Patience {
   public:
    explicit Patience(Wire& wire) : wire_(wire), begun_(wire.clock_.now_monotonic()) {}
    void met() { until_.reset(); }
    /// Whether the call may be made again.
    bool again(const grpc::Status& status) {
      if (status.error_code() != grpc::StatusCode::UNAVAILABLE) return false;
      if (!until_) {
        // A call that was never connected has waited since it began; another one was lost now.
        const bool connected =
            status.error_message().find("failed to connect") == std::string::npos;
        until_ = (connected ? wire_.clock_.now_monotonic() : begun_) + wire_.options_.retry;
        if (wire_.options_.retry > Duration()) wire_.options_.on_retry();
      }
      return wire_.reach_again(*until_);
    }

   private:
    Wire& wire_;
    Instant begun_;
    std::optional<Instant> until_;
  };

  [[nodiscard]] Error error_of(const grpc::Status& status) const {
    switch (status.error_code()) {
      case grpc::StatusCode::UNAVAILABLE:
        if (const std::string& why = status.error_message();
            why.find("andshake failed") != why.npos || why.find("peer certificate") != why.npos) {
          return refused_certificate();
        }
        return {ErrorKind::kEnvironment,
                fmt::format("cannot reach the controller at {} (is it running? start it with "
                            "`orrery up`)",
                            options_.address),
                {}};
      case grpc::StatusCode::DEADLINE_EXCEEDED:
        return {ErrorKind::kEnvironment,
                fmt::format("the controller at {} did not answer within {}", options_.address,
                            options_.patience.text()),
                {}};
      case grpc::StatusCode::UNIMPLEMENTED:
        return {ErrorKind::kEnvironment,
                fmt::format("the controller at {} does not know this call: its program is older "
                            "than this one",
                            options_.address),
                {}};
      default:
        return {kind_of_code(status.error_code()), status.error_message(), {}};
    }
  }

 private:
  [[nodiscard]] Error refused_certificate() const {
    std::string why = certificate_complaint(options_.address, options_.authority);
    if (why.empty()) why = "is not accepted: it is of another authority, or of another name";
    return {ErrorKind::kEnvironment,
            fmt::format("the certificate of the controller at {} {}", options_.address, why),
            {}};
  }
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
  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
};

Client::Wire::StreamEnd Client::Wire::read(const Stream& stream) {
  grpc::ClientContext context;
  prepare(context, Duration::max());
  auto rpc = stub_.PrepareCall(&context, path_of(stream.method), &queue_);
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
  rpc->Finish(&end.status, this);
  next();
  if (!readable) end.status = malformed();
  return end;
}

Client::Client(ClientOptions options)
    : options_(std::move(options)), wire_(std::make_unique<Wire>(options_)) {}

Client::~Client() = default;

Status Client::call_with(const Call& call, const Message& request, Message& response) {
  Wire::Patience patience(*wire_);
  while (true) {
    const grpc::Status status = wire_->call(call, request, response);
    if (status.ok()) return {};
    if (!patience.again(status)) return tl::unexpected(wire_->error_of(status));
  }
}

Status Client::read(std::string_view method, const std::function<const Message&()>& request,
                    Message& into, const std::function<bool()>& visit) {
  Wire::Patience patience(*wire_);
  while (true) {
    const Wire::StreamEnd end = wire_->read({method, request(), into, visit});
    if (end.status.ok() || end.stopped) return {};
    if (end.progress) patience.met();
    if (!patience.again(end.status)) return tl::unexpected(wire_->error_of(end.status));
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

#include "gateway/picker/picker.hpp"

#include <fmt/format.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <map>
#include <utility>
#include <vector>

#include "base/system/socket_address.hpp"
#include "gateway/picker/picker_call.hpp"

namespace orrery {
namespace {

constexpr std::string_view kProcess = "/envoy.service.ext_proc.v3.ExternalProcessor/Process";
constexpr std::string_view kHealth = "/grpc.health.v1.Health/Check";
/// Where Envoy sends a body whole, it is one message: it is taken in, to be refused with an answer.
constexpr int kMessageBytesMax = 64 << 20;
constexpr int kKeepaliveMs = 10'000;
/// How often waiting calls are looked at besides what wakes them.
constexpr Duration kWaitCheck = Duration::milliseconds(20);

bool parse_bytes(const grpc::ByteBuffer& bytes, google::protobuf::Message& message) {
  grpc::Slice whole;
  return bytes.DumpToSingleSlice(&whole).ok() &&
         message.ParseFromArray(whole.begin(), static_cast<int>(whole.size()));
}

grpc::Status malformed() {
  return {grpc::StatusCode::INVALID_ARGUMENT, "the message is not of this method"};
}

class GrpcPicker;

/// What gRPC's threads reach a picker by. It outlives both.
struct PickerPort {
  RealLoop& loop;
  GrpcPicker* picker;  ///< on the loop alone; null: it has ended
};

/// Posts what happens on a stream to the loop. A Message is what the peer sends.
template <class Message>
class PostingReactor final : public grpc::ServerGenericBidiReactor {
 public:
  explicit PostingReactor(std::shared_ptr<PickerPort> port)
      : port_(std::move(port)), stream_(std::make_shared<RpcStream>(*this)) {
    stream_->read();
  }

  void OnReadDone(bool read) override;
  void OnWriteDone(bool written) override {
    if (!written) stream_->on_broken();
    stream_->on_written();
  }
  void OnCancel() override {
    stream_->on_broken();
    post_end();
  }
  void OnDone() override {
    stream_->on_done();
    post_end();
    delete this;
  }

 private:
  void post_end();

  std::shared_ptr<PickerPort> port_;
  std::shared_ptr<RpcStream> stream_;
};

class GrpcPicker final : public Picker, private grpc::CallbackGenericService {
 public:
  GrpcPicker(RealLoop& loop, GatewayCore& core)
      : loop_(loop), port_(std::make_shared<PickerPort>(loop, this)), desk_{.core = core} {
    desk_.look_soon = [this] { look_after(Duration::nanoseconds(0)); };
    desk_.look_later = [this] { look_after(kWaitCheck); };
  }
  ~GrpcPicker() override {
    port_->picker = nullptr;
    if (server_) server_->Shutdown(gpr_inf_past(GPR_CLOCK_MONOTONIC));
    calls_.clear();
    if (timer_) loop_.cancel(*timer_);
  }

  [[nodiscard]] Status listen(const std::string& address) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    builder.RegisterCallbackGenericService(this);
    builder.SetMaxReceiveMessageSize(kMessageBytesMax);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    // The requests of an Envoy whose machine has gone are to end.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0) {
      server_ = nullptr;
      return environment_error(
          fmt::format("the endpoint picker cannot listen at {}: is it in use?", address));
    }
    address_ = fmt::format("{}:{}", address.substr(0, address.rfind(':')), port);
    return {};
  }

  const std::string& address() const override { return address_; }
  std::size_t calls() const override { return calls_.size(); }
  void refuse() override { refusing_ = true; }
  void stop(Callback stopped) override {
    refusing_ = true;
    stopped_ = std::move(stopped);
    tell_if_stopped();
  }
  void look() override { look_after(Duration::nanoseconds(0)); }

  // --- Posted by streams

  void take(const std::shared_ptr<RpcStream>& stream, const ext_proc::ProcessingRequest& message) {
    auto found = calls_.find(stream.get());
    if (found == calls_.end()) {
      if (refusing_ || calls_.size() >= desk_.core.options().picker.streams_max) {
        return stream->finish(
            {grpc::StatusCode::UNAVAILABLE,
             refusing_ ? "the gateway ends" : "the gateway has too many streams"});
      }
      auto call = std::make_unique<PickerCall>(desk_, stream);
      found = calls_.emplace(stream.get(), std::move(call)).first;
    }
    found->second->take(message);
  }
  /// The health of a service, for a stream of one question.
  void take(const std::shared_ptr<RpcStream>& stream, const ext_proc::HealthCheckRequest& message) {
    const bool ready = desk_.core.table().epoch > 0 && !refusing_;
    const std::string& name = message.service();
    const bool known = name.empty() || name == "liveness" || name == "readiness" ||
                       name == "envoy.service.ext_proc.v3.ExternalProcessor";
    if (!known) {
      return stream->finish({grpc::StatusCode::NOT_FOUND, "no such service"});
    }
    ext_proc::HealthCheckResponse answer;
    answer.set_status(ready || name == "liveness" ? ext_proc::HealthCheckResponse::SERVING
                                                  : ext_proc::HealthCheckResponse::NOT_SERVING);
    stream->send(answer);
    stream->finish(grpc::Status::OK);
  }
  void end(const std::shared_ptr<RpcStream>& stream) {
    const auto found = calls_.find(stream.get());
    if (found == calls_.end()) return stream->finish(grpc::Status::OK);
    const std::unique_ptr<PickerCall> call = std::move(found->second);
    calls_.erase(found);
    call->close();
    tell_if_stopped();
  }

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    if (context->method() == kProcess) {
      return new PostingReactor<ext_proc::ProcessingRequest>(port_);
    }
    if (context->method() == kHealth) {
      return new PostingReactor<ext_proc::HealthCheckRequest>(port_);
    }
    return CallbackGenericService::CreateReactor(context);
  }

  void tell_if_stopped() {
    if (stopped_ && calls_.empty()) loop_.post(std::exchange(stopped_, nullptr));
  }

  void look_after(Duration delay) {
    if (desk_.waiting.empty()) return;
    const Instant at = desk_.core.now() + delay;
    if (timer_ && look_at_ <= at) return;
    if (timer_) loop_.cancel(*timer_);
    look_at_ = at;
    timer_ = loop_.call_at(at, [this] { look_now(); });
  }
  void look_now() {
    timer_.reset();
    const Instant now = desk_.core.now();
    // A call that ends here leaves the list, and no other call ends by it.
    const std::vector<PickerCall*> waiting(desk_.waiting.begin(), desk_.waiting.end());
    std::map<const GatewayService*, RouteOutcome> known;
    for (PickerCall* call : waiting) {
      const GatewayService* const service = call->like_others_of();
      const auto found = known.find(service);
      const RouteOutcome outcome = found == known.end() ? call->try_again() : found->second;
      if (outcome == RouteOutcome::kReplica) continue;
      if (service != nullptr) known.emplace(service, outcome);
      call->check_time(now, outcome);
    }
    look_after(kWaitCheck);
  }

  RealLoop& loop_;
  std::shared_ptr<PickerPort> port_;
  PickerDesk desk_;
  std::map<RpcStream*, std::unique_ptr<PickerCall>> calls_;
  std::optional<TimerId> timer_;
  Instant look_at_;  ///< where a timer runs
  bool refusing_ = false;
  Callback stopped_;  ///< waits for the last stream
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

template <class Message>
void PostingReactor<Message>::OnReadDone(bool read) {
  if (!read) return post_end();
  auto message = std::make_shared<Message>();
  if (!parse_bytes(stream_->received(), *message)) return stream_->finish(malformed());
  port_->loop.post([port = port_, stream = stream_, message] {
    if (port->picker != nullptr) port->picker->take(stream, *message);
  });
}

template <class Message>
void PostingReactor<Message>::post_end() {
  port_->loop.post([port = port_, stream = stream_] {
    if (port->picker != nullptr) port->picker->end(stream);
  });
}

}  // namespace

Result<std::unique_ptr<Picker>> Picker::start(RealLoop& loop, GatewayCore& core) {
  const std::string& address = core.options().picker.address;
  if (!SocketAddress::parse("tcp:" + address)) {
    return input_error({},
                       fmt::format("the endpoint picker's address is \"{}\", where HOST:PORT in "
                                   "numbers is expected, such as 127.0.0.1:9002",
                                   address));
  }
  auto picker = std::make_unique<GrpcPicker>(loop, core);
  if (Status listening = picker->listen(address); !listening) {
    return forward_error(listening);
  }
  return picker;
}

}  // namespace orrery

#include "api/agents/agent_channel.hpp"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/channel_arguments.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "api/agents/agent_messages.hpp"
#include "base/assert.hpp"

namespace orrery {
namespace {

constexpr const char* kMethod = "/orrery.v1.AgentService/Connect";
constexpr int kMessageBytesMax = 64 << 20;
/// Limit of bytes written but not yet taken by the network.
constexpr std::size_t kWaitingBytesMax = std::size_t{16} << 20;

grpc::ChannelArguments arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5'000);  // the time for one to be made
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  arguments.SetMaxSendMessageSize(kMessageBytesMax);
  return arguments;
}

/// Whether a controller would give the same answer again.
bool final_word(grpc::StatusCode code) {
  return code == grpc::StatusCode::INVALID_ARGUMENT || code == grpc::StatusCode::NOT_FOUND ||
         code == grpc::StatusCode::FAILED_PRECONDITION ||
         code == grpc::StatusCode::UNAUTHENTICATED || code == grpc::StatusCode::PERMISSION_DENIED ||
         code == grpc::StatusCode::UNIMPLEMENTED;
}

enum class Softness { kFirm, kSoft, kBeat };

/// Which messages may be dropped: those that are not resent and that nothing depends on.
Softness softness_of(const v1::AgentMessage& message) {
  if (message.has_report()) {
    return message.report().has_heartbeat() ? Softness::kBeat : Softness::kFirm;
  }
  // No part of a command's output may be dropped; the keeper bounds how much is on its way.
  const bool whole = message.has_open() || message.has_exec_output() || message.has_exec_end() ||
                     message.has_hold_ending();
  return whole ? Softness::kFirm : Softness::kSoft;
}

}  // namespace

/// One call. It lives until gRPC is done with it and the channel has released it. While it is held
/// (AddHold) the loop may begin reads and writes; finish() ends that, once. Objects of gRPC in it
/// are destroyed on the loop: a thread of gRPC that destroys a process's last channel waits for
/// itself.
class AgentChannel::Stream final
    : public grpc::ClientBidiReactor<v1::AgentMessage, v1::ControllerMessage>,
      public std::enable_shared_from_this<Stream> {
 public:
  Stream(Inbox& inbox, ChannelEvents& events) : inbox_(inbox), events_(&events) {}

  void start(const AgentChannelOptions& options, const AgentOpening& opening) {
    self_ = shared_from_this();
    const grpc::SslCredentialsOptions tls{.pem_root_certs = options.tls.authority,
                                          .pem_private_key = options.tls.identity.key,
                                          .pem_cert_chain = options.tls.identity.certificate};
    stub_ = std::make_unique<Stub>(
        grpc::CreateCustomChannel(options.controller, grpc::SslCredentials(tls), arguments()));
    context_ = std::make_unique<grpc::ClientContext>();
    stub_->PrepareBidiStreamingCall(context_.get(), kMethod, {}, this);
    AddHold();
    send(to_proto(AgentMessage(opening)));
    StartRead(&incoming_);
    StartCall();
  }

  void send(v1::AgentMessage message) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (finished_) return;
    const std::size_t bytes = message.ByteSizeLong();
    if (waiting_bytes_ + bytes > kWaitingBytesMax && !make_room(bytes, softness_of(message))) {
      return;
    }
    waiting_bytes_ += bytes;
    waiting_.push_back({std::move(message), bytes});
    write_next();
  }

  /// Closes the stream; called on the loop.
  void close() {
    events_ = nullptr;
    if (context_ != nullptr) cancel();
    std::unique_lock<std::mutex> lock(mutex_);
    done_signal_.wait(lock, [this] { return done_; });
    let_go();
  }

  void OnReadDone(bool good) override {
    if (!good) return finish();
    if (incoming_.what_case() == v1::ControllerMessage::WHAT_NOT_SET) {  // of a newer controller
      return StartRead(&incoming_);
    }
    Result<ControllerMessage> message = from_proto(incoming_);
    if (!message) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        complaint_ = fmt::format("a message of the controller: {}", message.error().message);
      }
      return cancel();
    }
    inbox_.post([self = shared_from_this(), heard = *std::move(message)] { self->hear(heard); });
  }

  void OnWriteDone(bool good) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    writing_ = false;
    waiting_bytes_ -= waiting_.front().bytes;
    waiting_.pop_front();
    if (good && !finished_) write_next();
  }

  void OnDone(const grpc::Status& status) override {
    Error why{ErrorKind::kEnvironment, status.error_message(), {}};
    if (status.ok()) why.message = "the controller ended the stream";
    if (final_word(status.error_code())) why.kind = ErrorKind::kInput;
    if (status.error_code() == grpc::StatusCode::ALREADY_EXISTS) {
      why.kind = ErrorKind::kInfeasible;
    }
    std::shared_ptr<Stream> self;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!complaint_.empty()) why.message = complaint_;
      self = std::move(self_);
      done_ = true;
      // Posted before a waiting thread, and with it the loop, can go on.
      inbox_.post([self, why] { self->end(why); });
    }
    done_signal_.notify_all();
  }

 private:
  using Stub = grpc::TemplatedGenericStub<v1::AgentMessage, v1::ControllerMessage>;
  struct Waiting {
    v1::AgentMessage message;
    std::size_t bytes = 0;
  };

  // Called on the loop.
  void hear(const ControllerMessage& message) {
    if (events_ == nullptr) return;
    if (const auto* welcome = std::get_if<AgentWelcome>(&message)) {
      welcomed_ = true;
      events_->on_welcome(*welcome);
    } else if (!welcomed_) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        complaint_ = "the controller did not begin with a welcome";
      }
      return cancel();
    } else if (const auto* order = std::get_if<NodeOrder>(&message)) {
      events_->on_order(*order);
    } else if (const auto* question = std::get_if<AttemptLogQuestion>(&message)) {
      events_->on_log_question(*question);
    } else if (const auto* asked = std::get_if<AttemptExecOpen>(&message)) {
      events_->on_command(*asked);
    } else if (const auto* input = std::get_if<ExecInput>(&message)) {
      events_->on_command_input(*input);
    } else {
      events_->on_burn_in();
    }
    read_next();
  }

  void end(const Error& why) {
    let_go();
    if (events_ != nullptr) std::exchange(events_, nullptr)->on_lost(why);
  }

  /// Precondition: gRPC is done.
  void let_go() {
    stub_.reset();
    context_.reset();
  }

  void cancel() {
    context_->TryCancel();
    finish();
  }

  void read_next() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!finished_) StartRead(&incoming_);
  }

  void finish() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!std::exchange(finished_, true)) RemoveHold();
  }

  // Precondition: the mutex is held.
  void write_next() {
    if (writing_ || waiting_.empty()) return;
    writing_ = true;
    StartWrite(&waiting_.front().message);
  }

  /// Precondition: the mutex is held. Waiting heartbeats are dropped first. Returns false where the
  /// message must not be sent; where it was required, the stream ends, because the network does not
  /// take it.
  bool make_room(std::size_t bytes, Softness softness) {
    for (std::size_t at = writing_ ? 1 : 0; at < waiting_.size();) {
      if (softness_of(waiting_[at].message) != Softness::kBeat) {
        ++at;
        continue;
      }
      waiting_bytes_ -= waiting_[at].bytes;
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    if (waiting_bytes_ + bytes <= kWaitingBytesMax) return true;
    if (softness == Softness::kFirm) context_->TryCancel();
    return false;
  }

  Inbox& inbox_;
  ChannelEvents* events_;  ///< used on the loop alone; null: the channel is closed
  bool welcomed_ = false;  ///< used on the loop alone
  std::unique_ptr<grpc::ClientContext> context_;  ///< until the end, as the next
  std::unique_ptr<Stub> stub_;
  v1::ControllerMessage incoming_;  ///< of the one read
  std::shared_ptr<Stream> self_;    ///< until gRPC is done

  std::mutex mutex_;  ///< guards all below
  std::condition_variable done_signal_;
  std::deque<Waiting> waiting_;  ///< the first is being written
  std::size_t waiting_bytes_ = 0;
  bool writing_ = false;
  bool finished_ = false;
  bool done_ = false;
  std::string complaint_;  ///< why this side ended it
};

AgentChannel::AgentChannel(Inbox& inbox, AgentChannelOptions options)
    : inbox_(inbox), options_(std::move(options)) {}

AgentChannel::~AgentChannel() { close(); }

void AgentChannel::open(const AgentOpening& opening, ChannelEvents& events) {
  close();
  stream_ = std::make_shared<Stream>(inbox_, events);
  stream_->start(options_, opening);
}

void AgentChannel::send(AgentMessage message) {
  if (stream_ != nullptr) stream_->send(to_proto(message));
}

void AgentChannel::close() {
  if (stream_ == nullptr) return;
  std::exchange(stream_, nullptr)->close();
}

}  // namespace orrery

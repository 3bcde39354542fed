#include "api/grpc/client_stream.hpp"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/system/file_descriptor.hpp"

namespace orrery {

/// gRPC's threads call the On..() methods; all others are the owner's.
class ClientStream::Reactor final
    : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit Reactor(const Setup& setup)
      : stub_(setup.channel), happened_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    ORRERY_ASSERT(happened_.valid(), "a program that talks to one controller has descriptors left");
    if (!setup.token.empty()) context_.AddMetadata("authorization", "Bearer " + setup.token);
    stub_.PrepareBidiStreamingCall(&context_, setup.path, {}, this);
    AddHold();
    StartRead(&incoming_);
    StartCall();
  }

  void OnReadDone(bool good) override {
    const std::lock_guard lock(mutex_);
    has_message_ = good;
    over_ = over_ || !good;
    tell();
  }
  void OnWriteDone(bool) override {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    tell();
  }
  void OnDone(const grpc::Status& status) override {
    const std::lock_guard lock(mutex_);
    status_ = status;
    tell();
    done_.notify_all();
  }

  [[nodiscard]] int descriptor() const { return happened_.get(); }
  void note_seen() const {
    std::uint64_t times = 0;
    (void)!::read(happened_.get(), &times, sizeof times);
  }
  [[nodiscard]] bool writable() {
    const std::lock_guard lock(mutex_);
    return !writing_ && !over_;
  }
  void write(const Message& message) {
    const grpc::Slice bytes(message.SerializeAsString());
    const std::lock_guard lock(mutex_);
    ORRERY_ASSERT(!writing_, "one message is written at a time");
    outgoing_ = grpc::ByteBuffer(&bytes, 1);
    writing_ = true;
    StartWrite(&outgoing_);
  }
  bool take(Message& into) {
    const std::lock_guard lock(mutex_);
    if (!has_message_) {
      let_go_if_over();
      return false;
    }
    std::vector<grpc::Slice> slices;
    std::string whole;
    if (incoming_.Dump(&slices).ok()) {
      for (const grpc::Slice& slice : slices) {
        whole.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
      }
    }
    has_message_ = false;
    if (!into.ParseFromString(whole)) context_.TryCancel();
    if (!let_go_) StartRead(&incoming_);
    return true;
  }
  [[nodiscard]] std::optional<grpc::Status> status() {
    const std::lock_guard lock(mutex_);
    return has_message_ ? std::nullopt : status_;
  }
  void cancel() {
    context_.TryCancel();
    const std::lock_guard lock(mutex_);
    over_ = true;
    let_go_if_over();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return status_.has_value(); });
  }

 private:
  void tell() const {
    const std::uint64_t once = 1;
    (void)!::write(happened_.get(), &once, sizeof once);
  }
  /// Precondition: the mutex is held. No operation is begun any more, so gRPC may end the call.
  void let_go_if_over() {
    if (over_ && !std::exchange(let_go_, true)) RemoveHold();
  }

  grpc::ClientContext context_;
  grpc::GenericStub stub_;
  FileDescriptor happened_;
  std::mutex mutex_;  ///< guards all below
  std::condition_variable done_;
  grpc::ByteBuffer incoming_;
  grpc::ByteBuffer outgoing_;
  bool writing_ = false;
  bool has_message_ = false;
  bool over_ = false;  ///< nothing more comes, or is to be written
  bool let_go_ = false;
  std::optional<grpc::Status> status_;
};

ClientStream::ClientStream(Setup setup)
    : reactor_(std::make_unique<Reactor>(setup)), error_of_(std::move(setup.error_of)) {}

ClientStream::~ClientStream() {
  reactor_->cancel();
  reactor_->wait();
}

int ClientStream::descriptor() const { return reactor_->descriptor(); }
void ClientStream::note_seen() { reactor_->note_seen(); }
bool ClientStream::writable() const { return reactor_->writable(); }
void ClientStream::write(const Message& message) { reactor_->write(message); }
bool ClientStream::take(Message& into) { return reactor_->take(into); }
void ClientStream::cancel() { reactor_->cancel(); }

std::optional<Status> ClientStream::end() const {
  const std::optional<grpc::Status> status = reactor_->status();
  if (!status) return std::nullopt;
  if (status->ok()) return Status();
  return Status(tl::unexpected(error_of_(*status)));
}

}  // namespace orrery

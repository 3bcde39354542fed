// api/grpc/grpc_stream.hpp - the pending writes of one gRPC stream, and its end, for threads that
// do not know whether the stream still exists.
//
// Shared by the reactor, which gRPC deletes when the stream is done, and by the method that answers
// on the loop. Any thread. Invariant: one write at a time; Finish is called once, after the last
// write.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "api/grpc/call.hpp"

namespace orrery {

/// Errors: bytes that are not such a message.
[[nodiscard]] bool parse(const grpc::ByteBuffer& bytes, google::protobuf::Message& message);
[[nodiscard]] grpc::ByteBuffer serialize(const google::protobuf::Message& message);

class GrpcStream {
 public:
  explicit GrpcStream(grpc::ServerGenericBidiReactor& reactor) : reactor_(&reactor) {}

  /// Sends a message; it is dropped where the stream has ended. Where more than kWaitingBytesMax
  /// would wait for the peer, the stream ends with an error after what waits already: nothing is
  /// left out in between.
  void send(const google::protobuf::Message& message);
  void finish(const CallStatus& status);
  /// Calls `ready` once, in any thread: when nothing waits behind the message that is being
  /// written, or the stream has ended. A call before that replaces the earlier one.
  void when_taken(std::function<void()> ready);
  [[nodiscard]] bool wanted() const { return wanted_; }
  /// Reads the next message, unless the stream has ended. Precondition: no read is on its way.
  void read(grpc::ByteBuffer& into);

  using Heard = std::function<void(const grpc::ByteBuffer*)>;
  /// Reads the next message into a buffer of the stream's own and calls `heard` with it once, in
  /// any thread; with nullptr where the peer sends no more. Precondition: no read is on its way.
  void receive(Heard heard);
  /// Calls `gone` once, in any thread, when the peer has given the stream up before finish().
  void when_gone(std::function<void()> gone);

  // --- For the reactor
  /// A message that receive() waits for has arrived.
  void on_read();
  /// No further message arrives.
  void on_read_over();
  void on_written();
  /// A write failed: the peer takes no more.
  void on_broken();
  /// The peer has gone.
  void on_cancel();
  /// gRPC is done with the reactor.
  void on_done();

 private:
  /// Limit of bytes that wait to be written; beyond it the peer is too slow.
  static constexpr std::size_t kWaitingBytesMax = std::size_t{8} << 20;

  enum class Next : std::uint8_t { kNothing, kWrite, kFinish };
  /// Action after the lock is released: gRPC may call back at once.
  struct Due {
    Next next = Next::kNothing;
    std::function<void()> ready;
  };
  [[nodiscard]] Heard take_heard();
  [[nodiscard]] Due due();
  [[nodiscard]] Next next();
  void go_on(const Due& due);

  mutable std::mutex mutex_;
  grpc::ServerGenericBidiReactor* reactor_;  ///< guarded, as all below; nullptr: done
  std::deque<grpc::ByteBuffer> queue_;
  std::size_t waiting_bytes_ = 0;
  grpc::ByteBuffer writing_;
  bool busy_ = false;  ///< a write is on its way
  std::function<void()> ready_;
  std::function<void()> gone_;
  Heard heard_;
  grpc::ByteBuffer received_;
  std::optional<CallStatus> status_;
  bool finished_ = false;
  std::atomic<bool> wanted_ = true;
};

/// The reactor of a stream. gRPC deletes none of them: each ends itself.
class GrpcReactor : public grpc::ServerGenericBidiReactor {
 public:
  GrpcReactor() : stream_(std::make_shared<GrpcStream>(*this)) {}

  void OnWriteDone(bool written) override {
    written ? stream_->on_written() : stream_->on_broken();
  }
  void OnCancel() override { stream_->on_cancel(); }
  void OnDone() override {
    stream_->on_done();
    delete this;
  }

 protected:
  std::shared_ptr<GrpcStream> stream_;
  grpc::ByteBuffer bytes_;
};

}  // namespace orrery

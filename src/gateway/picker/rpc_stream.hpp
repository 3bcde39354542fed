// gateway/picker/rpc_stream.hpp - one gRPC stream of a picker's server, for the loop that answers
// on it and gRPC's threads that serve it.
//
// The reactor, which gRPC deletes when the stream is done, and the call that answers on the loop
// share it. Any thread may use it. Invariants: one write and one read at a time; Finish is called
// once, behind the last write, and at once where the peer has gone.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include <google/protobuf/message.h>

namespace orrery {

class RpcStream {
 public:
  explicit RpcStream(grpc::ServerGenericBidiReactor& reactor) : reactor_(&reactor) {}

  /// Sends a message; it is dropped where the stream has ended.
  void send(const google::protobuf::Message& message);
  /// Ends the stream behind what has been sent.
  void finish(const grpc::Status& status);
  /// Asks for the next message, which comes once the peer has taken most of what was sent.
  /// Precondition: the one before has come.
  void read();

  // --- For the reactor
  [[nodiscard]] const grpc::ByteBuffer& received() const { return in_; }
  void on_written();
  /// The peer takes no more.
  void on_broken();
  /// gRPC is done with the reactor.
  void on_done();

 private:
  /// Bytes that may wait for the peer before no more is read from it.
  static constexpr std::size_t kQueuedMax = std::size_t{1} << 20;

  void go_on(std::unique_lock<std::mutex> lock);
  void read_if_room();

  std::mutex mutex_;                         ///< guards all but in_
  grpc::ServerGenericBidiReactor* reactor_;  ///< nullptr: done
  std::deque<grpc::ByteBuffer> queue_;
  std::size_t queued_ = 0;  ///< bytes in the queue
  grpc::ByteBuffer out_;
  grpc::ByteBuffer in_;
  bool writing_ = false;
  bool wants_read_ = false;
  std::optional<grpc::Status> status_;  ///< of the stream that is to end
  bool finished_ = false;
};

}  // namespace orrery

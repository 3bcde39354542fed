// store/etcd_api/etcd_watch.hpp - one watch of etcd: the changes of all keys of a log from a
// revision on, from one member.
//
// Made by store/etcd/etcd_follower.cpp. One thread calls next(); any thread may cancel. The member
// ends the watch while it has no leader. Invariant: messages come as etcd sends them; what they say
// about order is not to be relied on.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/time.hpp"
#include "orrery/etcd.pb.h"

namespace orrery {

class EtcdWatch {
 public:
  enum class Next : std::uint8_t { kMessage, kSilence, kEnded };

  EtcdWatch(const std::shared_ptr<grpc::Channel>& member, etcd::WatchRequest request);
  ~EtcdWatch();
  EtcdWatch(const EtcdWatch&) = delete;
  EtcdWatch& operator=(const EtcdWatch&) = delete;

  /// Waits for a message, but not longer than `patience`.
  [[nodiscard]] Next next(Duration patience);
  /// The newest message. Precondition: next() returned kMessage.
  [[nodiscard]] const etcd::WatchResponse& message() const { return message_; }
  /// Ends the watch, and a call of next() that waits.
  void cancel() { context_.TryCancel(); }

 private:
  using Stub = grpc::TemplatedGenericStub<etcd::WatchRequest, etcd::WatchResponse>;
  using Call = grpc::ClientAsyncReaderWriter<etcd::WatchRequest, etcd::WatchResponse>;
  /// The operation of gRPC that is under way.
  enum class Step : std::uint8_t { kNone, kStart, kWrite, kRead, kEnded };

  etcd::WatchRequest request_;
  etcd::WatchResponse message_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<Call> call_;
  Step step_ = Step::kNone;
};

}  // namespace orrery

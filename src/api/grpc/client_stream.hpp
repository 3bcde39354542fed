// api/grpc/client_stream.hpp - a call in which both sides send messages for as long as it lasts,
// the client's side.
//
// Made by Client::open_stream, used by one thread, which waits for descriptor() among others.
// Threads of gRPC only note what has happened. One message is written at a time, and the next one
// is read when the one before was taken, so neither side sends faster than the other one takes.
// Its end cancels a call that is not over.
#pragma once

#include <google/protobuf/message_lite.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/error.hpp"

namespace grpc {
class Channel;
class Status;
}  // namespace grpc

namespace orrery {

class ClientStream {
 public:
  using Message = google::protobuf::MessageLite;

  struct Setup {
    std::shared_ptr<grpc::Channel> channel;
    std::string path;   ///< "/orrery.v1.Orrery/Exec"
    std::string token;  ///< empty: none
    std::function<Error(const grpc::Status&)> error_of;
  };

  explicit ClientStream(Setup setup);
  ClientStream(const ClientStream&) = delete;
  ClientStream& operator=(const ClientStream&) = delete;
  ~ClientStream();

  /// Readable when something has happened since the last note_seen().
  [[nodiscard]] int descriptor() const;
  /// Makes descriptor() wait for the next event; call it before the state is read.
  void note_seen();
  /// Whether a message may be written.
  [[nodiscard]] bool writable() const;
  /// Precondition: writable().
  void write(const Message& message);
  /// Takes the next message. Returns false where none is there now.
  [[nodiscard]] bool take(Message& into);
  /// Returns how the call ended, once it has and every message was taken.
  [[nodiscard]] std::optional<Status> end() const;
  void cancel();

 private:
  class Reactor;
  std::unique_ptr<Reactor> reactor_;
  std::function<Error(const grpc::Status&)> error_of_;
};

}  // namespace orrery

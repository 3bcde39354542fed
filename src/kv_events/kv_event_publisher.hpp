// kv_events/kv_event_publisher.hpp - publishes the KV events of an engine to every reader that
// connects, in vLLM's form: ZeroMQ messages of a topic, a number and a batch of events.
//
// Made by an engine's owner, used on the engine's thread; the library sends on a thread of its own.
// Messages are numbered from 0 without a gap. A reader that is slow, or comes later, misses some,
// which it sees by the numbers; what it missed is not sent again. Cost: about 0.1 us a token.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kv_events/kv_event.hpp"
#include "kv_events/zmq_socket.hpp"

namespace orrery {

class KvEventPublisher {
 public:
  /// Listens at "HOST:PORT", the host in numbers; port 0: any. Errors: the address is malformed or
  /// taken.
  [[nodiscard]] static Result<std::unique_ptr<KvEventPublisher>> open(const std::string& address);

  /// Only open() makes one. The socket listens at the address.
  KvEventPublisher(ZmqContext context, ZmqSocket socket, std::string address);

  /// "HOST:PORT" with the port chosen.
  [[nodiscard]] const std::string& address() const { return address_; }
  void publish(const KvEventBatch& batch);

 private:
  ZmqContext context_;
  ZmqSocket socket_;
  std::string address_;
  std::uint64_t next_ = 0;
};

}  // namespace orrery

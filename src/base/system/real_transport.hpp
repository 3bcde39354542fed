// base/system/real_transport.hpp - the Transport of the real Env: non-blocking unix and TCP
// sockets.
//
// On the wire a frame is its length, 4 bytes little-endian, then its bytes. Nothing is encrypted or
// authenticated; a unix socket is made with mode 0600. A stale socket file, where no process
// listens, is replaced, and listening ends with its removal. A newcomer is closed at once when the
// process is out of descriptors. Built by RealEnv, used on its loop. Cost of a frame: one copy on
// each side and one system call to send; idle connections hold no buffers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.hpp"
#include "base/system/file_descriptor.hpp"
#include "base/system/real_loop.hpp"
#include "base/system/socket_address.hpp"

namespace orrery {

class RealTransport final : public Transport {
 public:
  RealTransport(RealLoop& loop, const TransportLimits& limits);
  RealTransport(const RealTransport&) = delete;
  RealTransport& operator=(const RealTransport&) = delete;
  ~RealTransport() override;

  [[nodiscard]] Result<Listening> listen(std::string_view address, ListenerEvents& events) override;
  [[nodiscard]] Result<ConnectionId> connect(std::string_view address,
                                             ConnectionEvents& events) override;
  [[nodiscard]] SendOutcome send(ConnectionId connection, std::string_view frame) override;
  void close(ConnectionId connection) override;
  void close(ListenerId listener) override;

 private:
  struct Connection;
  struct Listener;

  // Each is safe against callbacks that close what it works on: it finds its object again by id.
  void connection_ready(ConnectionId id, std::uint32_t events);
  void listener_ready(ListenerId id);
  void receive(ConnectionId id);
  void deliver_frames(ConnectionId id);
  void end_of_stream(const Connection& connection);
  void finish(ConnectionId id, CloseReason reason, std::string why);

  [[nodiscard]] Status start(Connection& connection);
  [[nodiscard]] ConnectionId adopt(FileDescriptor fd, const Listener& listener);
  void turn_away(const Listener& listener);
  [[nodiscard]] bool finish_connecting(Connection& connection);
  void flush(Connection& connection);
  void watch_for_room(Connection& connection);
  [[nodiscard]] Connection* find(ConnectionId id);

  RealLoop& loop_;
  TransportLimits limits_;
  FileDescriptor spare_;           ///< given up for a moment to turn a newcomer away
  std::unique_ptr<char[]> chunk_;  ///< of one read
  std::map<ConnectionId, std::unique_ptr<Connection>> connections_;
  std::map<ListenerId, std::unique_ptr<Listener>> listeners_;
  std::uint64_t next_id_ = 1;
};

}  // namespace orrery

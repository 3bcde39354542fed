// gateway/peers/datagram_socket.hpp - a UDP socket on the event loop: datagrams in and out, without
// waiting and without promise that they arrive.
//
// Made by what uses it; the loop outlives it. On the loop's thread alone. It may be destroyed
// inside `handle`. Cost: one system call a datagram; at most kDatagramsPerRound are read in a
// round, so that other descriptors get their turn.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/system/file_descriptor.hpp"
#include "base/system/real_loop.hpp"
#include "base/system/socket_address.hpp"

namespace orrery {

class DatagramSocket final : public ReadyHandler {
 public:
  /// The bytes live until the call returns.
  using Handle = std::function<void(std::string_view bytes)>;

  /// Binds to "HOST:PORT", the address in numbers; port 0: any. Errors: the address is malformed or
  /// taken.
  [[nodiscard]] static Result<std::unique_ptr<DatagramSocket>> bind(RealLoop& loop,
                                                                    const std::string& address,
                                                                    Handle handle);
  /// Only bind() makes one: the descriptor is bound, and not watched yet.
  DatagramSocket(RealLoop& loop, FileDescriptor descriptor, Handle handle);
  DatagramSocket(const DatagramSocket&) = delete;
  DatagramSocket& operator=(const DatagramSocket&) = delete;
  ~DatagramSocket() override;

  /// "HOST:PORT" with the port chosen.
  [[nodiscard]] std::string address() const;
  /// Sends a datagram; one that the network does not take at once is lost.
  void send(const SocketAddress& to, std::string_view bytes) const;

  void on_ready(std::uint32_t events) override;

 private:
  static constexpr int kDatagramsPerRound = 64;
  static constexpr std::size_t kDatagramMax = std::size_t{1} << 16;

  RealLoop& loop_;
  FileDescriptor descriptor_;
  Handle handle_;
  std::unique_ptr<char[]> buffer_;
  WatchId watch_ = WatchId::kNone;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace orrery

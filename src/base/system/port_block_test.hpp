// base/system/port_block_test.hpp - ports of a test that no test beside it uses.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "base/numbers/rng.hpp"
#include "base/system/file_descriptor.hpp"
#include "base/system/real_clock.hpp"

namespace orrery {

/// A block of ports in a row that no other test uses while this object lives: a test that wants a
/// block binds the port after its last one first, and keeps it bound. The blocks are below the
/// ports that Orrery gives its gangs, and below those that the kernel gives to a program that asks
/// for any port. Movable.
class PortBlock {
 public:
  static constexpr int kPorts = 15;

  PortBlock() {
    Rng draw(static_cast<std::uint64_t>(RealClock().now_monotonic().ns()));
    do {
      first_ = 10'000 + static_cast<int>(draw.below(625)) * (kPorts + 1);
      claim_ = bound(first_ + kPorts);
    } while (!claim_.valid() || !bound(first_).valid());
  }
  [[nodiscard]] int first() const { return first_; }

 private:
  /// Invalid: another program has the port.
  [[nodiscard]] static FileDescriptor bound(int port) {
    FileDescriptor any(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* address = reinterpret_cast<const sockaddr*>(&at);
    if (!any.valid() || ::bind(any.get(), address, sizeof at) != 0) return {};
    return any;
  }

  int first_ = 0;
  FileDescriptor claim_;
};

}  // namespace orrery

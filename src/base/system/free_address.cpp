#include "base/system/free_address.hpp"

#include <sys/socket.h>

#include "base/system/socket_address.hpp"

namespace orrery {

Result<FreeAddress> FreeAddress::on(const std::string& host, Entropy& entropy) {
  constexpr std::uint64_t kFirst = 20'000;
  constexpr std::uint64_t kPorts = 10'000;
  constexpr int kTries = 500;
  for (int i = 0; i < kTries; ++i) {
    const auto port = static_cast<std::uint16_t>(kFirst + entropy.draw() % kPorts);
    const Result<SocketAddress> at = SocketAddress::parse(fmt::format("tcp:{}:{}", host, port));
    if (!at) return tl::unexpected(at.error());
    FileDescriptor socket(::socket(at->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket.valid()) return environment_error("no descriptor is left for a socket");
    if (::bind(socket.get(), at->get(), at->size()) != 0) continue;
    return FreeAddress(host, port, std::move(socket));
  }
  return environment_error(
      fmt::format("no port of {} between {} and {} is free", host, kFirst, kFirst + kPorts - 1));
}

}  // namespace orrery

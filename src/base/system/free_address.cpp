#include "base/system/free_address.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <utility>

namespace orrery {

Result<FreeAddress> FreeAddress::on_loopback(Entropy& entropy) {
  constexpr std::uint64_t kFirst = 20'000;
  constexpr std::uint64_t kPorts = 10'000;
  constexpr int kTries = 500;
  for (int i = 0; i < kTries; ++i) {
    const auto port = static_cast<std::uint16_t>(kFirst + entropy.draw() % kPorts);
    FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket.valid()) return environment_error("no descriptor is left for a socket");
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) continue;
    return FreeAddress(fmt::format("127.0.0.1:{}", port), std::move(socket));
  }
  return environment_error(
      fmt::format("no port of 127.0.0.1 between {} and {} is free", kFirst, kFirst + kPorts - 1));
}

}  // namespace orrery

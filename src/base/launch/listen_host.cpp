#include "base/launch/listen_host.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>

#include "base/system/file_descriptor.hpp"
#include "base/system/socket_address.hpp"

namespace orrery {

std::string listen_host(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0) return "0.0.0.0";
  std::array<char, NI_MAXHOST> numbers{};
  const int failed = ::getnameinfo(found->ai_addr, found->ai_addrlen, numbers.data(),
                                   numbers.size(), nullptr, 0, NI_NUMERICHOST);
  const bool v6 = found->ai_family == AF_INET6;
  ::freeaddrinfo(found);
  if (failed != 0) return "0.0.0.0";
  return v6 ? fmt::format("[{}]", numbers.data()) : std::string(numbers.data());
}

Result<std::uint16_t> free_port(const std::string& host, Entropy& entropy) {
  constexpr std::uint64_t kFirst = 20'000;
  constexpr std::uint64_t kPorts = 10'000;
  constexpr int kTries = 500;
  for (int i = 0; i < kTries; ++i) {
    const auto port = static_cast<std::uint16_t>(kFirst + entropy.draw() % kPorts);
    Result<SocketAddress> at = SocketAddress::parse(fmt::format("tcp:{}:{}", host, port));
    if (!at) return forward_error(at);
    const FileDescriptor socket(::socket(at->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket.valid()) return environment_error("no descriptor is left for a socket");
    if (::bind(socket.get(), at->get(), at->size()) == 0) return port;
  }
  return environment_error(
      fmt::format("no port of {} between {} and {} is free", host, kFirst, kFirst + kPorts - 1));
}

}  // namespace orrery

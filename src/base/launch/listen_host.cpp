#include "base/launch/listen_host.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>

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

}  // namespace orrery

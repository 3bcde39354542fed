#include "apps/orrery-gateway/own_address.hpp"

#include <netdb.h>
#include <sys/socket.h>

#include <memory>

#include "base/system/file_descriptor.hpp"
#include "base/system/socket_address.hpp"

namespace orrery {
namespace {

/// Returns the address, as SocketAddress writes it, from which datagrams to a name would leave.
std::string local_toward(const std::string& host, const std::string& port, int family) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  const FileDescriptor socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  // Nothing is sent: the kernel only looks up the way.
  if (::connect(socket.get(), found->ai_addr, found->ai_addrlen) != 0) return {};
  return SocketAddress::local_of(socket.get()).text();
}

std::string without_brackets(const std::string& host) {
  return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

}  // namespace

std::string own_address(const std::string& bound, const std::string& controller) {
  constexpr std::string_view kTcp = "tcp:";
  const std::size_t port = bound.rfind(':');
  const std::string host = bound.substr(0, port);
  if (host != "0.0.0.0" && host != "[::]") return bound;
  const std::size_t colon = controller.rfind(':');
  if (colon == controller.npos) return {};
  const std::string local =
      local_toward(without_brackets(controller.substr(0, colon)), controller.substr(colon + 1),
                   host == "[::]" ? AF_INET6 : AF_INET);
  if (local.empty()) return {};
  return local.substr(kTcp.size(), local.rfind(':') - kTcp.size()) + bound.substr(port);
}

}  // namespace orrery

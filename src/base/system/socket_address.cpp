#include "base/system/socket_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/text/utf8.hpp"

namespace orrery {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kTcp = "tcp:";

tl::unexpected<Error> malformed(std::string_view text, std::string_view expected) {
  return input_error({},
                     fmt::format("address \"{}\": expected {}", printable(text, 120), expected));
}

std::optional<in_port_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return htons(port);
}

}  // namespace

Result<SocketAddress> SocketAddress::parse(std::string_view text) {
  SocketAddress address;
  if (text.starts_with(kUnix)) {
    const std::string_view path = text.substr(kUnix.size());
    sockaddr_un local{};
    local.sun_family = AF_UNIX;
    if (!path.starts_with('/') || path.size() >= sizeof local.sun_path ||
        path.find('\0') != std::string_view::npos) {
      return malformed(text, fmt::format("an absolute path of at most {} bytes behind \"unix:\"",
                                         sizeof local.sun_path - 1));
    }
    std::memcpy(local.sun_path, path.data(), path.size());
    std::memcpy(&address.storage_, &local, sizeof local);
    address.size_ = sizeof local;
    return address;
  }
  constexpr std::string_view kExpected =
      "\"unix:/path\", \"tcp:127.0.0.1:7000\" or \"tcp:[::1]:7000\"";
  const std::size_t colon = text.rfind(':');
  if (!text.starts_with(kTcp) || colon < kTcp.size()) return malformed(text, kExpected);
  const std::optional<in_port_t> port = parse_port(text.substr(colon + 1));
  if (!port) return malformed(text, "a port from 0 to 65535 at its end");
  std::string host(text.substr(kTcp.size(), colon - kTcp.size()));
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (host.find('\0') != std::string::npos) return malformed(text, kExpected);
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = *port;
    std::memcpy(&address.storage_, &v4, sizeof v4);
    address.size_ = sizeof v4;
    return address;
  }
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (!bracketed || ::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) != 1) {
    return malformed(text, kExpected);
  }
  v6.sin6_family = AF_INET6;
  v6.sin6_port = *port;
  std::memcpy(&address.storage_, &v6, sizeof v6);
  address.size_ = sizeof v6;
  return address;
}

SocketAddress SocketAddress::local_of(int tcp_socket) {
  SocketAddress address;
  address.size_ = sizeof address.storage_;
  ::getsockname(tcp_socket, reinterpret_cast<sockaddr*>(&address.storage_), &address.size_);
  return address;
}

SocketAddress SocketAddress::peer_of(int tcp_socket) {
  SocketAddress address;
  address.size_ = sizeof address.storage_;
  ::getpeername(tcp_socket, reinterpret_cast<sockaddr*>(&address.storage_), &address.size_);
  return address;
}

const sockaddr* SocketAddress::get() const { return reinterpret_cast<const sockaddr*>(&storage_); }

std::string SocketAddress::path() const {
  sockaddr_un local{};
  std::memcpy(&local, &storage_, sizeof local);
  return local.sun_path;  // parse() leaves room for its final NUL
}

std::string SocketAddress::text() const {
  std::array<char, INET6_ADDRSTRLEN> host{};
  switch (family()) {
    case AF_UNIX:
      return std::string(kUnix) + path();
    case AF_INET: {
      sockaddr_in v4{};
      std::memcpy(&v4, &storage_, sizeof v4);
      ::inet_ntop(AF_INET, &v4.sin_addr, host.data(), host.size());
      return fmt::format("{}{}:{}", kTcp, host.data(), ntohs(v4.sin_port));
    }
    case AF_INET6: {
      sockaddr_in6 v6{};
      std::memcpy(&v6, &storage_, sizeof v6);
      ::inet_ntop(AF_INET6, &v6.sin6_addr, host.data(), host.size());
      return fmt::format("{}[{}]:{}", kTcp, host.data(), ntohs(v6.sin6_port));
    }
    default:
      return "unknown";  // a peer that was gone before it could be asked
  }
}

}  // namespace orrery

// base/system/socket_address.hpp - the addresses of a Transport as sockets know them.
//
// "unix:/path" (absolute, at most 107 bytes), "tcp:IPV4:PORT" or "tcp:[IPV6]:PORT", all numeric. A
// plain value.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace orrery {

class SocketAddress {
 public:
  /// Errors: ErrorKind::kInput, naming the text and what was expected.
  [[nodiscard]] static Result<SocketAddress> parse(std::string_view text);
  /// The address a bound TCP socket has, or its peer's.
  [[nodiscard]] static SocketAddress local_of(int tcp_socket);
  [[nodiscard]] static SocketAddress peer_of(int tcp_socket);

  [[nodiscard]] int family() const { return storage_.ss_family; }
  [[nodiscard]] const sockaddr* get() const;
  [[nodiscard]] socklen_t size() const { return size_; }
  /// The file of a unix address. Precondition: family() == AF_UNIX.
  [[nodiscard]] std::string path() const;
  /// In the form parse() reads.
  [[nodiscard]] std::string text() const;

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

}  // namespace orrery

#include "gateway/peers/datagram_socket.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace orrery {
namespace {

constexpr std::string_view kTcp = "tcp:";

tl::unexpected<Error> cannot(std::string_view step, const std::string& address) {
  return environment_error(
      fmt::format("{}: cannot {}: {}", address, step, std::generic_category().message(errno)));
}

}  // namespace

Result<std::unique_ptr<DatagramSocket>> DatagramSocket::bind(RealLoop& loop,
                                                             const std::string& address,
                                                             Handle handle) {
  const Result<SocketAddress> parsed = SocketAddress::parse(std::string(kTcp) + address);
  if (!parsed) return tl::unexpected(parsed.error());
  FileDescriptor fd(::socket(parsed->family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return cannot("make a socket for datagrams", address);
  if (::bind(fd.get(), parsed->get(), parsed->size()) != 0) {
    return cannot("take datagrams", address);
  }
  auto made = std::make_unique<DatagramSocket>(loop, std::move(fd), std::move(handle));
  const Result<WatchId> watch = loop.watch(made->descriptor_.get(), EPOLLIN, *made);
  if (!watch) return tl::unexpected(watch.error());
  made->watch_ = *watch;
  return made;
}

DatagramSocket::DatagramSocket(RealLoop& loop, FileDescriptor descriptor, Handle handle)
    : loop_(loop),
      descriptor_(std::move(descriptor)),
      handle_(std::move(handle)),
      buffer_(std::make_unique_for_overwrite<char[]>(kDatagramMax)) {}

DatagramSocket::~DatagramSocket() {
  *alive_ = false;
  if (watch_ != WatchId::kNone) loop_.unwatch(watch_);
}

std::string DatagramSocket::address() const {
  return SocketAddress::local_of(descriptor_.get()).text().substr(kTcp.size());
}

void DatagramSocket::send(const SocketAddress& to, std::string_view bytes) const {
  (void)::sendto(descriptor_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                 to.get(), to.size());
}

void DatagramSocket::on_ready(std::uint32_t) {
  const std::shared_ptr<bool> alive = alive_;
  for (int i = 0; i < kDatagramsPerRound && *alive; ++i) {
    // An error is one of an earlier send(), told here once; the next call reads on.
    const ssize_t got = ::recv(descriptor_.get(), buffer_.get(), kDatagramMax, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got >= 0) handle_({buffer_.get(), static_cast<std::size_t>(got)});
  }
}

}  // namespace orrery

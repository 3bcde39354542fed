#include "runtime/exchange/peer_mesh.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/format/little_endian.hpp"

namespace orrery {
namespace {

constexpr std::size_t kHeaderBytes = 16;
constexpr std::uint64_t kDataBytesMax = std::uint64_t{1} << 36;
constexpr std::uint64_t kWordsBytesMax = 1 << 16;  ///< limit for messages other than data
constexpr std::size_t kStrangersMax = 256;

using Header = std::array<char, kHeaderBytes>;

Header header_of(const OutgoingMessage& message) {
  Header header{};
  store_little_endian(static_cast<std::uint32_t>(message.kind), header.data());
  store_little_endian(message.generation, header.data() + 4);
  store_little_endian(static_cast<std::uint64_t>(message.bytes.size()), header.data() + 8);
  return header;
}

void set_option(int fd, int level, const std::pair<int, int>& option) {
  (void)::setsockopt(fd, level, option.first, &option.second, sizeof option.second);
}

void prepare(int fd) {
  set_option(fd, IPPROTO_TCP, {TCP_NODELAY, 1});
  set_option(fd, SOL_SOCKET, {SO_KEEPALIVE, 1});
  set_option(fd, IPPROTO_TCP, {TCP_KEEPIDLE, 5});
  set_option(fd, IPPROTO_TCP, {TCP_KEEPINTVL, 5});
  set_option(fd, IPPROTO_TCP, {TCP_KEEPCNT, 2});
  set_option(fd, IPPROTO_TCP,
             {TCP_USER_TIMEOUT, static_cast<int>(PeerMesh::kSilence.count_ns() / 1'000'000)});
}

bool try_again() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

struct PeerMesh::Connection {
  struct Outgoing {
    Header header{};
    std::vector<std::byte> copy;
    std::span<const std::byte> bytes;
    std::size_t sent = 0;  ///< bytes of header and body
  };

  explicit Connection(FileDescriptor socket) : fd(std::move(socket)) {}

  FileDescriptor fd;
  bool stranger = false;
  bool over = false;
  bool done = false;  ///< it has sent a farewell
  std::deque<Outgoing> outgoing;
  Header header{};
  std::size_t header_read = 0;
  PeerMessage incoming;
  std::size_t body_read = 0;
  std::deque<PeerMessage> arrived;
  std::vector<std::vector<std::byte>> spare;  ///< buffers of data already taken

  /// Nothing is read from a stranger beyond its hello.
  [[nodiscard]] bool waits_for_its_name() const { return stranger && !arrived.empty(); }

  /// Called when the header is complete: allocates the message, or ends a connection that sent an
  /// invalid header.
  void begin_body() {
    const auto kind = load_little_endian<std::uint32_t>(header.data());
    const auto bytes = load_little_endian<std::uint64_t>(header.data() + 8);
    const bool data = static_cast<MessageKind>(kind) == MessageKind::kData && !stranger;
    if (kind < 1 || kind > 5 || bytes > (data ? kDataBytesMax : kWordsBytesMax)) {
      over = true;
      return;
    }
    incoming.kind = static_cast<MessageKind>(kind);
    incoming.generation = load_little_endian<std::uint32_t>(header.data() + 4);
    if (!spare.empty()) {
      incoming.bytes = std::move(spare.back());
      spare.pop_back();
    }
    incoming.bytes.resize(bytes);
  }

  void end_body() {
    done = done || incoming.kind == MessageKind::kFarewell;
    arrived.push_back(std::exchange(incoming, {}));
    header_read = 0;
    body_read = 0;
  }
};

PeerMesh::PeerMesh(FileDescriptor listener, std::string endpoint)
    : listener_(std::move(listener)), endpoint_(std::move(endpoint)) {}
PeerMesh::PeerMesh(PeerMesh&&) noexcept = default;
PeerMesh& PeerMesh::operator=(PeerMesh&&) noexcept = default;
PeerMesh::~PeerMesh() = default;

Result<PeerMesh> PeerMesh::listen(const Ports& ports) {
  const bool v6 = ports.address.find(':') != std::string::npos;
  std::string why = "no port was asked for";
  constexpr std::uint32_t kPortMax = 65535;
  for (std::uint32_t i = 0; i < ports.count && ports.first + i <= kPortMax; ++i) {
    const std::uint32_t port = ports.first == 0 ? 0u : ports.first + i;
    const std::string text = v6 ? fmt::format("tcp:[{}]:{}", ports.address, port)
                                : fmt::format("tcp:{}:{}", ports.address, port);
    Result<SocketAddress> address = SocketAddress::parse(text);
    if (!address) return forward_error(address);
    FileDescriptor fd(::socket(address->family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    set_option(fd.get(), SOL_SOCKET, {SO_REUSEADDR, 1});
    if (::bind(fd.get(), address->get(), address->size()) == 0 && ::listen(fd.get(), 128) == 0) {
      std::string endpoint = SocketAddress::local_of(fd.get()).text();
      return PeerMesh(std::move(fd), std::move(endpoint));
    }
    why = fmt::format("{}: {}", text, std::strerror(errno));
  }
  return environment_error(
      fmt::format("no port to meet peers at, of {} from {} on: {}", ports.count, ports.first, why));
}

Status PeerMesh::connect(MemberId peer, const std::string& endpoint,
                         std::span<const std::byte> hello) {
  Result<SocketAddress> address = SocketAddress::parse(endpoint);
  if (!address) return forward_error(address);
  FileDescriptor fd(::socket(address->family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  int error = ::connect(fd.get(), address->get(), address->size()) == 0 ? 0 : errno;
  if (error == EINPROGRESS || error == EINTR) {
    pollfd wait{fd.get(), POLLOUT, 0};
    error = ETIMEDOUT;
    socklen_t size = sizeof error;
    const auto patience = static_cast<int>(kConnect.count_ns() / 1'000'000);
    if (::poll(&wait, 1, patience) == 1) {
      (void)::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  if (error != 0) return environment_error(fmt::format("{}: {}", endpoint, std::strerror(error)));
  prepare(fd.get());
  peers_[peer] = std::make_unique<Connection>(std::move(fd));
  send_copy(peer, {MessageKind::kHello, 0, hello});
  return {};
}

std::vector<PeerMesh::Stranger> PeerMesh::strangers() const {
  std::vector<Stranger> known;
  for (const auto& [key, connection] : strangers_) {
    if (connection->arrived.empty()) continue;
    const PeerMessage& first = connection->arrived.front();
    if (first.kind == MessageKind::kHello) known.push_back({key, first.bytes});
  }
  return known;
}

void PeerMesh::adopt(std::uint64_t stranger, std::optional<MemberId> as) {
  const auto found = strangers_.find(stranger);
  if (found == strangers_.end()) return;
  if (as) {
    found->second->arrived.pop_front();
    found->second->stranger = false;
    peers_[*as] = std::move(found->second);
  }
  strangers_.erase(found);
}

PeerMesh::Connection* PeerMesh::find(MemberId peer) const {
  const auto found = peers_.find(peer);
  return found == peers_.end() ? nullptr : found->second.get();
}

bool PeerMesh::connected(MemberId peer) const {
  const Connection* connection = find(peer);
  return connection != nullptr && !connection->over;
}

bool PeerMesh::lost(MemberId peer) const {
  const Connection* connection = find(peer);
  return connection != nullptr && connection->over && !connection->done;
}

bool PeerMesh::left(MemberId peer) const {
  const Connection* connection = find(peer);
  return connection != nullptr && connection->done;
}

void PeerMesh::drop(MemberId peer) { peers_.erase(peer); }

void PeerMesh::rename(MemberId peer, MemberId to) {
  auto node = peers_.extract(peer);
  if (node.empty()) return;
  peers_.erase(to);
  node.key() = to;
  peers_.insert(std::move(node));
}

void PeerMesh::send(MemberId peer, const OutgoingMessage& message) {
  Connection* to = find(peer);
  if (to == nullptr || to->over) return;
  to->outgoing.push_back({header_of(message), {}, message.bytes});
  write_to(*to);
}

void PeerMesh::send_copy(MemberId peer, const OutgoingMessage& message) {
  Connection* to = find(peer);
  if (to == nullptr || to->over) return;
  Connection::Outgoing& queued = to->outgoing.emplace_back();
  queued.header = header_of(message);
  queued.copy.assign(message.bytes.begin(), message.bytes.end());
  queued.bytes = queued.copy;
  write_to(*to);
}

void PeerMesh::keep_pending() {
  for (auto& [peer, connection] : peers_) {
    for (Connection::Outgoing& queued : connection->outgoing) {
      if (!queued.copy.empty() || queued.bytes.empty()) continue;
      queued.copy.assign(queued.bytes.begin(), queued.bytes.end());
      queued.bytes = queued.copy;
    }
  }
}

bool PeerMesh::idle(MemberId peer) const {
  const Connection* connection = find(peer);
  return connection == nullptr || connection->over || connection->outgoing.empty();
}

std::optional<PeerMessage> PeerMesh::take(MemberId peer, MessageKind kind, std::uint32_t newest) {
  Connection* from = find(peer);
  if (from == nullptr) return std::nullopt;
  const auto found = std::find_if(from->arrived.begin(), from->arrived.end(),
                                  [kind, newest](const PeerMessage& message) {
                                    return message.kind == kind && message.generation <= newest;
                                  });
  if (found == from->arrived.end()) return std::nullopt;
  PeerMessage message = std::move(*found);
  from->arrived.erase(found);
  return message;
}

void PeerMesh::recycle(MemberId peer, PeerMessage message) {
  Connection* from = find(peer);
  if (from != nullptr && from->spare.empty()) from->spare.push_back(std::move(message.bytes));
}

void PeerMesh::forget_before(std::uint32_t generation) {
  for (auto& [peer, connection] : peers_) {
    std::erase_if(connection->arrived, [generation](const PeerMessage& message) {
      const bool of_one =
          message.kind == MessageKind::kData || message.kind == MessageKind::kReport;
      return of_one && message.generation < generation;
    });
  }
}

bool PeerMesh::reported(MemberId peer, std::uint32_t generation) const {
  const Connection* from = find(peer);
  if (from == nullptr) return false;
  return std::any_of(from->arrived.begin(), from->arrived.end(),
                     [generation](const PeerMessage& message) {
                       const bool report = message.kind == MessageKind::kReport;
                       return report && message.generation >= generation;
                     });
}

void PeerMesh::pump(Duration patience) {
  const short more = strangers_.size() < kStrangersMax ? POLLIN : 0;
  std::vector<pollfd> polled{{listener_.get(), more, 0}};
  std::vector<Connection*> connections{nullptr};
  const auto watch = [&](Connection& connection) {
    if (connection.over || connection.waits_for_its_name()) return;
    const short events = connection.outgoing.empty() ? POLLIN : POLLIN | POLLOUT;
    polled.push_back({connection.fd.get(), events, 0});
    connections.push_back(&connection);
  };
  for (const auto& [peer, connection] : peers_) watch(*connection);
  for (const auto& [key, connection] : strangers_) watch(*connection);
  const auto wait = static_cast<int>((patience.count_ns() + 999'999) / 1'000'000);
  if (::poll(polled.data(), polled.size(), wait) <= 0) return;
  for (std::size_t i = 1; i < polled.size(); ++i) {
    if ((polled[i].revents & POLLOUT) != 0) write_to(*connections[i]);
    if ((polled[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) read_from(*connections[i]);
  }
  if (polled[0].revents != 0) accept_all();
  std::erase_if(strangers_, [](const auto& entry) { return entry.second->over; });
}

void PeerMesh::accept_all() {
  while (strangers_.size() < kStrangersMax) {
    FileDescriptor fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) return;
    prepare(fd.get());
    auto connection = std::make_unique<Connection>(std::move(fd));
    connection->stranger = true;
    strangers_[next_stranger_++] = std::move(connection);
  }
}

void PeerMesh::read_from(Connection& from) {
  while (!from.over && !from.waits_for_its_name()) {
    const bool in_header = from.header_read < kHeaderBytes;
    char* to = in_header ? from.header.data() + from.header_read
                         : reinterpret_cast<char*>(from.incoming.bytes.data()) + from.body_read;
    const std::size_t room =
        in_header ? kHeaderBytes - from.header_read : from.incoming.bytes.size() - from.body_read;
    const ssize_t got = ::recv(from.fd.get(), to, room, 0);
    if (got < 0 && try_again()) return;
    if (got <= 0) {
      from.over = true;
      return;
    }
    (in_header ? from.header_read : from.body_read) += static_cast<std::size_t>(got);
    if (in_header && from.header_read == kHeaderBytes) {
      from.begin_body();
    }
    const bool whole = from.header_read == kHeaderBytes && !from.over &&
                       from.body_read == from.incoming.bytes.size();
    if (whole) from.end_body();
  }
}

void PeerMesh::write_to(Connection& to) {
  while (!to.outgoing.empty() && !to.over) {
    Connection::Outgoing& next = to.outgoing.front();
    std::array<iovec, 2> parts{};
    const std::size_t head = std::min(next.sent, kHeaderBytes);
    const std::size_t body = next.sent - head;
    parts[0] = {next.header.data() + head, kHeaderBytes - head};
    parts[1] = {const_cast<std::byte*>(next.bytes.data()) + body, next.bytes.size() - body};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = ::sendmsg(to.fd.get(), &message, MSG_NOSIGNAL);
    if (sent < 0 && try_again()) return;
    if (sent < 0) {
      // What it sent before it died is still read; the end of its stream then shows that it is
      // lost.
      to.outgoing.clear();
      (void)::shutdown(to.fd.get(), SHUT_WR);
      return;
    }
    next.sent += static_cast<std::size_t>(sent);
    if (next.sent == kHeaderBytes + next.bytes.size()) to.outgoing.pop_front();
  }
}

}  // namespace orrery

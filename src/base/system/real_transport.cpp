#include "base/system/real_transport.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include "base/assert.hpp"

namespace orrery {
namespace {

constexpr std::size_t kHeaderBytes = 4;
constexpr std::size_t kChunkBytes = std::size_t{1} << 16;
constexpr int kAcceptsPerRound = 64;

std::string reason_of(int cause) { return std::generic_category().message(cause); }

tl::unexpected<Error> failed_to(std::string_view what, const SocketAddress& address) {
  const int cause = errno;
  return environment_error(
      fmt::format("{}: cannot {}: {}", address.text(), what, reason_of(cause)));
}

std::array<char, kHeaderBytes> header_of(std::size_t size) {
  std::array<char, kHeaderBytes> header{};
  for (std::size_t i = 0; i < kHeaderBytes; ++i) {
    header[i] = static_cast<char>(static_cast<std::uint8_t>(size >> (8 * i)));
  }
  return header;
}

std::size_t size_in(std::string_view header) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < kHeaderBytes; ++i) {
    size |= std::size_t{static_cast<std::uint8_t>(header[i])} << (8 * i);
  }
  return size;
}

FileDescriptor make_socket(const SocketAddress& address) {
  return FileDescriptor(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

void set_option(int fd, int level, int option) {
  const int on = 1;
  // Both options set here only tune; a socket without them still works.
  static_cast<void>(::setsockopt(fd, level, option, &on, sizeof on));
}

void send_without_delay(const FileDescriptor& fd, const SocketAddress& address) {
  if (address.family() != AF_UNIX) set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY);
}

// Makes the path of a unix address free, unless a process listens there or it is no socket.
Status remove_stale_socket(const SocketAddress& address) {
  const std::string path = address.path();
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return {};  // bind() will say what is wrong, if anything
  if (!S_ISSOCK(found.st_mode)) {
    return environment_error(fmt::format("{}: a file that is no socket is there", address.text()));
  }
  const FileDescriptor probe = make_socket(address);
  if (!probe.valid()) return failed_to("make a socket", address);
  if (::connect(probe.get(), address.get(), address.size()) == 0 || errno != ECONNREFUSED) {
    return environment_error(
        fmt::format("{}: another process listens there already", address.text()));
  }
  if (::unlink(path.c_str()) != 0) return failed_to("remove the stale socket", address);
  return {};
}

Result<FileDescriptor> listening_socket(const SocketAddress& address) {
  if (address.family() == AF_UNIX) {
    if (Status removed = remove_stale_socket(address); !removed) return forward_error(removed);
  }
  FileDescriptor fd = make_socket(address);
  if (!fd.valid()) return failed_to("make a socket", address);
  if (address.family() == AF_UNIX) {
    // Before bind(), so that the file never has wider rights, not even for a moment.
    if (::fchmod(fd.get(), 0600) != 0) return failed_to("restrict the socket", address);
  } else {
    set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR);
  }
  if (::bind(fd.get(), address.get(), address.size()) != 0) return failed_to("bind", address);
  if (::listen(fd.get(), SOMAXCONN) != 0) return failed_to("listen", address);
  return fd;
}

FileDescriptor open_spare() { return FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

}  // namespace

struct RealTransport::Connection final : ReadyHandler {
  enum class Phase { kConnecting, kOpen };

  Connection(RealTransport& own, ConnectionId own_id, ConnectionEvents& own_events)
      : transport(own), id(own_id), events(own_events) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() override {
    if (watch != WatchId::kNone) transport.loop_.unwatch(watch);
  }

  void on_ready(std::uint32_t ready) override { transport.connection_ready(id, ready); }
  [[nodiscard]] std::size_t unsent() const { return out.size() - sent; }

  RealTransport& transport;
  ConnectionId id;
  ConnectionEvents& events;
  FileDescriptor fd;
  WatchId watch = WatchId::kNone;
  Phase phase = Phase::kOpen;
  std::uint32_t watched = EPOLLIN;
  std::string address;
  std::string in;        ///< received, not yet a whole frame
  std::string out;       ///< frames with headers; the first `sent` bytes are gone
  std::size_t sent = 0;  ///< <= out.size()
  int send_failure = 0;  ///< errno of the send after which nothing is sent any more
};

struct RealTransport::Listener final : ReadyHandler {
  Listener(RealTransport& own, ListenerId own_id, ListenerEvents& own_events)
      : transport(own), id(own_id), events(own_events) {}
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() override {
    if (watch != WatchId::kNone) transport.loop_.unwatch(watch);
    if (address.family() == AF_UNIX) ::unlink(address.path().c_str());
  }

  void on_ready(std::uint32_t) override { transport.listener_ready(id); }

  RealTransport& transport;
  ListenerId id;
  ListenerEvents& events;
  FileDescriptor fd;
  WatchId watch = WatchId::kNone;
  SocketAddress address;
};

RealTransport::RealTransport(RealLoop& loop, const TransportLimits& limits)
    : loop_(loop),
      limits_(limits),
      spare_(open_spare()),
      chunk_(std::make_unique_for_overwrite<char[]>(kChunkBytes)) {
  ORRERY_ASSERT(limits.queue_bytes_max >= limits.frame_bytes_max + kHeaderBytes,
                "the queue holds at least one frame");
  ORRERY_ASSERT(limits.frame_bytes_max <= std::numeric_limits<std::uint32_t>::max(),
                "a length on the wire has 32 bits");
}

RealTransport::~RealTransport() = default;

Result<Listening> RealTransport::listen(std::string_view address, ListenerEvents& events) {
  const Result<SocketAddress> parsed = SocketAddress::parse(address);
  if (!parsed) return tl::unexpected<Error>(parsed.error());
  Result<FileDescriptor> fd = listening_socket(*parsed);
  if (!fd) return forward_error(fd);
  auto listener = std::make_unique<Listener>(*this, ListenerId{next_id_++}, events);
  listener->fd = *std::move(fd);
  listener->address =
      parsed->family() == AF_UNIX ? *parsed : SocketAddress::local_of(listener->fd.get());
  Result<WatchId> watch = loop_.watch(listener->fd.get(), EPOLLIN, *listener);
  if (!watch) return forward_error(watch);
  listener->watch = *watch;
  Listening listening{listener->id, listener->address.text()};
  listeners_.emplace(listener->id, std::move(listener));
  return listening;
}

Result<ConnectionId> RealTransport::connect(std::string_view address, ConnectionEvents& events) {
  const Result<SocketAddress> parsed = SocketAddress::parse(address);
  if (!parsed) return tl::unexpected<Error>(parsed.error());
  auto made = std::make_unique<Connection>(*this, ConnectionId{next_id_++}, events);
  Connection& connection = *connections_.emplace(made->id, std::move(made)).first->second;
  const ConnectionId id = connection.id;
  connection.phase = Connection::Phase::kConnecting;
  connection.watched = EPOLLOUT;
  connection.address = address;
  connection.fd = make_socket(*parsed);
  bool started = connection.fd.valid();
  if (started) {
    send_without_delay(connection.fd, *parsed);
    // Interrupted, it goes on by itself, as when it is in progress.
    started = ::connect(connection.fd.get(), parsed->get(), parsed->size()) == 0 ||
              errno == EINPROGRESS || errno == EINTR;
  }
  std::string why = started ? "" : reason_of(errno);
  if (started) {
    if (const Status status = start(connection); !status) why = status.error().message;
  }
  if (!why.empty()) {
    connection.send_failure = ENOTCONN;
    loop_.post([this, id, why] { finish(id, CloseReason::kConnectFailed, why); });
  }
  return id;
}

SendOutcome RealTransport::send(ConnectionId connection, std::string_view frame) {
  Connection* found = find(connection);
  if (found == nullptr || found->send_failure != 0) return SendOutcome::kClosed;
  if (frame.size() > limits_.frame_bytes_max) return SendOutcome::kTooLarge;
  if (found->unsent() + kHeaderBytes + frame.size() > limits_.queue_bytes_max) {
    return SendOutcome::kOverflow;
  }
  const bool idle = found->unsent() == 0;
  const auto header = header_of(frame.size());
  found->out.append(header.data(), header.size());
  found->out.append(frame);
  if (idle && found->phase == Connection::Phase::kOpen) flush(*found);
  return SendOutcome::kQueued;
}

void RealTransport::close(ConnectionId connection) { connections_.erase(connection); }

void RealTransport::close(ListenerId listener) { listeners_.erase(listener); }

RealTransport::Connection* RealTransport::find(ConnectionId id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

Status RealTransport::start(Connection& connection) {
  Result<WatchId> watch = loop_.watch(connection.fd.get(), connection.watched, connection);
  if (!watch) return forward_error(watch);
  connection.watch = *watch;
  return {};
}

void RealTransport::connection_ready(ConnectionId id, std::uint32_t events) {
  Connection* connection = find(id);
  if (connection->phase == Connection::Phase::kConnecting) {
    if (!finish_connecting(*connection)) return;
  }
  if ((events & EPOLLOUT) != 0) flush(*connection);
  if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) receive(id);
}

bool RealTransport::finish_connecting(Connection& connection) {
  int cause = 0;
  socklen_t size = sizeof cause;
  ::getsockopt(connection.fd.get(), SOL_SOCKET, SO_ERROR, &cause, &size);
  if (cause != 0) {
    finish(connection.id, CloseReason::kConnectFailed, reason_of(cause));
    return false;
  }
  connection.phase = Connection::Phase::kOpen;
  watch_for_room(connection);
  return true;
}

void RealTransport::flush(Connection& connection) {
  while (connection.unsent() > 0) {
    const ssize_t sent = ::send(connection.fd.get(), connection.out.data() + connection.sent,
                                connection.unsent(), MSG_NOSIGNAL);
    if (sent >= 0) {
      connection.sent += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      // What the peer sent before it went is still to be read; then receive() finds the end.
      connection.send_failure = errno;
      connection.sent = connection.out.size();
      ::shutdown(connection.fd.get(), SHUT_RDWR);
    }
  }
  if (connection.unsent() == 0) {
    connection.out = {};
    connection.sent = 0;
  } else if (connection.sent > connection.unsent()) {
    connection.out.erase(0, connection.sent);  // at most half is moved: O(1) a byte over time
    connection.sent = 0;
  }
  watch_for_room(connection);
}

void RealTransport::watch_for_room(Connection& connection) {
  const std::uint32_t wanted = connection.unsent() > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN;
  if (wanted == connection.watched) return;
  connection.watched = wanted;
  loop_.rewatch(connection.watch, wanted);
}

void RealTransport::receive(ConnectionId id) {
  Connection* connection = find(id);
  const ssize_t got = ::recv(connection->fd.get(), chunk_.get(), kChunkBytes, 0);
  if (got > 0) {
    connection->in.append(chunk_.get(), static_cast<std::size_t>(got));
    deliver_frames(id);
  } else if (got == 0) {
    end_of_stream(*connection);
  } else if (errno != EAGAIN && errno != EINTR) {
    finish(id, CloseReason::kBroken, reason_of(errno));
  }
}

void RealTransport::deliver_frames(ConnectionId id) {
  Connection* connection = find(id);
  // Out of the connection, so that the bytes survive a callback that closes it.
  std::string bytes = std::move(connection->in);
  connection->in = {};
  std::string_view rest = bytes;
  while (rest.size() >= kHeaderBytes) {
    const std::size_t size = size_in(rest);
    if (size > limits_.frame_bytes_max) {
      finish(id, CloseReason::kFrameTooLarge,
             fmt::format("the peer announced a frame of {} bytes; the limit is {}", size,
                         limits_.frame_bytes_max));
      return;
    }
    if (rest.size() - kHeaderBytes < size) break;
    connection->events.on_frame(id, rest.substr(kHeaderBytes, size));
    rest.remove_prefix(kHeaderBytes + size);
    connection = find(id);
    if (connection == nullptr) return;
  }
  if (rest.empty()) return;
  bytes.erase(0, bytes.size() - rest.size());
  connection->in = std::move(bytes);
}

void RealTransport::end_of_stream(const Connection& connection) {
  if (connection.send_failure != 0) {
    finish(connection.id, CloseReason::kBroken, reason_of(connection.send_failure));
  } else if (!connection.in.empty()) {
    finish(connection.id, CloseReason::kBroken,
           fmt::format("the peer closed it {} bytes into a frame", connection.in.size()));
  } else {
    finish(connection.id, CloseReason::kPeerClosed, "the peer closed it");
  }
}

void RealTransport::finish(ConnectionId id, CloseReason reason, std::string why) {
  auto node = connections_.extract(id);
  if (node.empty()) return;
  ConnectionEvents& events = node.mapped()->events;
  Closed closed{reason, Error{ErrorKind::kEnvironment,
                              fmt::format("connection with {}: {}", node.mapped()->address, why),
                              {}}};
  node.mapped().reset();
  events.on_close(id, closed);
}

void RealTransport::listener_ready(ListenerId id) {
  for (int i = 0; i < kAcceptsPerRound; ++i) {
    const auto found = listeners_.find(id);
    if (found == listeners_.end()) return;
    Listener& listener = *found->second;
    FileDescriptor fd(::accept4(listener.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) {
      const int cause = errno;
      if (cause == EMFILE || cause == ENFILE) turn_away(listener);
      if (cause == EINTR || cause == ECONNABORTED) continue;
      return;
    }
    const ConnectionId connection = adopt(std::move(fd), listener);
    if (connection == ConnectionId::kNone) continue;
    ListenerEvents& events = listener.events;
    events.on_accept({id, connection, find(connection)->address});
  }
}

void RealTransport::turn_away(const Listener& listener) {
  spare_.reset();
  {
    const FileDescriptor newcomer(::accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  spare_ = open_spare();
}

ConnectionId RealTransport::adopt(FileDescriptor fd, const Listener& listener) {
  auto connection = std::make_unique<Connection>(*this, ConnectionId{next_id_++}, listener.events);
  send_without_delay(fd, listener.address);
  connection->address = listener.address.family() == AF_UNIX
                            ? listener.address.text()
                            : SocketAddress::peer_of(fd.get()).text();
  connection->fd = std::move(fd);
  if (!start(*connection)) return ConnectionId::kNone;
  const ConnectionId id = connection->id;
  connections_.emplace(id, std::move(connection));
  return id;
}

}  // namespace orrery

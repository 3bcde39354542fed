#include "http/web_server.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/system/file_descriptor.hpp"
#include "base/system/socket_address.hpp"
#include "http/connection/web_connection.hpp"

namespace orrery {
namespace {

constexpr int kAcceptsPerRound = 64;

tl::unexpected<Error> cannot_listen(const std::string& address, const char* step) {
  return environment_error(
      fmt::format("{}: cannot {}: {}", address, step, std::generic_category().message(errno)));
}

FileDescriptor open_spare() { return FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

Result<FileDescriptor> listening_socket(const SocketAddress& address,
                                        const WebServerOptions& options) {
  FileDescriptor fd(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return cannot_listen(options.address, "make a socket");
  const int on = 1;
  static_cast<void>(::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
  if (options.sharing == PortSharing::kShared &&
      ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) {
    return cannot_listen(options.address, "share the port");
  }
  if (::bind(fd.get(), address.get(), address.size()) != 0) {
    return cannot_listen(options.address, "bind");
  }
  if (::listen(fd.get(), SOMAXCONN) != 0) return cannot_listen(options.address, "listen");
  return fd;
}

Duration sweep_interval(const WebServerOptions& options) {
  const Duration shortest =
      std::min({options.idle_max, options.receive_max, options.stall_max, Duration::seconds(2)});
  return Duration::nanoseconds(std::max<std::int64_t>(shortest.count_ns() / 2, 1'000'000));
}

class SocketWebServer final : public WebServer, public ReadyHandler, public WebConnectionOwner {
 public:
  SocketWebServer(RealLoop& loop, const WebServerOptions& options, WebHandler& handler)
      : shared_{loop,
                options,
                handler,
                {},
                std::make_unique_for_overwrite<char[]>(kSocketReadBytes),
                {}},
        spare_(open_spare()) {}
  SocketWebServer(const SocketWebServer&) = delete;
  SocketWebServer& operator=(const SocketWebServer&) = delete;
  ~SocketWebServer() override {
    close_listener();
    shared_.loop.cancel(sweep_);
  }

  Status start() {
    const Result<SocketAddress> parsed = SocketAddress::parse("tcp:" + shared_.options.address);
    if (!parsed) {
      return input_error({}, fmt::format("\"{}\": expected HOST:PORT with a numeric address, such "
                                         "as 127.0.0.1:8000 or [::1]:8000",
                                         shared_.options.address));
    }
    Result<FileDescriptor> fd = listening_socket(*parsed, shared_.options);
    if (!fd) return forward_error(fd);
    listener_ = *std::move(fd);
    address_ = SocketAddress::local_of(listener_.get()).text().substr(std::size("tcp:") - 1);
    Result<WatchId> watch = shared_.loop.watch(listener_.get(), EPOLLIN, *this);
    if (!watch) return forward_error(watch);
    watch_ = *watch;
    sweep();
    return {};
  }

  const std::string& address() const override { return address_; }
  std::size_t connections() const override { return connections_.size(); }

  void stop(Callback stopped) override {
    close_listener();
    stopped_ = std::move(stopped);
    shared_.stage = WebServerShared::Stage::kStopping;
    // What dies leaves the map in a later round.
    for (const auto& [id, connection] : connections_) connection->settle();
    if (connections_.empty()) schedule_burial();
  }

  void on_ready(std::uint32_t) override {
    for (int i = 0; i < kAcceptsPerRound; ++i) {
      FileDescriptor fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd.valid()) {
        if (errno == EINTR || errno == ECONNABORTED) continue;
        if (errno == EMFILE || errno == ENFILE) turn_away();
        return;
      }
      if (connections_.size() < shared_.options.connections_max) adopt(std::move(fd));
    }
  }

  void bury(std::uint64_t connection) override {
    dead_.push_back(connection);
    if (dead_.size() == 1) schedule_burial();
  }

  void post_advance(std::uint64_t connection) override {
    shared_.loop.post([this, connection, alive = std::weak_ptr<const bool>(alive_)] {
      if (alive.expired()) return;
      const auto found = connections_.find(connection);
      if (found != connections_.end()) found->second->advance();
    });
  }

 private:
  void adopt(FileDescriptor fd) {
    const int on = 1;
    static_cast<void>(::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    const std::uint64_t id = next_id_++;
    auto connection = std::make_unique<WebConnection>(shared_, *this, id, std::move(fd));
    if (connection->start()) connections_.emplace(id, std::move(connection));
  }

  // Closes a newcomer for which there is no descriptor; else it would be ready again and again.
  void turn_away() {
    spare_.reset();
    {
      const FileDescriptor newcomer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    }
    spare_ = open_spare();
  }

  void close_listener() {
    if (watch_ != WatchId::kNone) shared_.loop.unwatch(std::exchange(watch_, WatchId::kNone));
    listener_.reset();
  }

  void schedule_burial() {
    shared_.loop.post([this, alive = std::weak_ptr<const bool>(alive_)] {
      if (!alive.expired()) bury_dead();
    });
  }

  void bury_dead() {
    for (const std::uint64_t id : std::exchange(dead_, {})) connections_.erase(id);
    if (connections_.empty() && stopped_) std::exchange(stopped_, {})();
  }

  void sweep() {
    const Instant now = shared_.clock.now_monotonic();
    for (const auto& [id, connection] : connections_) connection->check_time(now);
    sweep_ = shared_.loop.call_after(sweep_interval(shared_.options), [this] { sweep(); });
  }

  WebServerShared shared_;
  FileDescriptor listener_;
  FileDescriptor spare_;
  std::string address_;
  WatchId watch_ = WatchId::kNone;
  TimerId sweep_;
  std::uint64_t next_id_ = 1;
  std::unordered_map<std::uint64_t, std::unique_ptr<WebConnection>> connections_;
  std::vector<std::uint64_t> dead_;
  Callback stopped_;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace

Result<std::unique_ptr<WebServer>> WebServer::listen(RealLoop& loop,
                                                     const WebServerOptions& options,
                                                     WebHandler& handler) {
  auto server = std::make_unique<SocketWebServer>(loop, options, handler);
  if (Status started = server->start(); !started) return forward_error(started);
  return server;
}

}  // namespace orrery

// http/loop_test.hpp - an event loop that a test drives, and a client that writes raw bytes.
//
// A test makes a LoopRunner first; it ends last. The sockets are real, on loopback; the tests wait
// for conditions, with a limit that only a broken program reaches.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <charconv>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/system/file_descriptor.hpp"
#include "base/system/real_clock.hpp"
#include "base/system/real_loop.hpp"
#include "base/system/socket_address.hpp"

namespace orrery {

class LoopRunner {
 public:
  LoopRunner() : loop_(*RealLoop::create()) { tick(); }

  [[nodiscard]] RealLoop& loop() { return *loop_; }

  /// Runs rounds until the condition holds; returns whether it does.
  bool run_until(const std::function<bool()>& condition) {
    const Instant limit = clock_.now_monotonic() + Duration::seconds(20);
    while (!condition()) {
      if (clock_.now_monotonic() > limit) return false;
      loop_->run_round();
    }
    return true;
  }

  void run_for(Duration duration) {
    const Instant end = clock_.now_monotonic() + duration;
    run_until([&] { return clock_.now_monotonic() >= end; });
  }

 private:
  void tick() {
    loop_->call_after(Duration::milliseconds(2), [this] { tick(); });
  }

  RealClock clock_;
  std::unique_ptr<RealLoop> loop_;
};

/// A socket whose bytes the test writes and reads itself.
class RawPeer {
 public:
  explicit RawPeer(FileDescriptor fd) : fd_(std::move(fd)) { tune(); }
  /// Connects to "HOST:PORT".
  explicit RawPeer(const std::string& address) {
    const Result<SocketAddress> to = SocketAddress::parse("tcp:" + address);
    const int made = ::socket(to->family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0) {
      ADD_FAILURE() << "no socket for " << address;
      return;
    }
    fd_ = FileDescriptor(made);
    EXPECT_EQ(::connect(made, to->get(), to->size()), 0);
    tune();
  }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  /// Sends what fits without waiting; returns how much.
  std::size_t send_some(std::string_view bytes) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 ? 0 : static_cast<std::size_t>(sent);
  }

  /// Takes in what has arrived. Everything so far stays in received().
  void read() {
    char chunk[65536];
    while (true) {
      const ssize_t got = ::recv(fd_.get(), chunk, sizeof chunk, MSG_DONTWAIT);
      if (got > 0) {
        received_.append(chunk, static_cast<std::size_t>(got));
        continue;
      }
      if (got == 0 || (errno != EAGAIN && errno != EINTR)) ended_ = true;
      return;
    }
  }

  [[nodiscard]] std::string& received() { return received_; }
  [[nodiscard]] bool ended() const { return ended_; }
  void close() { fd_.reset(); }
  /// Closes with a reset.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    fd_.reset();
  }

 private:
  void tune() {
    const int on = 1;
    ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }

  FileDescriptor fd_;
  std::string received_;
  bool ended_ = false;
};

/// A listening socket whose connections the test takes itself.
class RawListener {
 public:
  RawListener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    const Result<SocketAddress> any = SocketAddress::parse("tcp:127.0.0.1:0");
    EXPECT_EQ(::bind(fd_.get(), any->get(), any->size()), 0);
    EXPECT_EQ(::listen(fd_.get(), 64), 0);
    address_ = SocketAddress::local_of(fd_.get()).text().substr(4);
  }

  [[nodiscard]] const std::string& address() const { return address_; }
  /// A connection that has come, or null.
  [[nodiscard]] std::unique_ptr<RawPeer> accept() {
    FileDescriptor fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    return fd.valid() ? std::make_unique<RawPeer>(std::move(fd)) : nullptr;
  }
  void close() { fd_.reset(); }

 private:
  FileDescriptor fd_;
  std::string address_;
};

}  // namespace orrery

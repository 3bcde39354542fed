// store/etcd/tcp_relay_test.hpp - a relay between a client and one address, which can lose answers:
// what the client sent arrives, and what comes back does not.
//
// A thread of its own carries the bytes. A connection over which an answer was lost is closed: at
// once, or only when answers pass again, so that the client hears nothing until then.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/system/file_descriptor.hpp"

namespace orrery {

class TcpRelay {
 public:
  enum class Answers : std::uint8_t { kPass, kSilent, kCut };

  explicit TcpRelay(int to_port)
      : to_port_(to_port), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at = loopback(0);
    socklen_t size = sizeof at;
    auto* address = reinterpret_cast<sockaddr*>(&at);
    if (::bind(listener_.get(), address, size) != 0 || ::listen(listener_.get(), 16) != 0 ||
        ::getsockname(listener_.get(), address, &size) != 0 ||
        ::pipe2(wake_.data(), O_CLOEXEC) != 0) {
      return;
    }
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~TcpRelay() {
    ended_ = true;
    wake();
    if (thread_.joinable()) thread_.join();
    for (const int end : wake_) ::close(end);
  }
  TcpRelay(const TcpRelay&) = delete;
  TcpRelay& operator=(const TcpRelay&) = delete;

  [[nodiscard]] int port() const { return port_; }
  void set(Answers answers) {
    passing_ = 0;
    answers_ = answers;
    wake();
  }
  /// Lets about so many bytes of answers pass, and cuts connections after that.
  void cut_after(std::size_t bytes) {
    passing_ = bytes;
    answers_ = Answers::kCut;
  }
  /// Bytes of answers that were lost.
  [[nodiscard]] std::size_t lost() const { return lost_; }

 private:
  struct Pair {
    FileDescriptor client;
    FileDescriptor server;
    bool cut = false;  ///< answers of it were lost
  };

  static sockaddr_in loopback(int port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
  }
  void wake() const {
    const char any = 'w';
    static_cast<void>(!::write(wake_[1], &any, 1));
  }

  void accept() {
    Pair pair{FileDescriptor(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)),
              FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
    const sockaddr_in at = loopback(to_port_);
    if (::connect(pair.server.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) {
      pairs_.push_back(std::move(pair));
    }
  }

  /// Carries what has come in one direction. Returns false at the end of the connection.
  bool carry(Pair& pair, const FileDescriptor& from) {
    std::array<char, 65536> bytes{};
    const ssize_t size = ::recv(from.get(), bytes.data(), bytes.size(), 0);
    if (size <= 0) return false;
    const bool answer = &from == &pair.server;
    const Answers answers = answers_;
    if (answer && answers != Answers::kPass) {
      const std::size_t passing = passing_;
      passing_ = passing - std::min(passing, static_cast<std::size_t>(size));
      if (passing == 0) {
        pair.cut = true;
        lost_ += static_cast<std::size_t>(size);
        return answers == Answers::kSilent;
      }
    }
    const FileDescriptor& to = answer ? pair.client : pair.server;
    return ::send(to.get(), bytes.data(), static_cast<std::size_t>(size), MSG_NOSIGNAL) == size;
  }

  void run() {
    while (!ended_) {
      if (answers_ == Answers::kPass) {
        std::erase_if(pairs_, [](const Pair& pair) { return pair.cut; });
      }
      std::vector<pollfd> waits{{wake_[0], POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      waits.reserve(2 + 2 * pairs_.size());
      for (const Pair& pair : pairs_) {
        waits.push_back({pair.client.get(), POLLIN, 0});
        waits.push_back({pair.server.get(), POLLIN, 0});
      }
      ::poll(waits.data(), waits.size(), -1);
      std::array<char, 64> taken{};
      if (waits[0].revents != 0) {
        static_cast<void>(!::read(wake_[0], taken.data(), taken.size()));
      }
      std::vector<std::size_t> gone;
      gone.reserve(pairs_.size());
      for (std::size_t i = 0; 2 * i + 2 < waits.size(); ++i) {
        const bool asked = waits[2 * i + 2].revents != 0;
        const bool answered = waits[2 * i + 3].revents != 0;
        bool open = !asked || carry(pairs_[i], pairs_[i].client);
        open = open && (!answered || carry(pairs_[i], pairs_[i].server));
        if (!open) gone.push_back(i);
      }
      for (auto at = gone.rbegin(); at != gone.rend(); ++at) {
        pairs_.erase(pairs_.begin() + static_cast<std::ptrdiff_t>(*at));
      }
      if (waits[1].revents != 0) accept();
    }
  }

  int to_port_;
  int port_ = 0;
  FileDescriptor listener_;
  std::array<int, 2> wake_{-1, -1};
  std::atomic<Answers> answers_ = Answers::kPass;
  std::atomic<std::size_t> passing_ = 0;  ///< bytes of answers that pass before they are lost
  std::atomic<std::size_t> lost_ = 0;
  std::atomic<bool> ended_ = false;
  std::vector<Pair> pairs_;  ///< used by the thread alone
  std::thread thread_;
};

}  // namespace orrery

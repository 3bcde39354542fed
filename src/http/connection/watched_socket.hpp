// http/connection/watched_socket.hpp - a non-blocking socket that the loop watches, and the bytes
// that wait to leave by it.
//
// Owned by a connection, which is told when it is ready. Invariant: the loop tells of EPOLLOUT as
// long as bytes wait that a write has not placed. Cost: a system call where the events change.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "base/system/file_descriptor.hpp"
#include "base/system/real_loop.hpp"
#include "http/connection/output_queue.hpp"

namespace orrery {

class WatchedSocket {
 public:
  explicit WatchedSocket(RealLoop& loop, FileDescriptor fd = {})
      : loop_(loop), fd_(std::move(fd)) {}
  WatchedSocket(const WatchedSocket&) = delete;
  WatchedSocket& operator=(const WatchedSocket&) = delete;
  ~WatchedSocket() { close(); }

  /// Takes a socket over. Precondition: it has none.
  void open(FileDescriptor fd) { fd_ = std::move(fd); }
  /// Tells `handler` from now on. Error: the system is out of memory for the watch.
  [[nodiscard]] Status watch(std::uint32_t events, ReadyHandler& handler);
  /// Closes it; all calls but open() do nothing from then on.
  void close();

  [[nodiscard]] int get() const { return fd_.get(); }
  [[nodiscard]] bool valid() const { return fd_.valid(); }
  /// Whether the loop tells of the event.
  [[nodiscard]] bool watches(std::uint32_t event) const { return (events_ & event) != 0; }
  void watch_for(std::uint32_t events);
  /// Watches for these events beside EPOLLOUT, which stays as it is.
  void watch_input(std::uint32_t events) { watch_for((events_ & EPOLLOUT) | events); }

  /// Bytes that wait.
  [[nodiscard]] std::size_t buffered() const { return out_.size(); }
  /// Appends without writing.
  void hold(std::string_view bytes) { out_.hold(bytes); }
  /// Writes what waits and the pieces behind it, and watches for EPOLLOUT where some of it is left.
  [[nodiscard]] OutputQueue::Outcome write(std::initializer_list<std::string_view> pieces);
  /// Shuts both directions down. The loop then finds the end, outside of the caller's call.
  void break_off();

 private:
  RealLoop& loop_;
  FileDescriptor fd_;
  WatchId watch_ = WatchId::kNone;
  std::uint32_t events_ = 0;
  OutputQueue out_;
};

}  // namespace orrery

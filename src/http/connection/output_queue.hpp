// http/connection/output_queue.hpp - bytes on their way into a non-blocking socket.
//
// Owned by a connection. Pieces are written at once, together with what waits, by one sendmsg(2);
// what the network does not take is copied and waits for flush(). Invariant: bytes leave in the
// order of the calls. Cost: no copy while the network keeps up, amortised one otherwise.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace orrery {

/// What a connection reads from its socket at once.
inline constexpr std::size_t kSocketReadBytes = std::size_t{64} << 10;

class OutputQueue {
 public:
  enum class Outcome : std::uint8_t {
    kAll,     ///< nothing waits
    kSome,    ///< call flush() once the socket is writable
    kFailed,  ///< the connection is broken
  };

  /// Bytes that wait.
  [[nodiscard]] std::size_t size() const { return waiting_.size() - sent_; }
  /// Appends without writing.
  void hold(std::string_view bytes) { waiting_.append(bytes); }
  /// Writes what waits and the pieces behind it. At most 8 pieces.
  [[nodiscard]] Outcome write(int fd, std::initializer_list<std::string_view> pieces);
  [[nodiscard]] Outcome flush(int fd) { return write(fd, {}); }

 private:
  void keep(std::initializer_list<std::string_view> pieces, std::size_t sent);

  std::string waiting_;
  std::size_t sent_ = 0;  ///< of waiting_
  enum class Room : std::uint8_t { kMaybe, kNone } room_ = Room::kMaybe;
};

}  // namespace orrery

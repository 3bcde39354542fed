#include "http/connection/output_queue.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/assert.hpp"

namespace orrery {
namespace {

constexpr std::size_t kPiecesMax = 8;
/// Memory that a queue keeps once it is empty.
constexpr std::size_t kKeptMax = std::size_t{64} << 10;

iovec vector_of(std::string_view bytes) { return {const_cast<char*>(bytes.data()), bytes.size()}; }

}  // namespace

OutputQueue::Outcome OutputQueue::write(int fd, std::initializer_list<std::string_view> pieces) {
  ORRERY_ASSERT(pieces.size() <= kPiecesMax, "a write has few pieces");
  if (room_ == Room::kNone && pieces.size() > 0) {
    // The socket was full a moment ago; flush() follows when it is not.
    for (const std::string_view piece : pieces) waiting_.append(piece);
    return Outcome::kSome;
  }
  std::array<iovec, kPiecesMax + 1> parts{};
  std::size_t count = 0;
  std::size_t total = 0;
  const std::string_view waiting = std::string_view(waiting_).substr(sent_);
  if (!waiting.empty()) parts[count++] = vector_of(waiting);
  for (const std::string_view piece : pieces) {
    if (!piece.empty()) parts[count++] = vector_of(piece);
    total += piece.size();
  }
  total += waiting.size();
  if (total == 0) return Outcome::kAll;
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return Outcome::kFailed;
  const std::size_t taken = sent < 0 ? 0 : static_cast<std::size_t>(sent);
  if (taken == total) {
    waiting_.clear();
    if (waiting_.capacity() > kKeptMax) waiting_.shrink_to_fit();
    sent_ = 0;
    room_ = Room::kMaybe;
    return Outcome::kAll;
  }
  keep(pieces, taken);
  room_ = Room::kNone;
  return Outcome::kSome;
}

void OutputQueue::keep(std::initializer_list<std::string_view> pieces, std::size_t sent) {
  const std::size_t from_waiting = std::min(sent, size());
  sent_ += from_waiting;
  sent -= from_waiting;
  if (sent_ > size()) {
    waiting_.erase(0, sent_);  // at most half is moved: O(1) a byte over time
    sent_ = 0;
  }
  for (const std::string_view piece : pieces) {
    const std::size_t skipped = std::min(sent, piece.size());
    waiting_.append(piece.substr(skipped));
    sent -= skipped;
  }
}

}  // namespace orrery

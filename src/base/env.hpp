// base/env.hpp - the seam between Orrery and the operating system: clock, timers, entropy, storage,
// transport and the inbox of the event loop.
//
// main() builds one implementation (base/system/real_env.hpp, or a virtual one) and hands it down
// by reference; it outlives whatever borrows it. Everything runs on one event loop: every method is
// called on the loop and every callback runs on it, one at a time, never inside the call that
// caused it. The one exception is Inbox::post, which any thread may call. Due timers run in order
// of (time, sequence); posted callbacks in order of arrival.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/time.hpp"

namespace orrery {

using Callback = std::function<void()>;

class Clock {
 public:
  virtual ~Clock() = default;
  /// The time of day, for people and for data that outlives the process. It may jump, back too.
  [[nodiscard]] virtual Instant now_wall() const = 0;
  /// Never goes back. Its epoch is arbitrary: compare it only with itself, in one process.
  [[nodiscard]] virtual Instant now_monotonic() const = 0;
};

/// Names one timer. Ordered as timers fire: by time, then by the order in which they were made.
struct TimerId {
  Instant at;
  std::uint64_t sequence = 0;
  friend auto operator<=>(const TimerId&, const TimerId&) = default;
};

/// One-shot timers on monotonic time. A time that has passed is due at once, but never runs before
/// the call returns; a timer made by a callback waits for a later round of the loop.
class Timers {
 public:
  virtual ~Timers() = default;
  virtual TimerId call_at(Instant monotonic, Callback callback) = 0;
  virtual TimerId call_after(Duration delay, Callback callback) = 0;
  /// True when the timer was waiting: then it never runs. O(log timers).
  virtual bool cancel(const TimerId& timer) = 0;
};

/// The source of seeds and unguessable names. Everything else draws from an Rng
/// (base/numbers/rng.hpp).
class Entropy {
 public:
  virtual ~Entropy() = default;
  [[nodiscard]] virtual std::uint64_t draw() = 0;
};

enum class StorageFailure {
  kNotFound,
  kExists,
  kFull,         ///< no room: the disk, a quota or a limit on file size
  kUnavailable,  ///< a remote storage gave no answer; the call may be repeated
  kSuperseded,   ///< another writer has taken over
  kOther,        ///< the message says what
};

/// An Error that also holds, for a program, the kind of failure.
struct StorageError : Error {
  StorageFailure failure = StorageFailure::kOther;
};

template <class T>
using StorageResult = tl::expected<T, StorageError>;
using StorageStatus = StorageResult<void>;

template <class T>
[[nodiscard]] tl::unexpected<Error> forward_error(StorageResult<T>& result) {
  return tl::unexpected<Error>(std::move(result.error()));
}

struct ByteRange {
  std::uint64_t offset = 0;
  std::size_t size = 0;
};

/// An open file, written only at its end. It assumes that it has no other writer meanwhile.
class File {
 public:
  virtual ~File() = default;
  /// All or nothing: after a failure the file is as it was before; where it cannot be restored, no
  /// later append succeeds. Durable only after sync().
  [[nodiscard]] virtual StorageStatus append(std::string_view bytes) = 0;
  /// The bytes of `range`; fewer only where the file ends.
  [[nodiscard]] virtual StorageResult<std::string> read(ByteRange range) const = 0;
  /// Cuts the file to `size`, to drop a torn tail. Precondition: size <= size().
  [[nodiscard]] virtual StorageStatus truncate(std::uint64_t size) = 0;
  /// Makes what was appended and cut durable. A failure is final: the system may have dropped what
  /// it could not write, so no later append or sync succeeds.
  [[nodiscard]] virtual StorageStatus sync() = 0;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
};

enum class OpenMode {
  kRead,    ///< must exist
  kAppend,  ///< created when absent
  kCreate,  ///< must not exist
};

struct RenamePaths {
  std::string from;
  std::string to;
};

/// Files and directories. Calls block until done; what creates, replaces or removes a name is
/// durable when it returns. New files are readable by their owner alone. Names that end in ".tmp"
/// belong to write_file().
class Storage {
 public:
  virtual ~Storage() = default;
  [[nodiscard]] virtual StorageResult<std::unique_ptr<File>> open(const std::string& path,
                                                                  OpenMode mode) = 0;
  /// The whole of a file of at most `size_max` bytes; a larger one is an error.
  [[nodiscard]] virtual StorageResult<std::string> read_file(const std::string& path,
                                                             std::size_t size_max) = 0;
  /// Replaces or creates the file in one step: a reader, also after a crash, sees the old content
  /// or the new. After an error it is the old one, or, when only making the change durable failed,
  /// either.
  [[nodiscard]] virtual StorageStatus write_file(const std::string& path,
                                                 std::string_view bytes) = 0;
  /// Names in a directory, sorted bytewise; without "." and "..", and without "*.tmp".
  [[nodiscard]] virtual StorageResult<std::vector<std::string>> list(
      const std::string& directory) = 0;
  [[nodiscard]] virtual StorageStatus remove(const std::string& path) = 0;
  /// Replaces `to` when it exists. Both lie in one file system.
  [[nodiscard]] virtual StorageStatus rename(const RenamePaths& paths) = 0;
  /// Makes the directory and its missing parents; an existing one is fine.
  [[nodiscard]] virtual StorageStatus make_directories(const std::string& path) = 0;
  /// Bytes an ordinary user may still write to the file system of an existing path.
  [[nodiscard]] virtual StorageResult<std::uint64_t> free_bytes(const std::string& path) = 0;
};

/// Never used twice in the life of an Env.
enum class ConnectionId : std::uint64_t { kNone = 0 };
enum class ListenerId : std::uint64_t { kNone = 0 };

enum class SendOutcome {
  kQueued,    ///< will be sent, unless the connection ends before
  kOverflow,  ///< the queue has no room for it; nothing of it is sent
  kTooLarge,  ///< above frame_bytes_max, which also the peer would refuse
  kClosed,    ///< no such connection any more
};

enum class CloseReason {
  kPeerClosed,     ///< the peer ended it between two frames
  kConnectFailed,  ///< it never came about
  kBroken,         ///< it ended inside a frame, or the network failed
  kFrameTooLarge,  ///< the peer announced a frame above frame_bytes_max
};

struct Closed {
  CloseReason reason = CloseReason::kPeerClosed;
  Error error;
};

/// The events of a connection for its user; borrowed, so it must outlive the connection. Any method
/// of the Transport may be called from inside.
class ConnectionEvents {
 public:
  virtual ~ConnectionEvents() = default;
  /// Frames arrive whole and in the order sent. The bytes live until the call returns.
  virtual void on_frame(ConnectionId connection, std::string_view frame) = 0;
  /// The connection is gone; called once, the last call for it, and never after close().
  virtual void on_close(ConnectionId connection, const Closed& closed) = 0;
};

struct Accepted {
  ListenerId listener = ListenerId::kNone;
  ConnectionId connection = ConnectionId::kNone;
  std::string peer;  ///< its address; for unix sockets the listener's
};

class ListenerEvents : public ConnectionEvents {
 public:
  virtual void on_accept(const Accepted& accepted) = 0;
};

struct Listening {
  ListenerId listener = ListenerId::kNone;
  std::string address;  ///< as asked for, with port 0 replaced by the port chosen
};

/// Bounds of every connection, in bytes. Precondition: queue_bytes_max >= frame_bytes_max + 4.
struct TransportLimits {
  std::size_t frame_bytes_max = std::size_t{1} << 20;
  std::size_t queue_bytes_max = std::size_t{8} << 20;  ///< sent, but not yet taken by the network
};

/// Connections that carry frames (0 to frame_bytes_max bytes) reliably and in order. Addresses are
/// "unix:/path", "tcp:127.0.0.1:7000" and "tcp:[::1]:7000"; names are not looked up. A peer that
/// vanishes silently is noticed only by code that expects frames from it. The end of the Env ends
/// every connection without an event.
class Transport {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual Result<Listening> listen(std::string_view address,
                                                 ListenerEvents& events) = 0;
  /// Returns at once: frames may be sent right away and leave when the peer answers. Fails here
  /// only for a malformed address; a peer that does not answer is reported by on_close.
  [[nodiscard]] virtual Result<ConnectionId> connect(std::string_view address,
                                                     ConnectionEvents& events) = 0;
  [[nodiscard]] virtual SendOutcome send(ConnectionId connection, std::string_view frame) = 0;
  /// Ends it without further events. Bytes that the network has not taken are dropped, so a frame
  /// that must arrive waits for the peer's answer. A connection already gone is fine.
  virtual void close(ConnectionId connection) = 0;
  /// Accepts no more; connections already accepted stay.
  virtual void close(ListenerId listener) = 0;
};

/// The way into the loop for other threads.
class Inbox {
 public:
  virtual ~Inbox() = default;
  /// Thread-safe. Runs the callback on the loop; callbacks of one thread keep their order.
  /// Unbounded: the caller limits its outstanding callbacks. Callbacks left when the loop ends
  /// never run.
  virtual void post(Callback callback) = 0;
};

/// The parts of an Env, borrowed; a copy refers to the same parts. A test replaces single members.
struct Env {
  Clock& clock;
  Timers& timers;
  Entropy& entropy;
  Storage& storage;
  Transport& transport;
  Inbox& inbox;

  void post(Callback callback) const { inbox.post(std::move(callback)); }
};

}  // namespace orrery

#include "apps/orrery/remote_command.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

namespace orrery {
namespace {

constexpr std::size_t kRemoteChunk = std::size_t{32} << 10;
constexpr int kSignalStatus = 128;

class RemoteRun {
 public:
  RemoteRun(std::unique_ptr<ClientStream> stream, NotedSignals& signals)
      : stream_(std::move(stream)), signals_(signals) {}

  Result<int> run(v1::ExecRequest first) {
    const bool terminal = first.has_terminal();
    next_ = std::move(first);
    while (true) {
      signals_.clear();
      if (const int ending = NotedSignals::ending(); ending != 0) return kSignalStatus + ending;
      if (NotedSignals::resized() && terminal) *next().mutable_terminal() = RawTerminal::size();
      stream_->note_seen();
      take_messages();
      if (const auto end = stream_->end()) return end_of(*end);
      if (next_ && stream_->writable()) stream_->write(*std::exchange(next_, std::nullopt));
      wait();
    }
  }

 private:
  v1::ExecRequest& next() {
    if (!next_) next_.emplace();
    return *next_;
  }

  void take_messages() {
    v1::ExecResponse response;
    while (NotedSignals::ending() == 0 && stream_->take(response)) {
      put(STDOUT_FILENO, response.output());
      put(STDERR_FILENO, response.errors());
      if (response.has_status()) status_ = static_cast<int>(response.status());
    }
  }

  [[nodiscard]] Result<int> end_of(const Status& end) const {
    if (!end) return tl::unexpected(end.error());
    if (status_) return *status_;
    return environment_error("the controller closed the call without a status");
  }

  /// Returns early when a signal is to end the program: the reader may have stopped reading.
  void put(int fd, std::string_view bytes) {
    while (!bytes.empty() && NotedSignals::ending() == 0) {
      const ssize_t written = ::write(fd, bytes.data(), bytes.size());
      if (written < 0 && errno == EAGAIN) {
        pollfd room{fd, POLLOUT, 0};
        (void)::poll(&room, 1, -1);
      } else if (written < 0 && errno != EINTR) {
        return;
      } else if (written > 0) {
        bytes.remove_prefix(static_cast<std::size_t>(written));
      }
    }
  }

  void wait() {
    // Input is read when it can be sent, so that a command that does not read holds up its writer.
    const bool reads = !input_over_ && !next_ && stream_->writable();
    std::array<pollfd, 3> polls{pollfd{stream_->descriptor(), POLLIN, 0},
                                pollfd{signals_.descriptor(), POLLIN, 0},
                                pollfd{reads ? STDIN_FILENO : -1, POLLIN, 0}};
    if (::poll(polls.data(), polls.size(), -1) <= 0 || polls[2].revents == 0) return;
    std::array<char, kRemoteChunk> bytes;
    const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got > 0) {
      next().set_input(bytes.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
      input_over_ = true;
      next().set_input_end(true);
    }
  }

  std::unique_ptr<ClientStream> stream_;
  NotedSignals& signals_;
  std::optional<v1::ExecRequest> next_;  ///< to be written
  std::optional<int> status_;
  bool input_over_ = false;
};

}  // namespace

Result<int> run_remote(LiveSession& session, const RemoteCommand& asked, NotedSignals& signals) {
  // Whether the controller can be reached is tried again, as with every verb; the call is not.
  v1::GetJobRequest known;
  known.set_id(asked.job);
  const auto job = session.client().call<v1::Job>("GetJob", known);
  if (!job) return tl::unexpected(job.error());
  v1::ExecRequest request;
  request.set_id(asked.job);
  if (asked.gang) request.set_gang(*asked.gang);
  if (asked.rank) request.set_rank(*asked.rank);
  for (const std::string& word : asked.command) request.add_command(word);
  std::optional<RawTerminal> raw;
  if (asked.terminal == RemoteCommand::Terminal::kYes) {
    Result<RawTerminal> opened = RawTerminal::open();
    if (!opened) return forward_error(opened);
    raw.emplace(*std::move(opened));
    *request.mutable_terminal() = RawTerminal::size();
    request.set_terminal_type(asked.terminal_type);
  }
  return RemoteRun(session.client().open_stream("Exec"), signals).run(std::move(request));
}

}  // namespace orrery

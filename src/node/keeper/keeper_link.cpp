#include "node/keeper/keeper_link.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "base/text/utf8.hpp"
#include "node/launch/attempt_directories.hpp"
#include "node/launch/spawn_settings.hpp"

namespace orrery {
namespace {

constexpr Duration kFirstLook = Duration::milliseconds(10);
constexpr Duration kLooksApart = Duration::seconds(1);
/// A keeper starts in milliseconds; one that needs so long hangs.
constexpr Duration kStartMax = Duration::seconds(60);

std::string words_of(int code) { return std::generic_category().message(code); }

}  // namespace

KeeperLink::KeeperLink(RealEnv& real, KeeperEvents& events, KeeperPlace place)
    : real_(real), events_(events), place_(std::move(place)), patience_(kFirstLook) {}

KeeperLink::~KeeperLink() {
  stop_waiting();
  if (connection_ != ConnectionId::kNone) real_.env().transport.close(connection_);
  if (says_watch_ != WatchId::kNone) real_.loop().unwatch(says_watch_);
  if (process_watch_ != WatchId::kNone) real_.loop().unwatch(process_watch_);
}

Status KeeperLink::start() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return environment_error(fmt::format("cannot make a pipe: {}", words_of(errno)));
  }
  FileDescriptor reading(ends[0]);
  const FileDescriptor writing(ends[1]);
  (void)::fcntl(reading.get(), F_SETFL, O_NONBLOCK);
  SpawnSettings settings(writing.get());
  settings.send_errors_to(place_.files.errors());
  if (const int failed =
          settings.run(child_, {place_.program, place_.files.directory, place_.files.run});
      failed != 0) {
    child_ = 0;
    return environment_error(fmt::format("cannot run {}: {}", place_.program, words_of(failed)));
  }
  if (Status watching = watch_child(std::move(reading)); !watching) {
    end_child();
    (void)::waitpid(std::exchange(child_, 0), nullptr, 0);
    return watching;
  }
  wait(kStartMax, &KeeperLink::give_up);
  return {};
}

Status KeeperLink::watch_child(FileDescriptor says) {
  says_ = std::move(says);
  process_ = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, child_, 0)));
  if (!process_.valid()) {
    return environment_error(fmt::format("cannot watch a keeper: {}", words_of(errno)));
  }
  const Result<WatchId> process = real_.loop().watch(process_.get(), EPOLLIN, *this);
  if (!process) return tl::unexpected(process.error());
  process_watch_ = *process;
  const Result<WatchId> words = real_.loop().watch(says_.get(), EPOLLIN, *this);
  if (!words) return tl::unexpected(words.error());
  says_watch_ = *words;
  return {};
}

void KeeperLink::adopt() {
  came_to_life_ = true;
  connect();
}

void KeeperLink::tell(const KeeperInput& message) {
  const bool open = connection_ != ConnectionId::kNone && !stalled();
  if (open && send(message)) return;
  waiting_.push_back(message);
  // The keeper does not read. The connection is ended later, because on_break() must not come in a
  // call of the owner's own.
  if (open) wait(patience_, &KeeperLink::look);
}

// --- The child ----------------------------------------------------------------------------------

void KeeperLink::on_ready(std::uint32_t) {
  if (says_watch_ != WatchId::kNone) hear_child();
  if (process_watch_ != WatchId::kNone) reap_child();
}

void KeeperLink::hear_child() {
  std::array<char, 64> words;
  const ssize_t got = ::read(says_.get(), words.data(), words.size());
  if (got < 0) return;
  said_.append(words.data(), static_cast<std::size_t>(got));
  const bool ready = said_.starts_with("ready\n");
  if (got > 0 && !ready) return;
  real_.loop().unwatch(std::exchange(says_watch_, WatchId::kNone));
  says_.reset();
  if (!ready) return;  // Its end follows.
  came_to_life_ = true;
  connect();
}

void KeeperLink::reap_child() {
  int status = 0;
  if (::waitpid(child_, &status, WNOHANG) != child_) return;
  child_ = 0;
  said_ = WIFEXITED(status) ? fmt::format("exit status {}", WEXITSTATUS(status))
                            : fmt::format("signal {}", WTERMSIG(status));
  real_.loop().unwatch(std::exchange(process_watch_, WatchId::kNone));
  process_.reset();
  look();
}

/// Kills the session's process group: the guard and the keeper, but no rank.
void KeeperLink::end_child() { (void)::kill(-child_, SIGKILL); }

void KeeperLink::give_up() {
  if (came_to_life_ || child_ == 0) return;
  said_ = fmt::format("not ready after {}", kStartMax.text());
  end_child();
}

// --- The connection -----------------------------------------------------------------------------

void KeeperLink::connect() {
  stop_waiting();
  const Result<ConnectionId> connection =
      real_.env().transport.connect(place_.files.socket(), *this);
  if (!connection) return wait(patience_, &KeeperLink::look);
  connection_ = *connection;
  // The adoption comes first: without an order the keeper does not know its agent.
  (void)send(AgentOrder{{{}, AdoptKeeper{}}, {}});
  for (KeeperInput& message : std::exchange(waiting_, {})) {
    if (stalled() || !send(message)) waiting_.push_back(std::move(message));
  }
  if (stalled()) wait(patience_, &KeeperLink::look);
}

/// Returns false where the message has to be sent on the next connection.
bool KeeperLink::send(const KeeperInput& message) {
  const SendOutcome outcome = real_.env().transport.send(connection_, encode(message));
  return outcome == SendOutcome::kQueued || outcome == SendOutcome::kTooLarge;
}

void KeeperLink::on_frame(ConnectionId, std::string_view frame) {
  const Result<KeeperOutput> said = decode_keeper_output(frame);
  if (!said) return;  // Message of an unknown release: the lock still shows the keeper's end.
  patience_ = kFirstLook;
  if (const auto* status = std::get_if<KeeperStatus>(&*said)) {
    events_.on_status(place_.id, *status);
  } else if (const auto* paces = std::get_if<RankPaces>(&*said)) {
    events_.on_paces(place_.id, *paces);
  } else if (const auto* wrong = std::get_if<WrongResults>(&*said)) {
    events_.on_wrong(place_.id, *wrong);
  } else if (const auto* abilities = std::get_if<KeeperAbilities>(&*said)) {
    runs_commands_ = abilities->commands;
  } else if (const auto* output = std::get_if<ExecOutput>(&*said)) {
    events_.on_command_output(*output);
  } else if (const auto* end = std::get_if<ExecEnd>(&*said)) {
    events_.on_command_end(*end);
  } else {
    events_.on_tail(place_.id, std::get<LogTail>(*said));
  }
}

void KeeperLink::on_close(ConnectionId, const Closed&) {
  end_connection();
  wait(patience_, &KeeperLink::look);
}

/// Commands end with their connection, so their messages are not sent on the next one.
void KeeperLink::end_connection() {
  connection_ = ConnectionId::kNone;
  runs_commands_ = false;
  std::erase_if(waiting_, [](const KeeperInput& message) {
    return std::holds_alternative<ExecOpen>(message) || std::holds_alternative<ExecInput>(message);
  });
  events_.on_break(place_.id);
}

// --- Whether it lives ---------------------------------------------------------------------------

void KeeperLink::look() {
  stop_waiting();
  if (child_ == 0 && seal_if_over(place_.files)) {
    if (connection_ != ConnectionId::kNone) {
      real_.env().transport.close(std::exchange(connection_, ConnectionId::kNone));
    }
    const std::string why = failure();
    events_.on_over(place_.id, why);
    return;
  }
  patience_ = std::min(patience_ * 2, kLooksApart);
  if (stalled()) {
    real_.env().transport.close(connection_);
    end_connection();
  }
  if (came_to_life_ && connection_ == ConnectionId::kNone) return connect();
  wait(patience_, &KeeperLink::look);
}

void KeeperLink::wait(Duration delay, void (KeeperLink::*then)()) {
  stop_waiting();
  timer_ = real_.env().timers.call_after(delay, [this, then] {
    timer_.reset();
    (this->*then)();
  });
}

void KeeperLink::stop_waiting() {
  if (timer_) real_.env().timers.cancel(*timer_);
  timer_.reset();
}

std::string KeeperLink::failure() const {
  if (came_to_life_) return "";
  std::string words = real_.env().storage.read_file(place_.files.errors(), 1 << 16).value_or("");
  while (words.ends_with('\n')) words.pop_back();
  return words.empty() ? said_ : printable(words, 400);
}

}  // namespace orrery

#include "http/connection/web_upstream.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/assert.hpp"
#include "base/system/file_descriptor.hpp"
#include "http/connection/output_queue.hpp"

namespace orrery {
namespace {

std::string reason_of(int cause) { return std::generic_category().message(cause); }

/// Has the kernel ask a silent peer whether it is there, and end the connection to a machine that
/// has answered nothing for half a minute: one that lost its power closes none.
void watch_peer(int socket) {
  constexpr int kIdleSeconds = 15;
  constexpr int kBetweenSeconds = 5;
  constexpr int kProbes = 3;
  constexpr int kUnackedMilliseconds = 30'000;
  const auto set = [&](int level, int name, int value) {
    static_cast<void>(::setsockopt(socket, level, name, &value, sizeof value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kBetweenSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, kUnackedMilliseconds);
}

constexpr std::string_view kClosed = "the server closed the connection";

}  // namespace

WebUpstream::WebUpstream(WebClientShared& shared, WebUpstreamOwner& owner, WebPool& pool,
                         std::uint64_t id)
    : shared_(shared),
      owner_(owner),
      pool_(pool),
      id_(id),
      socket_(shared.loop),
      in_({shared.options.header_bytes_max, shared.options.body_bytes_max}) {
  ++pool.upstreams;
  deadline_ = shared.clock.now_monotonic() + shared.options.connect_max;
}

WebUpstream::~WebUpstream() { release_handle(); }

void WebUpstream::connect() {
  phase_ = Phase::kConnecting;
  const SocketAddress& address = *pool_.address;
  socket_.open(
      FileDescriptor(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)));
  bool started = socket_.valid();
  if (started) {
    const int on = 1;
    static_cast<void>(::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    watch_peer(socket_.get());
    // Interrupted, it goes on by itself, as when it is in progress.
    started = ::connect(socket_.get(), address.get(), address.size()) == 0 ||
              errno == EINPROGRESS || errno == EINTR;
  }
  std::string why = started ? std::string() : reason_of(errno);
  if (started) {
    const Status watched = socket_.watch(EPOLLOUT, *this);
    if (!watched) why = watched.error().message;
  }
  if (!why.empty()) owner_.post_failure(id_, std::move(why));
}

void WebUpstream::carry(WebUpstreamCall call) {
  ORRERY_ASSERT(call_.events == nullptr, "a connection carries one call at a time");
  call_ = std::move(call);
  call_.sent = call_.received = call_.told = false;
  call_.reused = phase_ == Phase::kIdle;
  if (call_.reused) {
    phase_ = Phase::kCalling;
    send_call();
  }
}

void WebUpstream::on_ready(std::uint32_t events) {
  switch (phase_) {
    case Phase::kConnecting:
      finish_connecting();
      return;
    case Phase::kIdle:
      drop_idle();  // closed by the server, or bytes that nothing asked for
      return;
    case Phase::kCalling:
      break;
    case Phase::kResolving:
    case Phase::kDead:
      return;
  }
  if ((events & EPOLLOUT) != 0) {
    const OutputQueue::Outcome outcome = socket_.write({});
    if (outcome == OutputQueue::Outcome::kFailed) ::shutdown(socket_.get(), SHUT_WR);
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) receive();
}

void WebUpstream::finish_connecting() {
  int cause = 0;
  socklen_t size = sizeof cause;
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &cause, &size);
  if (cause != 0) {
    fail(WebCallFailure::Kind::kConnect, reason_of(cause));
    return;
  }
  phase_ = Phase::kCalling;
  if (call_.events == nullptr) {
    die();
  } else {
    send_call();
  }
}

void WebUpstream::send_call() {
  deadline_ = shared_.options.silence_max == Duration::max()
                  ? Instant::max()
                  : shared_.clock.now_monotonic() + shared_.options.silence_max;
  begin_answer();
  socket_.watch_for(EPOLLIN);
  const OutputQueue::Outcome outcome = socket_.write({call_.head, call_.body});
  call_.sent = outcome != OutputQueue::Outcome::kFailed;
  // After a failure the loop finds the end of the connection, outside of start().
  if (outcome == OutputQueue::Outcome::kFailed) socket_.break_off();
}

void WebUpstream::begin_answer() {
  in_.head.status = 0;
  in_.head.headers.clear();
  in_.parser.begin(in_.head, call_.answer_body);
}

void WebUpstream::receive() {
  const ssize_t got = ::recv(socket_.get(), shared_.chunk.get(), kSocketReadBytes, MSG_DONTWAIT);
  if (got > 0) {
    if (deadline_ != Instant::max()) {
      deadline_ = shared_.clock.now_monotonic() + shared_.options.silence_max;
    }
    call_.received = true;
    take({shared_.chunk.get(), static_cast<std::size_t>(got)});
  } else if (got == 0) {
    server_left(std::string(kClosed));
  } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
    server_left(reason_of(errno));
  }
}

void WebUpstream::take(std::string_view bytes) {
  std::string joined;
  std::string_view rest = bytes;
  if (!in_.bytes.empty()) {
    joined = std::exchange(in_.bytes, {});
    rest = joined.append(bytes);
  }
  while (!rest.empty() && call_.events != nullptr) {
    shared_.body.clear();
    rest.remove_prefix(in_.parser.read(rest, shared_.body));
    const MessagePart part = in_.parser.part();
    const int status = in_.head.status;
    if (part == MessagePart::kDone && status >= 100 && status < 200 && status != 101) {
      begin_answer();
      continue;
    }
    if (part != MessagePart::kHead && part != MessagePart::kFault) tell_part();
    if (call_.events == nullptr) return;
    if (part == MessagePart::kFault || rest.size() > shared_.options.header_bytes_max) {
      fail(WebCallFailure::Kind::kMalformed, in_.parser.fault_text());
      return;
    }
    if (part == MessagePart::kDone) {
      // Bytes behind the answer belong to none.
      if (!rest.empty()) in_.bytes = rest;
      finish();
      return;
    }
    break;
  }
  if (call_.events != nullptr) in_.bytes.assign(rest);
}

void WebUpstream::tell_part() {
  if (!std::exchange(call_.told, true)) call_.events->on_head(in_.head);
  if (call_.events != nullptr && !shared_.body.empty()) call_.events->on_body(shared_.body);
}

void WebUpstream::finish() {
  WebCallEvents* const events = std::exchange(call_.events, nullptr);
  release_handle();
  const bool keep = phase_ == Phase::kCalling && in_.bytes.empty() && socket_.buffered() == 0 &&
                    in_.parser.persistence() == Persistence::kKeep && !pool_.forgotten &&
                    pool_.idle.size() < shared_.options.idle_connections_max;
  if (keep) {
    phase_ = Phase::kIdle;
    deadline_ = shared_.clock.now_monotonic() + shared_.options.idle_max;
    pool_.idle.push_back(this);
    socket_.watch_input(EPOLLIN);
  } else {
    die();
  }
  events->on_end();
}

void WebUpstream::server_left(const std::string& why) {
  const bool begun = call_.told;
  if (call_.received && in_.parser.part() == MessagePart::kBody && in_.parser.finish()) {
    shared_.body.clear();
    if (!begun) tell_part();
    in_.bytes.assign("ended");  // not to be kept
    if (call_.events != nullptr) finish();
    return;
  }
  fail(WebCallFailure::Kind::kBroken, why);
}

void WebUpstream::fail(WebCallFailure::Kind kind, const std::string& why) {
  const bool connecting = phase_ == Phase::kConnecting || phase_ == Phase::kResolving;
  WebUpstreamCall call = std::exchange(call_, {});
  // A name may have another address by now.
  if (connecting) pool_.address.reset();
  die();
  if (call.events == nullptr) return;
  if (kind == WebCallFailure::Kind::kBroken && call.reused && !call.received) {
    owner_.call_again(pool_, std::move(call));
    return;
  }
  if (call.handle != nullptr) call.handle->upstream_ = nullptr;
  WebCallFailure failure{.kind = kind, .sent = call.sent, .received = call.received};
  failure.error = {ErrorKind::kEnvironment, fmt::format("{}: {}", pool_.endpoint, why), {}};
  call.events->on_error(failure);
}

void WebUpstream::check_time(Instant now) {
  if (now < deadline_) return;
  switch (phase_) {
    case Phase::kResolving:
    case Phase::kConnecting:
      fail(WebCallFailure::Kind::kConnect, "no answer in time");
      break;
    case Phase::kCalling:
      fail(WebCallFailure::Kind::kTimeout, "the server was silent too long");
      break;
    case Phase::kIdle:
      drop_idle();
      break;
    case Phase::kDead:
      break;
  }
}

void WebUpstream::drop_idle() { die(); }

void WebUpstream::cancel() {
  call_.events = nullptr;
  release_handle();
  die();
}

void WebUpstream::release_handle() {
  if (call_.handle != nullptr) std::exchange(call_.handle, nullptr)->upstream_ = nullptr;
}

void WebUpstream::die() {
  if (phase_ == Phase::kDead) return;
  if (phase_ == Phase::kIdle) std::erase(pool_.idle, this);
  phase_ = Phase::kDead;
  socket_.close();
  owner_.bury(id_);
}

}  // namespace orrery

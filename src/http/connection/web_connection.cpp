#include "http/connection/web_connection.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/system/socket_address.hpp"
#include "http/connection/output_queue.hpp"

namespace orrery {
namespace {

/// What a client may send before it has its answer, and what it may leave unread of earlier answers
/// before its next request is looked at.
constexpr std::size_t kPipelinedMax = std::size_t{64} << 10;
constexpr Duration kLingerMax = Duration::seconds(2);
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

WebConnection::WebConnection(WebServerShared& shared, WebConnectionOwner& owner, std::uint64_t id,
                             FileDescriptor fd)
    : shared_(shared),
      owner_(owner),
      id_(id),
      socket_(shared.loop, std::move(fd)),
      in_({shared.options.header_bytes_max, shared.options.body_bytes_max}),
      answer_(shared, socket_, *this) {}

WebConnection::~WebConnection() {
  if (exchange_ != nullptr) exchange_->connection_ = nullptr;
}

Status WebConnection::start() {
  if (Status watched = socket_.watch(EPOLLIN, *this); !watched) return watched;
  deadline_ = shared_.clock.now_monotonic() + shared_.options.idle_max;
  return {};
}

void WebConnection::on_ready(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) {
    const std::size_t before = socket_.buffered();
    const OutputQueue::Outcome outcome = socket_.write({});
    if (socket_.buffered() < before)
      deadline_ = shared_.clock.now_monotonic() + shared_.options.stall_max;
    flushed(outcome);
    if (phase_ != Phase::kDead) tell_drained();
    if (phase_ == Phase::kReceiving && !in_.bytes.empty()) advance();
    if (phase_ == Phase::kDead) return;
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) == 0) return;
  if (socket_.watches(EPOLLIN)) {
    receive();
  } else {
    leave();
  }
}

void WebConnection::receive() {
  const ssize_t got = ::recv(socket_.get(), shared_.chunk.get(), kSocketReadBytes, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (got <= 0) {
    leave();
    return;
  }
  const std::string_view bytes(shared_.chunk.get(), static_cast<std::size_t>(got));
  switch (phase_) {
    case Phase::kReceiving:
      take(bytes);
      break;
    case Phase::kAnswering:
      in_.bytes.append(bytes);
      watch_input();
      break;
    case Phase::kFlushing:
    case Phase::kLingering:
    case Phase::kDead:
      break;
  }
}

void WebConnection::advance() {
  tell_drained();
  if (phase_ == Phase::kReceiving && !in_.bytes.empty()) take({});
}

void WebConnection::take(std::string_view bytes) {
  std::string joined;
  std::string_view rest = bytes;
  if (!in_.bytes.empty()) {
    joined = std::exchange(in_.bytes, {});
    rest = joined.append(bytes);
  }
  while (!rest.empty() && phase_ == Phase::kReceiving && socket_.buffered() <= kPipelinedMax) {
    if (in_.request == nullptr) {
      in_.request = std::make_unique<WebRequest>();
      in_.parser.begin(*in_.request);
      in_.continued = false;
      deadline_ = shared_.clock.now_monotonic() + shared_.options.receive_max;
    }
    const std::size_t used = in_.parser.read(rest);
    rest.remove_prefix(used);
    const MessagePart part = in_.parser.part();
    if (part == MessagePart::kDone) {
      dispatch();
    } else if (part == MessagePart::kFault) {
      const MessageFault fault = in_.parser.fault();
      refuse(fault == MessageFault::kBodyTooLarge     ? 413
             : fault == MessageFault::kHeaderTooLarge ? 431
                                                      : 400,
             in_.parser.fault_text());
    } else {
      if (part == MessagePart::kBody) invite_body();
      // No part of a message that is read whole is as long as this.
      if (rest.size() > shared_.options.header_bytes_max) refuse(400, "a line is too long");
      break;
    }
  }
  if (phase_ != Phase::kReceiving && phase_ != Phase::kAnswering) return;
  in_.bytes.assign(rest);
  watch_input();
}

void WebConnection::watch_input() {
  const bool waits = phase_ == Phase::kAnswering || socket_.buffered() > kPipelinedMax;
  socket_.watch_input(waits && in_.bytes.size() >= kPipelinedMax ? EPOLLRDHUP : EPOLLIN);
}

void WebConnection::invite_body() {
  if (std::exchange(in_.continued, true)) return;
  const auto expected = in_.request->headers.find("Expect");
  if (expected && same_token(*expected, "100-continue") && in_.request->body.empty()) {
    put({kContinue});
  }
}

void WebConnection::dispatch() {
  phase_ = Phase::kAnswering;
  deadline_ = socket_.buffered() > 0 ? deadline_ : Instant::max();
  const bool head_alone = in_.request->method == "HEAD";
  answer_.prepare({.persistence = in_.parser.persistence(),
                   .body = head_alone ? AnswerBody::kNone : AnswerBody::kAsFramed,
                   .http11 = in_.parser.is_http11()});
  shared_.handler.on_request(WebExchange(*this, std::move(in_.request)));
}

void WebConnection::refuse(int status, std::string_view message) {
  phase_ = Phase::kAnswering;
  in_.request = nullptr;
  answer_.prepare({.persistence = Persistence::kClose, .lingers = true});
  respond_error(status, message);
}

void WebConnection::respond_error(int status, std::string_view message) {
  const auto make = shared_.options.error_body;
  const std::string body = make != nullptr ? make(status, message) : std::string(message) + "\n";
  const WebHeader type{"Content-Type", make != nullptr ? "application/json" : "text/plain"};
  answer_.respond(status, {&type, 1}, body);
}

std::string WebConnection::client() const {
  const std::string address = SocketAddress::peer_of(socket_.get()).text();
  constexpr std::string_view kScheme = "tcp:";
  return address.starts_with(kScheme) ? address.substr(kScheme.size()) : address;
}

void WebConnection::on_drained(std::size_t bytes, Callback drained) {
  drained_ = {bytes, std::move(drained)};
  if (socket_.buffered() <= bytes) owner_.post_advance(id_);
}

void WebConnection::abort() {
  if (exchange_ != nullptr) std::exchange(exchange_, nullptr)->connection_ = nullptr;
  die();
}

void WebConnection::abandon() {
  if (answer_.begun()) {
    abort();
  } else {
    respond_error(500, "the server gave no answer");
  }
}

void WebConnection::put(std::initializer_list<std::string_view> pieces) {
  const bool waited = socket_.watches(EPOLLOUT);
  const OutputQueue::Outcome outcome = socket_.write(pieces);
  if (outcome == OutputQueue::Outcome::kSome && !waited) {
    deadline_ = shared_.clock.now_monotonic() + shared_.options.stall_max;
  }
  flushed(outcome);
}

void WebConnection::flushed(OutputQueue::Outcome outcome) {
  switch (outcome) {
    case OutputQueue::Outcome::kFailed:
      socket_.break_off();
      return;
    case OutputQueue::Outcome::kSome:
      return;
    case OutputQueue::Outcome::kAll:
      break;
  }
  if (phase_ == Phase::kAnswering) {
    deadline_ = Instant::max();
  } else if (phase_ == Phase::kReceiving && in_.request == nullptr) {
    settle();
  } else if (phase_ == Phase::kFlushing) {
    finish_answer();
  }
}

void WebConnection::finish_answer() {
  if (exchange_ != nullptr) std::exchange(exchange_, nullptr)->connection_ = nullptr;
  drained_ = {};
  const bool stopping = shared_.stage == WebServerShared::Stage::kStopping;
  if (answer_.terms().persistence == Persistence::kKeep && !stopping) {
    phase_ = Phase::kReceiving;
    answer_.prepare({});
    if (socket_.buffered() == 0) settle();
    watch_input();
    if (!in_.bytes.empty()) owner_.post_advance(id_);
    return;
  }
  phase_ = Phase::kFlushing;
  if (socket_.buffered() > 0) return;
  if (!answer_.terms().lingers) {
    die();
    return;
  }
  ::shutdown(socket_.get(), SHUT_WR);
  phase_ = Phase::kLingering;
  deadline_ = shared_.clock.now_monotonic() + kLingerMax;
}

void WebConnection::tell_drained() {
  if (!drained_.callback || socket_.buffered() > drained_.bytes) return;
  const Callback drained = std::move(drained_.callback);
  drained_ = {};
  drained();
}

void WebConnection::check_time(Instant now) {
  if (now < deadline_) return;
  switch (phase_) {
    case Phase::kReceiving:
      if (in_.request != nullptr && socket_.buffered() == 0) {
        refuse(408, "the request did not arrive in time");
      } else {
        die();
      }
      break;
    case Phase::kAnswering:
      leave();
      break;
    case Phase::kFlushing:
    case Phase::kLingering:
      die();
      break;
    case Phase::kDead:
      break;
  }
}

void WebConnection::settle() {
  if (phase_ != Phase::kReceiving || in_.request != nullptr) return;
  if (shared_.stage == WebServerShared::Stage::kServing) {
    deadline_ = shared_.clock.now_monotonic() + shared_.options.idle_max;
  } else if (in_.bytes.empty() && socket_.buffered() == 0) {
    die();
  }
}

void WebConnection::leave() {
  WebExchange* const exchange = std::exchange(exchange_, nullptr);
  die();
  if (exchange == nullptr) return;
  exchange->connection_ = nullptr;
  const Callback gone = std::move(exchange->gone_);
  if (gone) gone();
}

void WebConnection::die() {
  if (phase_ == Phase::kDead) return;
  phase_ = Phase::kDead;
  socket_.close();
  drained_ = {};
  owner_.bury(id_);
}

}  // namespace orrery

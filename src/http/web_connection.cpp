#include "http/web_connection.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "base/assert.hpp"
#include "base/system/socket_address.hpp"
#include "http/status_line.hpp"

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
      fd_(std::move(fd)),
      in_({shared.options.header_bytes_max, shared.options.body_bytes_max}) {}

WebConnection::~WebConnection() {
  if (watch_.id != WatchId::kNone) shared_.loop.unwatch(watch_.id);
  if (exchange_ != nullptr) exchange_->connection_ = nullptr;
}

Status WebConnection::start() {
  watch_.events = EPOLLIN;
  Result<WatchId> watch = shared_.loop.watch(fd_.get(), watch_.events, *this);
  if (!watch) return forward_error(watch);
  watch_.id = *watch;
  deadline_ = shared_.clock.now_monotonic() + shared_.options.idle_max;
  return {};
}

void WebConnection::on_ready(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) {
    const std::size_t before = out_.size();
    const OutputQueue::Outcome outcome = out_.flush(fd_.get());
    if (out_.size() < before) deadline_ = shared_.clock.now_monotonic() + shared_.options.stall_max;
    flushed(outcome);
    if (phase_ != Phase::kDead) tell_drained();
    if (phase_ == Phase::kReceiving && !in_.bytes.empty()) advance();
    if (phase_ == Phase::kDead) return;
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) == 0) return;
  if ((watch_.events & EPOLLIN) != 0) {
    receive();
  } else {
    leave();
  }
}

void WebConnection::receive() {
  const ssize_t got = ::recv(fd_.get(), shared_.chunk.get(), kSocketReadBytes, MSG_DONTWAIT);
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
  while (!rest.empty() && phase_ == Phase::kReceiving && out_.size() <= kPipelinedMax) {
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
  const bool waits = phase_ == Phase::kAnswering || out_.size() > kPipelinedMax;
  const std::uint32_t output = watch_.events & EPOLLOUT;
  watch_for(output | (waits && in_.bytes.size() >= kPipelinedMax ? EPOLLRDHUP : EPOLLIN));
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
  deadline_ = out_.size() > 0 ? deadline_ : Instant::max();
  answer_ = {.persistence = in_.parser.persistence(),
             .body = in_.request->method == "HEAD" ? AnswerBody::kNone : AnswerBody::kAsFramed,
             .http11 = in_.parser.is_http11()};
  shared_.handler.on_request(WebExchange(*this, std::move(in_.request)));
}

void WebConnection::refuse(int status, std::string_view message) {
  phase_ = Phase::kAnswering;
  in_.request = nullptr;
  answer_ = {.persistence = Persistence::kClose, .lingers = true};
  respond_error(status, message);
}

void WebConnection::respond_error(int status, std::string_view message) {
  const auto make = shared_.options.error_body;
  const std::string body = make != nullptr ? make(status, message) : std::string(message) + "\n";
  const WebHeader type{"Content-Type", make != nullptr ? "application/json" : "text/plain"};
  respond(status, {&type, 1}, body);
}

std::string WebConnection::client() const {
  const std::string address = SocketAddress::peer_of(fd_.get()).text();
  constexpr std::string_view kScheme = "tcp:";
  return address.starts_with(kScheme) ? address.substr(kScheme.size()) : address;
}

void WebConnection::on_drained(std::size_t bytes, Callback drained) {
  drained_ = {bytes, std::move(drained)};
  if (out_.size() <= bytes) owner_.post_advance(id_);
}

void WebConnection::append_head(int status, std::span<const WebHeader> headers) {
  if (shared_.stage == WebServerShared::Stage::kStopping) {
    answer_.persistence = Persistence::kClose;
  }
  append_status_line(shared_.head, status);
  for (const WebHeader& each : headers) append_header(shared_.head, each);
  if (answer_.persistence == Persistence::kClose) {
    append_header(shared_.head, {"Connection", "close"});
  } else if (!answer_.http11) {
    append_header(shared_.head, {"Connection", "keep-alive"});
  }
}

void WebConnection::respond(int status, std::span<const WebHeader> headers, std::string_view body) {
  ORRERY_ASSERT(answer_.framing == Framing::kNone, "an answer begins once");
  answer_.framing = Framing::kWhole;
  shared_.head.clear();
  append_head(status, headers);
  if (status != 204 && status != 304) append_content_length(shared_.head, body.size());
  shared_.head.append("\r\n");
  if (answer_.body == AnswerBody::kNone) body = {};
  put({shared_.head, body});
  finish_answer();
}

void WebConnection::begin(int status, std::span<const WebHeader> headers) {
  ORRERY_ASSERT(answer_.framing == Framing::kNone, "an answer begins once");
  answer_.framing = answer_.http11 ? Framing::kChunked : Framing::kToEnd;
  if (!answer_.http11) answer_.persistence = Persistence::kClose;
  shared_.head.clear();
  append_head(status, headers);
  if (answer_.http11) append_header(shared_.head, {"Transfer-Encoding", "chunked"});
  shared_.head.append("\r\n");
  out_.hold(shared_.head);
}

void WebConnection::flush() { put({}); }

void WebConnection::send(std::string_view bytes) {
  ORRERY_ASSERT(answer_.framing != Framing::kNone, "an answer begins before its body");
  if (bytes.empty() || answer_.body == AnswerBody::kNone) return;
  if (out_.size() + bytes.size() > shared_.options.output_bytes_max + kSocketReadBytes) {
    break_off();
  } else if (answer_.framing == Framing::kChunked) {
    char size[18];
    char* end = std::to_chars(size, size + 16, bytes.size(), 16).ptr;
    *end++ = '\r';
    *end++ = '\n';
    put({std::string_view(size, end), bytes, "\r\n"});
  } else {
    put({bytes});
  }
  if (out_.size() > shared_.options.output_bytes_max) break_off();
}

void WebConnection::end() {
  ORRERY_ASSERT(answer_.framing != Framing::kNone, "an answer begins before its end");
  const bool chunked = answer_.framing == Framing::kChunked;
  put({chunked && answer_.body == AnswerBody::kAsFramed ? "0\r\n\r\n" : ""});
  finish_answer();
}

void WebConnection::abort() {
  if (exchange_ != nullptr) std::exchange(exchange_, nullptr)->connection_ = nullptr;
  die();
}

void WebConnection::abandon() {
  if (answer_.framing == Framing::kNone) {
    respond_error(500, "the server gave no answer");
  } else {
    abort();
  }
}

void WebConnection::put(std::initializer_list<std::string_view> pieces) {
  const bool waited = (watch_.events & EPOLLOUT) != 0;
  const OutputQueue::Outcome outcome = out_.write(fd_.get(), pieces);
  if (outcome == OutputQueue::Outcome::kSome && !waited) {
    deadline_ = shared_.clock.now_monotonic() + shared_.options.stall_max;
  }
  flushed(outcome);
}

void WebConnection::flushed(OutputQueue::Outcome outcome) {
  switch (outcome) {
    case OutputQueue::Outcome::kFailed:
      break_off();
      return;
    case OutputQueue::Outcome::kSome:
      watch_for(watch_.events | EPOLLOUT);
      return;
    case OutputQueue::Outcome::kAll:
      break;
  }
  watch_for(watch_.events & ~std::uint32_t{EPOLLOUT});
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
  if (answer_.persistence == Persistence::kKeep && !stopping) {
    phase_ = Phase::kReceiving;
    answer_ = {};
    if (out_.size() == 0) settle();
    watch_input();
    if (!in_.bytes.empty()) owner_.post_advance(id_);
    return;
  }
  phase_ = Phase::kFlushing;
  if (out_.size() > 0) return;
  if (!answer_.lingers) {
    die();
    return;
  }
  ::shutdown(fd_.get(), SHUT_WR);
  phase_ = Phase::kLingering;
  deadline_ = shared_.clock.now_monotonic() + kLingerMax;
}

void WebConnection::tell_drained() {
  if (!drained_.callback || out_.size() > drained_.bytes) return;
  const Callback drained = std::move(drained_.callback);
  drained_ = {};
  drained();
}

void WebConnection::check_time(Instant now) {
  if (now < deadline_) return;
  switch (phase_) {
    case Phase::kReceiving:
      if (in_.request != nullptr && out_.size() == 0) {
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
  } else if (in_.bytes.empty() && out_.size() == 0) {
    die();
  }
}

void WebConnection::break_off() {
  // The loop then finds the connection ended, and the exchange is told outside of its own call.
  ::shutdown(fd_.get(), SHUT_RDWR);
  watch_for(EPOLLIN);
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
  shared_.loop.unwatch(std::exchange(watch_.id, WatchId::kNone));
  fd_.reset();
  drained_ = {};
  owner_.bury(id_);
}

void WebConnection::watch_for(std::uint32_t events) {
  if (events == watch_.events || phase_ == Phase::kDead) return;
  watch_.events = events;
  shared_.loop.rewatch(watch_.id, events);
}

}  // namespace orrery

#include "http/connection/watched_socket.hpp"

#include <sys/socket.h>

namespace orrery {

Status WatchedSocket::watch(std::uint32_t events, ReadyHandler& handler) {
  Result<WatchId> watch = loop_.watch(fd_.get(), events, handler);
  if (!watch) return forward_error(watch);
  watch_ = *watch;
  events_ = events;
  return {};
}

void WatchedSocket::close() {
  if (watch_ != WatchId::kNone) loop_.unwatch(std::exchange(watch_, WatchId::kNone));
  fd_.reset();
}

void WatchedSocket::watch_for(std::uint32_t events) {
  if (events == events_ || watch_ == WatchId::kNone) return;
  events_ = events;
  loop_.rewatch(watch_, events);
}

OutputQueue::Outcome WatchedSocket::write(std::initializer_list<std::string_view> pieces) {
  const OutputQueue::Outcome outcome = out_.write(fd_.get(), pieces);
  const std::uint32_t input = events_ & ~std::uint32_t{EPOLLOUT};
  watch_for(outcome == OutputQueue::Outcome::kSome ? input | EPOLLOUT : input);
  return outcome;
}

void WatchedSocket::break_off() {
  ::shutdown(fd_.get(), SHUT_RDWR);
  watch_for(EPOLLIN);
}

}  // namespace orrery

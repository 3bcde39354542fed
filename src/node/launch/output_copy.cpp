#include "node/launch/output_copy.hpp"

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace orrery {

OutputCopy::OutputCopy(RealLoop& loop, FileDescriptor pipe, std::function<void()> caught_up)
    : loop_(loop), pipe_(std::move(pipe)), caught_up_(std::move(caught_up)) {}

OutputCopy::~OutputCopy() { close(); }

void OutputCopy::close() {
  if (watch_ != WatchId::kNone) loop_.unwatch(std::exchange(watch_, WatchId::kNone));
  pipe_.reset();
  waiting_.clear();
}

void OutputCopy::add(std::string_view bytes) {
  if (!pipe_.valid()) return;
  waiting_ += bytes;
  if (waiting_.size() == bytes.size()) flush();
}

void OutputCopy::end() {
  ends_ = true;
  if (!behind()) close();
}

void OutputCopy::on_ready(std::uint32_t) {
  flush();
  if (!behind()) caught_up_();
}

void OutputCopy::flush() {
  while (behind()) {
    const ssize_t written = ::write(pipe_.get(), waiting_.data(), waiting_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      if (watch_ != WatchId::kNone) return;
      const Result<WatchId> watch = loop_.watch(pipe_.get(), EPOLLOUT, *this);
      if (!watch) return close();
      watch_ = *watch;
      return;
    }
    if (written < 0) return close();
    waiting_.erase(0, static_cast<std::size_t>(written));
  }
  if (watch_ != WatchId::kNone) loop_.unwatch(std::exchange(watch_, WatchId::kNone));
  if (ends_) close();
}

}  // namespace orrery

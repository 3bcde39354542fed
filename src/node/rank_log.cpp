#include "node/rank_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>
#include <utility>

namespace orrery {

std::string RankLog::file_name(const std::string& path, std::uint32_t age) {
  return age == 0 ? path : fmt::format("{}.{}", path, age);
}

std::uint64_t RankLog::begin_of(Storage& storage, const std::string& path) {
  const std::string text = storage.read_file(path + ".begin", 64).value_or("");
  std::uint64_t begin = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), begin);
  return begin;
}

Result<std::unique_ptr<RankLog>> RankLog::open(const Place& place) {
  auto log = std::make_unique<RankLog>(place);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return environment_error(
        fmt::format("cannot make a pipe: {}", std::generic_category().message(errno)));
  }
  log->reading_ = FileDescriptor(ends[0]);
  log->writing_ = FileDescriptor(ends[1]);
  (void)::fcntl(ends[0], F_SETFL, O_NONBLOCK);  // The other end blocks, as programs expect.
  auto file = place.storage.open(place.path, OpenMode::kAppend);
  if (!file) return forward_error(file);
  log->file_ = *std::move(file);
  log->end_ = begin_of(place.storage, place.path) + log->file_->size();
  log->times_.emplace(place.storage, place.path);
  const Result<WatchId> watch = place.loop.watch(ends[0], EPOLLIN, *log);
  if (!watch) return tl::unexpected(watch.error());
  log->watch_ = *watch;
  return log;
}

RankLog::~RankLog() { stop_watching(); }

void RankLog::stop_watching() {
  if (watch_ != WatchId::kNone) place_.loop.unwatch(std::exchange(watch_, WatchId::kNone));
}

void RankLog::on_ready(std::uint32_t) { (void)take(); }

void RankLog::drain() {
  // More than a pipe holds: a daemon that has the pipe, too, and never falls silent is not waited
  // for.
  for (int chunks = 0; chunks < 32 && take() == More::kYes; ++chunks) {
  }
  (void)say_dropped();
}

RankLog::More RankLog::take() {
  std::array<char, kTailBytes> chunk;
  const ssize_t got = ::read(reading_.get(), chunk.data(), chunk.size());
  if (got > 0) {
    keep({chunk.data(), static_cast<std::size_t>(got)});
    return More::kYes;
  }
  if (got < 0 && errno == EINTR) return More::kYes;
  if (got == 0) stop_watching();  // Nobody is left who could write.
  return More::kNo;
}

void RankLog::keep(std::string_view bytes) {
  times_->note(end_, clock_.now_wall());
  end_ += bytes.size();
  tail_ += bytes;
  if (tail_.size() > kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
  while (!bytes.empty()) {
    if (file_->size() >= place_.limits.file_bytes) rotate();
    const std::uint64_t limit = std::max(place_.limits.file_bytes, file_->size() + 1);
    const std::string_view part = bytes.substr(0, limit - file_->size());
    if (!say_dropped() || !file_->append(part)) {
      dropped_ += part.size();
      dropped_unsaid_ += part.size();
    }
    bytes.remove_prefix(part.size());
  }
}

bool RankLog::say_dropped() {
  if (dropped_unsaid_ == 0) return true;
  const std::string note = fmt::format(
      "\n[orrery: {} bytes of this log are missing here: the disk was full]\n", dropped_unsaid_);
  if (!file_->append(note)) return false;
  dropped_unsaid_ = 0;
  return true;
}

/// Where a name cannot be changed, or no file opened, it goes on with what it has.
void RankLog::rotate() {
  const std::string& path = place_.path;
  const std::uint64_t begin = begin_of(place_.storage, path) + file_->size();
  for (std::uint32_t age = std::max(place_.limits.files, 2u) - 1; age > 0; --age) {
    (void)place_.storage.rename({file_name(path, age - 1), file_name(path, age)});
  }
  (void)place_.storage.write_file(path + ".begin", fmt::format("{}\n", begin));
  if (auto next = place_.storage.open(place_.path, OpenMode::kAppend)) file_ = *std::move(next);
}

LogPart RankLog::read(std::uint64_t from) const {
  const std::uint64_t begin = end_ - tail_.size();
  const std::uint64_t at = std::clamp(from, begin, end_);
  return {at, tail_.substr(at - begin)};
}

}  // namespace orrery

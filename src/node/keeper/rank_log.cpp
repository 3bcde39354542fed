#include "node/keeper/rank_log.hpp"

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

class RankLog::Source final : public ReadyHandler {
 public:
  Source(RankLog& log, FileDescriptor reading, FileDescriptor writing)
      : log_(log), reading_(std::move(reading)), writing_(std::move(writing)) {}
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() override { stop_watching(); }

  [[nodiscard]] Status start_watching() {
    const Result<WatchId> watch = log_.place_.loop.watch(reading_.get(), EPOLLIN, *this);
    if (!watch) return tl::unexpected(watch.error());
    watch_ = *watch;
    return {};
  }
  [[nodiscard]] int writing_end() const { return writing_.get(); }
  void close_writing_end() { writing_.reset(); }
  void copy_to(FileDescriptor copy) {
    copy_ = std::make_unique<OutputCopy>(log_.place_.loop, std::move(copy), [this] {
      if (watch_ == WatchId::kNone && !over_) (void)start_watching();
    });
  }
  void end_copy() {
    if (copy_ != nullptr) copy_->end();
  }

  void on_ready(std::uint32_t) override {
    (void)take();
    // The process waits until the copy has taken the earlier output.
    if (copy_ != nullptr && copy_->behind()) stop_watching();
  }

  More take() {
    std::array<char, kTailBytes> chunk;
    const ssize_t got = ::read(reading_.get(), chunk.data(), chunk.size());
    if (got > 0) {
      const std::string_view bytes(chunk.data(), static_cast<std::size_t>(got));
      log_.keep(bytes);
      if (copy_ != nullptr) copy_->add(bytes);
      return More::kYes;
    }
    if (got < 0 && errno == EINTR) return More::kYes;
    if (got == 0) {  // No process has the other end open.
      over_ = true;
      stop_watching();
    }
    return More::kNo;
  }

 private:
  void stop_watching() {
    if (watch_ != WatchId::kNone) log_.place_.loop.unwatch(std::exchange(watch_, WatchId::kNone));
  }

  RankLog& log_;
  FileDescriptor reading_;
  FileDescriptor writing_;
  WatchId watch_ = WatchId::kNone;
  std::unique_ptr<OutputCopy> copy_;  ///< none: it is not copied
  bool over_ = false;
};

RankLog::RankLog(const Place& place) : place_(place) {}

RankLog::~RankLog() = default;

Result<std::unique_ptr<RankLog>> RankLog::open(const Place& place) {
  auto log = std::make_unique<RankLog>(place);
  auto file = place.storage.open(place.path, OpenMode::kAppend);
  if (!file) return forward_error(file);
  log->file_ = *std::move(file);
  log->end_ = begin_of(place.storage, place.path) + log->file_->size();
  log->times_.emplace(place.storage, place.path);
  if (Status opened = log->open_source(Stream::kOutput); !opened) return forward_error(opened);
  return log;
}

Status RankLog::open_source(Stream stream) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return environment_error(
        fmt::format("cannot make a pipe: {}", std::generic_category().message(errno)));
  }
  (void)::fcntl(ends[0], F_SETFL, O_NONBLOCK);  // The other end blocks, as programs expect.
  std::unique_ptr<Source>& made = source(stream);
  made = std::make_unique<Source>(*this, FileDescriptor(ends[0]), FileDescriptor(ends[1]));
  return made->start_watching();
}

Status RankLog::split_errors() { return open_source(Stream::kErrors); }

int RankLog::writing_end(Stream stream) const {
  const std::unique_ptr<Source>& from = stream == Stream::kOutput ? output_ : errors_;
  return from == nullptr ? -1 : from->writing_end();
}

void RankLog::close_writing_ends() {
  output_->close_writing_end();
  if (errors_ != nullptr) errors_->close_writing_end();
}

void RankLog::copy_to(Stream stream, FileDescriptor copy) {
  source(stream)->copy_to(std::move(copy));
}

void RankLog::end_copies() {
  output_->end_copy();
  if (errors_ != nullptr) errors_->end_copy();
}

void RankLog::drain() {
  // Reads more than a pipe holds, but not for ever: a daemon that has the pipe, too, may never stop
  // writing.
  constexpr int kChunksMax = 32;
  for (const std::unique_ptr<Source>* each : {&output_, &errors_}) {
    if (*each == nullptr) continue;
    for (int chunks = 0; chunks < kChunksMax && (*each)->take() == More::kYes; ++chunks) {
    }
  }
  (void)say_dropped();
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

/// Where a file cannot be renamed or opened, the log goes on with the present file.
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

#include "node/log_times.hpp"

#include <fmt/format.h>

#include <charconv>
#include <utility>
#include <vector>

namespace orrery {
namespace {

constexpr std::size_t kFileBytesMax = LogTimes::kMarksMax * 64;

struct TimeMark {
  std::uint64_t offset = 0;
  Instant at;
  Duration interval;  ///< in which the next mark was not made
};

std::string times_path(const std::string& log_path) { return log_path + ".times"; }

std::string line_of(const TimeMark& mark) {
  return fmt::format("{} {} {}\n", mark.offset, mark.at.ns(), mark.interval.count_ns());
}

/// Reads marks up to a line that is damaged or incomplete.
std::vector<TimeMark> read_marks(Storage& storage, const std::string& path) {
  const std::string text = storage.read_file(path, kFileBytesMax).value_or("");
  std::vector<TimeMark> marks;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  const auto number = [&](auto& value, char behind) {
    const auto [rest, failed] = std::from_chars(at, end, value);
    if (failed != std::errc() || rest == end || *rest != behind) return false;
    at = rest + 1;
    return true;
  };
  while (at != end) {
    std::uint64_t offset = 0;
    std::int64_t when = 0;
    std::int64_t interval = 0;
    if (!number(offset, ' ') || !number(when, ' ') || !number(interval, '\n')) break;
    marks.push_back({offset, Instant::from_ns(when), Duration::nanoseconds(interval)});
  }
  return marks;
}

}  // namespace

LogTimes::LogTimes(Storage& storage, const std::string& log_path)
    : storage_(storage), path_(times_path(log_path)) {
  const std::vector<TimeMark> marks = read_marks(storage, path_);
  marks_ = marks.size();
  if (!marks.empty()) interval_ = marks.back().interval;
  if (auto file = storage.open(path_, OpenMode::kAppend)) file_ = *std::move(file);
}

void LogTimes::note(std::uint64_t offset, Instant now) {
  // A clock that was set back causes a mark, too.
  if (newest_ && now >= *newest_ && now - *newest_ < interval_) return;
  if (marks_ >= kMarksMax) thin_out();
  if (file_ == nullptr || !file_->append(line_of({offset, now, interval_}))) return;
  newest_ = now;
  ++marks_;
}

void LogTimes::thin_out() {
  interval_ = interval_ + interval_;
  std::string kept;
  marks_ = 0;
  const std::vector<TimeMark> marks = read_marks(storage_, path_);
  for (std::size_t i = 0; i < marks.size(); i += 2) {
    kept += line_of({marks[i].offset, marks[i].at, interval_});
    ++marks_;
  }
  file_.reset();
  (void)storage_.write_file(path_, kept);
  if (auto file = storage_.open(path_, OpenMode::kAppend)) file_ = *std::move(file);
}

std::optional<std::uint64_t> LogTimes::offset_since(Storage& storage, const std::string& log_path,
                                                    Instant since) {
  const std::vector<TimeMark> marks = read_marks(storage, times_path(log_path));
  if (marks.empty()) return std::nullopt;
  // Bytes between two marks were written within the interval of the first.
  const TimeMark* newest = nullptr;
  for (const TimeMark& mark : marks) {
    const bool all_before = newest == nullptr || newest->at + newest->interval <= since;
    if (mark.at > since) return all_before ? mark.offset : newest->offset;
    newest = &mark;
  }
  return newest->at + newest->interval <= since ? ~std::uint64_t{0} : newest->offset;
}

}  // namespace orrery

#include "node/log_files.hpp"

#include <algorithm>
#include <utility>

namespace orrery {

LogFiles LogFiles::look(Storage& storage, const std::string& path) {
  constexpr std::uint32_t kFilesMax = 1000;
  LogFiles log;
  std::uint64_t older = 0;
  for (std::uint32_t age = 0; age < kFilesMax; ++age) {
    auto file = storage.open(RankLog::file_name(path, age), OpenMode::kRead);
    // The newest file may be missing for a moment, or for good where its keeper was killed then.
    if (!file && age > 0) break;
    if (!file) continue;
    if (age > 0) older += (*file)->size();
    log.files_.push_back({*std::move(file), 0});
  }
  std::reverse(log.files_.begin(), log.files_.end());
  const std::uint64_t begin_of_newest = RankLog::begin_of(storage, path);
  log.begin_ = begin_of_newest - std::min(older, begin_of_newest);
  log.end_ = log.begin_;
  for (Piece& piece : log.files_) {
    piece.from = log.end_;
    log.end_ += piece.file->size();
  }
  return log;
}

LogPart LogFiles::read(std::uint64_t from, std::size_t size_max) const {
  LogPart part{std::clamp(from, begin_, end_), {}};
  for (const Piece& piece : files_) {
    const std::uint64_t at = part.from + part.bytes.size();
    if (at >= piece.from + piece.file->size() || part.bytes.size() >= size_max) continue;
    const auto bytes = piece.file->read({at - piece.from, size_max - part.bytes.size()});
    if (!bytes) break;
    part.bytes += *bytes;
  }
  return part;
}

}  // namespace orrery

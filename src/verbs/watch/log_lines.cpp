#include "verbs/watch/log_lines.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/count_text.hpp"
#include "base/text/terminal_text.hpp"
#include "verbs/cluster/live_session.hpp"

namespace orrery {
namespace {

constexpr std::size_t kLineMax = std::size_t{64} << 10;
constexpr std::uint32_t kAttachTail = 10;

}  // namespace

Result<v1::ReadLogRequest> log_request(const LogSelection& selection) {
  const Result<std::uint64_t> job = job_id(selection.job);
  if (!job) return tl::unexpected(job.error());
  v1::ReadLogRequest request;
  request.set_id(*job);
  request.set_attempt(selection.attempt);
  if (selection.gang) request.set_gang(*selection.gang);
  if (selection.rank) request.set_rank(*selection.rank);
  if (selection.tail) request.set_tail(*selection.tail);
  request.set_follow(selection.follow);
  request.set_node(selection.node);
  request.set_since(selection.since);
  return request;
}

LogSelection attached(LogSelection selection) {
  selection.follow = true;
  selection.tail = kAttachTail;
  return selection;
}

std::string attach_text(const std::string& job) {
  return fmt::format(
      "orrery: ^C detaches; ranks read no input; `orrery exec {}` runs a command next to a rank\n",
      job);
}

std::string LogLines::label(const Rank& rank) const {
  return gangs_ ? fmt::format("{}.{}: ", rank.first, rank.second)
                : fmt::format("{}: ", rank.second);
}

std::string LogLines::shown(std::string_view bytes) const {
  return bytes_ == LogBytes::kRaw ? std::string(bytes) : terminal_text(bytes, Newlines::kKept);
}

LogLines::Shown LogLines::show(const v1::LogChunk& chunk) {
  Shown result;
  const bool several = chunk.ranks() > 1;
  if (!chunk.note().empty()) {
    result.message = fmt::format("orrery: {}\n", one_line(chunk.note()));
  } else if (chunk.skipped() > 0) {
    result.message =
        fmt::format("orrery: {}{} of earlier output {} no longer kept\n",
                    several ? fmt::format("rank {}: ", chunk.rank()) : "",
                    counted(chunk.skipped(), "byte"), chunk.skipped() == 1 ? "is" : "are");
  }
  result.bytes =
      several ? whole_lines({chunk.gang(), chunk.rank()}, chunk.bytes()) : shown(chunk.bytes());
  return result;
}

std::string LogLines::whole_lines(const Rank& rank, std::string_view bytes) {
  gangs_ = gangs_ || rank.first > 0;
  std::string& line = lines_[rank];
  std::string text;
  while (!bytes.empty()) {
    const std::size_t end = std::min(bytes.find('\n'), bytes.size());
    line += bytes.substr(0, end);
    if (end == bytes.size() && line.size() < kLineMax) break;
    text += label(rank) + line + "\n";
    line.clear();
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  return shown(text);
}

std::string LogLines::take_unfinished() {
  std::string text;
  for (const auto& [rank, line] : lines_) {
    if (!line.empty()) text += shown(label(rank) + line + "\n");
  }
  lines_.clear();
  return text;
}

void LogLines::remember(const v1::LogChunk& chunk) {
  if (chunk.attempt() == 0) return;  // a note alone
  if (request_.from_attempt() != chunk.attempt()) {
    request_.set_from_attempt(chunk.attempt());
    request_.clear_positions();
    positions_.clear();
  }
  const auto [at, is_new] =
      positions_.try_emplace({chunk.gang(), chunk.rank()}, request_.positions_size());
  v1::LogPosition& position =
      is_new ? *request_.add_positions() : *request_.mutable_positions(at->second);
  position.set_gang(chunk.gang());
  position.set_rank(chunk.rank());
  position.set_from(chunk.from() + chunk.bytes().size());
}

}  // namespace orrery

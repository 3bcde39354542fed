#include "node/attempts/attempt_logs.hpp"

#include <algorithm>
#include <utility>

#include "node/launch/attempt_directories.hpp"
#include "node/log_files.hpp"
#include "node/log_times.hpp"

namespace orrery {
namespace {

constexpr std::size_t kAnswerBytesMax = std::size_t{256} << 10;

/// Where the end is wanted the keeper is asked for its whole tail.
std::uint64_t first_byte(const LogQuestion& log) { return log.from == kFromTail ? 0 : log.from; }

AskedLog end_of_log(const LoggedRank& rank) {
  return {std::nullopt, {rank.gang, rank.rank, kFromTail}};
}

void answer(const LogPlace& place, const AskedLog& asked, AttemptLogPart part) {
  if (asked.id) {
    part.id = *asked.id;
    if (asked.since && part.found) {
      const LoggedRank rank{asked.log.gang, asked.log.rank};
      part.since_from =
          LogTimes::offset_since(place.storage, log_path(place.files, rank), *asked.since);
    }
    place.session.send(std::move(part));
  } else if (part.found) {
    place.session.send(KeptLog{place.id, asked.log.gang, asked.log.rank, std::move(part.part)});
  }
}

}  // namespace

void answer_from_files(const LogPlace& place, const AskedLog& asked) {
  const std::string path = log_path(place.files, {asked.log.gang, asked.log.rank});
  const LogFiles files = LogFiles::look(place.storage, path);
  const std::uint64_t tail = files.end() - std::min(files.end(), RankLog::kTailBytes + 0ul);
  const std::uint64_t from = asked.log.from == kFromTail ? tail : asked.log.from;
  answer(place, asked, {0, files.found(), files.end(), files.read(from, kAnswerBytesMax)});
}

void AttemptLogs::ask(const AskedLog& asked) {
  if (keeper_gone_) return answer_from_files(place_, asked);
  asked_.push_back(asked);
  keeper_.tell(LogQuestion{asked.log.gang, asked.log.rank, first_byte(asked.log)});
}

void AttemptLogs::on_tail(const LogTail& tail) {
  const auto found = std::find_if(asked_.begin(), asked_.end(), [&](const AskedLog& each) {
    return each.log.gang == tail.question.gang && each.log.rank == tail.question.rank &&
           first_byte(each.log) == tail.question.from;
  });
  if (found == asked_.end()) return;
  const AskedLog asked = *found;
  asked_.erase(found);
  const bool covered = asked.log.from == kFromTail || tail.part.from <= asked.log.from;
  if (tail.found && covered) {
    answer(place_, asked, {0, true, tail.part.from + tail.part.bytes.size(), tail.part});
  } else {
    answer_from_files(place_, asked);
  }
  release_if_kept();
}

void AttemptLogs::answer_pending() {
  for (const AskedLog& asked : std::exchange(asked_, {})) answer_from_files(place_, asked);
}

void AttemptLogs::on_break() {
  answer_pending();
  release_if_kept();
}

void AttemptLogs::on_keeper_gone() {
  keeper_gone_ = true;
  answer_pending();
}

void AttemptLogs::keep_then_release() {
  released_ = true;
  for (const LoggedRank& rank : logged_ranks(place_.storage, place_.files)) ask(end_of_log(rank));
  release_if_kept();
}

void AttemptLogs::on_over() {
  if (released_) return;
  for (const LoggedRank& rank : logged_ranks(place_.storage, place_.files)) {
    answer_from_files(place_, end_of_log(rank));
  }
}

void AttemptLogs::release_if_kept() {
  const bool waits =
      std::any_of(asked_.begin(), asked_.end(), [](const AskedLog& asked) { return !asked.id; });
  if (released_ && !waits) keeper_.tell(AgentOrder{{{}, ReleaseKeeper{}}, {}});
}

}  // namespace orrery

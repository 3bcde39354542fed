// Output of ranks: the newest part comes from the keeper, which has it whatever the disk does;
// older parts, and all output of an attempt that is over, come from the files.
#include <algorithm>
#include <utility>

#include "node/agent/agent_process.hpp"
#include "node/log_files.hpp"
#include "node/log_times.hpp"

namespace orrery {
namespace {

constexpr std::size_t kAnswerBytesMax = std::size_t{256} << 10;

/// Where the end is wanted the keeper is asked for its whole tail.
std::uint64_t first_byte(const LogQuestion& log) { return log.from == kFromTail ? 0 : log.from; }

}  // namespace

void AgentProcess::on_log_question(const AttemptLogQuestion& question) {
  const AskedLog asked{question.id, question.log, question.since};
  const auto found = attempts_.find(question.attempt);
  if (found == attempts_.end()) return answer_from_files(question.attempt, asked);
  ask(found->second, asked);
}

void AgentProcess::ask(Attempt& attempt, const AskedLog& asked) {
  attempt.asked.push_back(asked);
  attempt.link->tell(LogQuestion{asked.log.gang, asked.log.rank, first_byte(asked.log)});
}

void AgentProcess::on_tail(const AttemptId& id, const LogTail& tail) {
  Attempt& attempt = attempts_.at(id);
  const auto found =
      std::find_if(attempt.asked.begin(), attempt.asked.end(), [&](const AskedLog& each) {
        return each.log.gang == tail.question.gang && each.log.rank == tail.question.rank &&
               first_byte(each.log) == tail.question.from;
      });
  if (found == attempt.asked.end()) return;
  const AskedLog asked = *found;
  attempt.asked.erase(found);
  const bool covered = asked.log.from == kFromTail || tail.part.from <= asked.log.from;
  if (tail.found && covered) {
    answer(id, asked, {0, true, tail.part.from + tail.part.bytes.size(), tail.part});
  } else {
    answer_from_files(id, asked);
  }
  release_if_kept(attempt);
}

void AgentProcess::on_break(const AttemptId& id) {
  Attempt& attempt = attempts_.at(id);
  for (const AskedLog& asked : std::exchange(attempt.asked, {})) answer_from_files(id, asked);
  end_commands(id, "the keeper of its ranks was lost");
  release_if_kept(attempt);
}

void AgentProcess::answer_from_files(const AttemptId& id, const AskedLog& asked) {
  const std::string path = log_path(directories_->files(id), {asked.log.gang, asked.log.rank});
  const LogFiles files = LogFiles::look(real_.env().storage, path);
  const std::uint64_t tail = files.end() - std::min(files.end(), RankLog::kTailBytes + 0ul);
  const std::uint64_t from = asked.log.from == kFromTail ? tail : asked.log.from;
  answer(id, asked, {0, files.found(), files.end(), files.read(from, kAnswerBytesMax)});
}

void AgentProcess::answer(const AttemptId& id, const AskedLog& asked, AttemptLogPart part) {
  if (asked.id) {
    part.id = *asked.id;
    if (asked.since && part.found) {
      const LoggedRank rank{asked.log.gang, asked.log.rank};
      part.since_from = LogTimes::offset_since(
          real_.env().storage, log_path(directories_->files(id), rank), *asked.since);
    }
    if (welcomed_) channel_.send(std::move(part));
  } else if (part.found && welcomed_) {
    channel_.send(KeptLog{id, asked.log.gang, asked.log.rank, std::move(part.part)});
  }
}

/// The controller knows of the attempt's end; sends the ends of its logs after it.
void AgentProcess::keep_logs(const AttemptId& id, Attempt& attempt) {
  attempt.released = true;
  attempt.kept = true;
  for (const LoggedRank& rank : logged_ranks(real_.env().storage, directories_->files(id))) {
    ask(attempt, {std::nullopt, {rank.gang, rank.rank, kFromTail}});
  }
  release_if_kept(attempt);
}

void AgentProcess::release_if_kept(Attempt& attempt) {
  const bool waits = std::any_of(attempt.asked.begin(), attempt.asked.end(),
                                 [](const AskedLog& asked) { return !asked.id; });
  if (attempt.released && !waits) attempt.link->tell(AgentOrder{{{}, ReleaseKeeper{}}, {}});
}

}  // namespace orrery

#include "executor/jobs/rank_logs.hpp"

#include <algorithm>
#include <bit>

#include "base/format/document.hpp"
#include "node/keeper/keeper_launch.hpp"

namespace orrery {
namespace {

constexpr std::size_t kRanOnMax = 100'000;  ///< most ranks whose node is remembered
constexpr std::size_t kKeptLogBytesMax = std::size_t{64} << 20;
constexpr Duration kLogPatience = Duration::seconds(5);

/// Whether a job has one process on each node, however many devices it has there.
bool has_one_a_node(const JobSpec* spec) {
  return spec != nullptr &&
         (launch_of(*spec)->per == LaunchUnit::kNode || spec->software.framework == "slurm");
}

/// Returns the node of a rank; ranks count the processes of a gang in order.
std::optional<NodeId> node_of_rank(const Job& job, const LogQuestion& of, const JobSpec* spec) {
  if (of.gang >= job.placed.size()) return std::nullopt;
  const bool one_a_node = has_one_a_node(spec);
  std::uint32_t first = 0;
  for (const NodeDevices& at : job.placed[of.gang]) {
    first += one_a_node ? 1 : static_cast<std::uint32_t>(std::popcount(at.devices));
    if (of.rank < first) return at.node;
  }
  return std::nullopt;
}

/// Returns the ranks of a share: one for each device, or one for the node if it has one process.
std::vector<std::uint32_t> ranks_of(const RankShare& share, const NodeProgram& program) {
  const bool one_a_node = program.per == LaunchUnit::kNode || program.framework == "slurm";
  if (!one_a_node) return share.ranks;
  return {layout_of(share.gang, program.gangs).here};
}

/// Returns the log from byte `from` on; if that part is gone, from the first byte that is left.
LogPart part_from(const LogPart& kept, std::uint64_t from) {
  const std::uint64_t end = kept.from + kept.bytes.size();
  if (from == kFromTail) from = kept.from;
  from = std::clamp(from, kept.from, end);
  return {from, kept.bytes.substr(static_cast<std::size_t>(from - kept.from))};
}

}  // namespace

RankLogs::~RankLogs() {
  for (const auto& [number, wait] : waits_) env_.timers.cancel(wait.timer);
}

void RankLogs::use(const FleetMap& map) {
  std::map<Key, NodeId> ran_on;
  for (const auto& [key, node] : ran_on_) {
    if (map.nodes[node.value()].valid()) ran_on.emplace(key, map.nodes[node.value()]);
  }
  ran_on_ = std::move(ran_on);
  for (auto& [number, wait] : waits_) {
    if (wait.node.valid()) wait.node = map.nodes[wait.node.value()];
  }
}

void RankLogs::note_launch(const LaunchRanks& launch, const NodeProgram& program, NodeId node) {
  for (const RankShare& share : launch.shares) {
    for (const std::uint32_t rank : ranks_of(share, program)) {
      ran_on_.insert_or_assign(Key{launch.token.id, share.gang, rank}, node);
    }
  }
  while (ran_on_.size() > kRanOnMax) ran_on_.erase(ran_on_.begin());
}

std::optional<AttemptId> RankLogs::take(NodeId node, const AttemptLogPart& part) {
  const auto asked = waits_.find(part.id);
  if (asked == waits_.end()) return std::nullopt;  // the answer came too late
  if (asked->second.node != node) return asked->second.asked.attempt;
  answer({part, Source::kNode});
  return std::nullopt;
}

/// Whether a rank of an attempt was placed on a node, now or by its last order.
bool RankLogs::wrote_log(NodeId node, const Key& rank) {
  if (node_of({.attempt = rank.attempt, .what = {rank.gang, rank.rank, 0}}) == node) return true;
  const auto found = ran_on_.find(rank);  // rank of an earlier epoch
  return found != ran_on_.end() && found->second == node;
}

/// Whether ranks of an attempt are on a node, or were before it was resized.
bool RankLogs::had_part(NodeId node, const AttemptId& attempt) const {
  const auto here = [node](const NodeDevices& at) { return at.node == node; };
  if (state_.has(attempt.job) && state_.job(attempt.job).attempt == attempt.attempt) {
    for (const std::vector<NodeDevices>& gang : state_.job(attempt.job).placed) {
      if (std::any_of(gang.begin(), gang.end(), here)) return true;
    }
  }
  for (auto at = ran_on_.lower_bound({attempt, 0, 0});
       at != ran_on_.end() && at->first.attempt == attempt; ++at) {
    if (at->second == node) return true;
  }
  return false;
}

const JobSpec* RankLogs::spec_of(JobId job) {
  if (last_spec_ && last_spec_->first == job) return &last_spec_->second;
  const Result<Document> document = Document::parse(state_.job(job).spec, "the job's spec");
  if (!document) return nullptr;
  Result<JobSpec> spec = read_job_spec(*document);
  if (!spec || !launch_of(*spec)) return nullptr;
  last_spec_.emplace(job, *std::move(spec));
  return &last_spec_->second;
}

bool RankLogs::keep(NodeId node, KeptLog log) {
  const Key key{log.attempt, log.gang, log.rank};
  if (!wrote_log(node, key)) return false;
  const auto [at, is_new] = kept_.try_emplace(key);
  if (is_new) kept_order_.push_back(key);
  kept_bytes_ = kept_bytes_ - at->second.bytes.size() + log.part.bytes.size();
  at->second = std::move(log.part);
  while (kept_bytes_ > kKeptLogBytesMax) {
    const auto oldest = kept_.find(kept_order_.front());
    kept_bytes_ -= oldest->second.bytes.size();
    kept_.erase(oldest);
    kept_order_.pop_front();
  }
  return true;
}

RankLogs::Answer RankLogs::kept_log(const Asked& asked, Source otherwise) const {
  const auto found = kept_.find({asked.attempt, asked.what.gang, asked.what.rank});
  if (found == kept_.end()) return {{}, otherwise};
  const LogPart& kept = found->second;
  // If the node answered that it has no log, the rest is gone; otherwise it may come back.
  return {{0, true, kept.from + kept.bytes.size(), part_from(kept, asked.what.from)},
          otherwise == Source::kNode ? Source::kKept : otherwise};
}

std::optional<NodeId> RankLogs::node_of(const Asked& asked) {
  // The newest attempt's place is in the state, even after a start of the controller.
  const JobId id = asked.attempt.job;
  if (state_.has(id) && state_.job(id).attempt == asked.attempt.attempt) {
    const Job& job = state_.job(id);
    // Rank 0 is on the first node in either case, and reading a spec is expensive.
    const bool needs_spec = asked.what.rank > 0 && !job.spec.empty();
    return node_of_rank(job, asked.what, needs_spec ? spec_of(id) : nullptr);
  }
  const auto found = ran_on_.find({asked.attempt, asked.what.gang, asked.what.rank});
  return found == ran_on_.end() ? std::nullopt : std::optional(found->second);
}

void RankLogs::ask(const Asked& asked, Answered answered) {
  const std::optional<NodeId> node = node_of(asked);
  AgentSession* session = node ? agents_.of(*node).session : nullptr;
  if (session == nullptr) return answered(kept_log(asked, Source::kAbsent));
  const std::uint64_t number = ++numbers_;
  const TimerId timer = env_.timers.call_after(kLogPatience, [this, number] {
    answer({{.id = number, .found = false, .size = 0, .part = {}}, Source::kSilent});
  });
  waits_.emplace(number, Wait{asked, *node, std::move(answered), timer});
  session->send(AttemptLogQuestion{number, asked.attempt, asked.what, asked.since});
}

void RankLogs::answer(const Answer& answer) {
  const auto found = waits_.find(answer.part.id);
  if (found == waits_.end()) return;
  const Wait wait = std::move(found->second);
  waits_.erase(found);
  env_.timers.cancel(wait.timer);
  wait.answered(answer.part.found ? answer : kept_log(wait.asked, answer.source));
}

std::vector<RankLogs::Place> RankLogs::places(const AttemptId& attempt) {
  std::vector<Place> places;
  if (!state_.has(attempt.job)) return places;
  const Job& job = state_.job(attempt.job);
  if (job.attempt != attempt.attempt) {
    for (auto at = ran_on_.lower_bound({attempt, 0, 0});
         at != ran_on_.end() && at->first.attempt == attempt; ++at) {
      places.push_back({at->first.gang, at->first.rank, at->second});
    }
    return places;
  }
  places = rank_places(attempt.job);
  // The other ranks of a script hold nodes for its steps, and have no output.
  const JobSpec* spec = job.spec.empty() ? nullptr : spec_of(attempt.job);
  const bool script = spec != nullptr && spec->software.framework == "slurm";
  if (script && places.size() > 1) places.resize(1);
  return places;
}

std::vector<RankLogs::Place> RankLogs::rank_places(JobId id) {
  std::vector<Place> places;
  const Job& job = state_.job(id);
  const JobSpec* spec = job.spec.empty() ? nullptr : spec_of(id);
  const bool one_a_node = has_one_a_node(spec);
  for (std::uint32_t gang = 0; gang < job.placed.size(); ++gang) {
    std::uint32_t rank = 0;
    for (const NodeDevices& at : job.placed[gang]) {
      const auto devices = static_cast<std::uint32_t>(std::popcount(at.devices));
      const std::uint32_t here = one_a_node ? 1 : devices;
      for (std::uint32_t i = 0; i < here; ++i) places.push_back({gang, rank + i, at.node});
      rank += here;
    }
  }
  return places;
}

}  // namespace orrery

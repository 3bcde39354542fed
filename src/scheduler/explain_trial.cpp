#include "scheduler/explain_trial.hpp"

#include <algorithm>

namespace orrery {

ExplainTrial::ExplainTrial(const Situation& situation, const Policy& policy, const WaitingJob& job)
    : s_(situation),
      as_is_(policy),
      policy_(policy),
      request_(*job.request),
      job_(job),
      tree_(situation.fleet.topology()),
      scheduler_(tree_),
      placer_(tree_) {
  policy_.preemption = PreemptionRule::kNone;
  request_.class_id = ClassId();
  job_.request = &request_;
}

Situation ExplainTrial::situation() const {
  Situation alone = s_;
  alone.waiting = std::span(&job_, 1);
  alone.reserved = {};
  return alone;
}

std::optional<std::vector<PlacedGang>> ExplainTrial::place(const FleetView& view) {
  GangsOrRefusal gangs = placer_.place(view, request_, {.fit = policy_.node_fit});
  if (!gangs) return std::nullopt;
  return *std::move(gangs);
}

tl::expected<StartJob, Refusal> ExplainTrial::decide(const Situation& situation,
                                                     const Policy& policy) {
  PassResult result = scheduler_.decide(situation, policy, PassKind::kIncremental);
  for (Decision& decision : result.decisions) {
    if (auto* start = std::get_if<StartJob>(&decision)) return std::move(*start);
  }
  return tl::unexpected(result.waiting.empty() ? Refusal{} : result.waiting.front().refusal);
}

tl::expected<StartJob, Refusal> ExplainTrial::decide(const JobRequest& request) {
  WaitingJob changed = job_;
  changed.request = &request;
  Situation alone = situation();
  alone.waiting = std::span(&changed, 1);
  return decide(alone, policy_);
}

std::optional<StartJob> ExplainTrial::starts(const Situation& changed, const JobRequest& request) {
  if (!passes_left()) return std::nullopt;
  ++passes_;
  queue_.assign(changed.waiting.begin(), changed.waiting.end());
  const auto own = std::find_if(queue_.begin(), queue_.end(),
                                [&](const WaitingJob& job) { return job.id == job_.id; });
  own->request = &request;
  // Its own slot is for what it asks now.
  reserved_.clear();
  for (const Reservation& slot : changed.reserved) {
    if (slot.job != job_.id) reserved_.push_back(slot);
  }
  Situation whole = changed;
  whole.waiting = queue_;
  whole.reserved = reserved_;
  const bool slots_stay = as_is_.blocked == Blocked::kReserves && as_is_.full_interval > Seconds(0);
  if (slots_stay && !start_in_pass(whole, PassKind::kIncremental)) return std::nullopt;
  return start_in_pass(whole, PassKind::kFull);
}

std::optional<StartJob> ExplainTrial::start_in_pass(const Situation& changed, PassKind kind) {
  scheduler_.forget();
  PassResult result = scheduler_.decide(changed, as_is_, kind);
  scheduler_.forget();
  for (Decision& decision : result.decisions) {
    auto* start = std::get_if<StartJob>(&decision);
    if (start != nullptr && start->job == job_.id) return std::move(*start);
  }
  return std::nullopt;
}

}  // namespace orrery

#include "scheduler/explain_trial.hpp"

namespace orrery {

ExplainTrial::ExplainTrial(const Situation& situation, const Policy& policy, const WaitingJob& job)
    : s_(situation),
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

}  // namespace orrery

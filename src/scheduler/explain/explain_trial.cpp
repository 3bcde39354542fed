#include "scheduler/explain/explain_trial.hpp"

#include <algorithm>

#include "scheduler/tenants/queue_order.hpp"

namespace orrery {
namespace {

/// The number of passes, bounded by the jobs in all of them together: large situations cost more a
/// pass, and get fewer.
constexpr std::size_t kPassesMost = 16;
constexpr std::size_t kPassesLeast = 2;
constexpr std::size_t kJobsInPasses = 4000;

}  // namespace

ExplainTrial::ExplainTrial(const Situation& situation, const Policy& policy, const WaitingJob& job)
    : s_(situation),
      as_is_(policy),
      policy_(policy),
      request_(*job.request),
      job_(job),
      tree_(situation.fleet.topology()),
      scheduler_(tree_),
      placer_(tree_) {
  const std::size_t jobs = std::max<std::size_t>(1, s_.waiting.size() + s_.running.size());
  passes_most_ =
      static_cast<std::uint32_t>(std::clamp(kJobsInPasses / jobs, kPassesLeast, kPassesMost));
  policy_.preemption = PreemptionRule::kNone;
  policy_.yield_ratio = 0;
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
  ++tried_;
  fill_queue(changed, request);
  // The job's own reservation fits its present request only.
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

// Leaves out jobs behind it, which are considered later and do not matter: of the whole queue where
// there is one order, of its own tenant where tenants take turns. Jobs with a reservation stay.
void ExplainTrial::fill_queue(const Situation& changed, const JobRequest& request) {
  WaitingJob own = job_;
  own.request = &request;
  const OrderKey key = key_of(own, as_is_, changed);
  const bool fair = as_is_.order == QueueOrder::kFair;
  const auto behind = [&](const WaitingJob& job) {
    if (fair && (job.request->tenant != request.tenant ||
                 (job.request->kind == JobKind::kServe) != (request.kind == JobKind::kServe))) {
      return false;
    }
    // A deadline may bring the other job to the front.
    return !job.request->deadline && key < key_of(job, as_is_, changed);
  };
  const auto has_slot = [&](const WaitingJob& job) {
    return std::any_of(changed.reserved.begin(), changed.reserved.end(),
                       [&](const Reservation& slot) { return slot.job == job.id; });
  };
  queue_.clear();
  for (const WaitingJob& job : changed.waiting) {
    if (job.id == own.id) {
      queue_.push_back(own);
    } else if (!behind(job) || has_slot(job)) {
      queue_.push_back(job);
    }
  }
}

std::optional<StartJob> ExplainTrial::start_in_pass(const Situation& changed, PassKind kind) {
  ++passes_;
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

#include "control/core/held_situation.hpp"

#include <algorithm>
#include <utility>

#include "scheduler/rounds/round_turns.hpp"

namespace orrery {

namespace {

/// Returns the value of a key among entries sorted by it; a default value if it is missing.
template <class Key, class Value>
Value value_of(const std::vector<std::pair<Key, Value>>& entries, const Key& key) {
  const auto found =
      std::lower_bound(entries.begin(), entries.end(), key,
                       [](const auto& entry, const Key& k) { return entry.first < k; });
  return found == entries.end() || found->first != key ? Value{} : found->second;
}

template <class Entries>
void sort_by_key(Entries& entries) {
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
}

}  // namespace

HeldHistory::HeldHistory(const Situation& of, const Policy& policy) {
  if (of.history == nullptr || policy.preemption != PreemptionRule::kRounds) return;
  past_.reserve(of.waiting.size() + of.running.size());
  for (const WaitingJob& job : of.waiting) past_.emplace_back(job.id, of.history->past(job.id));
  for (const RunningJob& job : of.running) past_.emplace_back(job.id, of.history->past(job.id));
  sort_by_key(past_);
  if (!keeps_share_period(policy)) return;
  period_ = of.history->share_period();
  if (policy.order != QueueOrder::kMaxMin) return;
  for (const WaitingJob& job : of.waiting) note(job.id, *job.request, of);
  for (const RunningJob& job : of.running) note(job.id, *job.request, of);
  sort_by_key(had_);
}

void HeldHistory::note(JobId job, const JobRequest& request, const Situation& of) {
  for (const RoleRequest& role : request.roles) {
    for (const GangOption& option : role.options) {
      const double had = of.history->device_seconds(job, option.gang.type, of.now);
      if (had > 0) had_.push_back({{job, option.gang.type}, had});
    }
  }
}

double HeldHistory::device_seconds(JobId job, FleetTypeId type, Instant) const {
  return value_of(had_, std::pair(job, type));
}

JobPast HeldHistory::past(JobId job) const { return value_of(past_, job); }

HeldSituation::HeldSituation(const Situation& of, Shared shared)
    : version_(shared.version),
      policy_(shared.policy),
      fleet_(std::move(shared.fleet)),
      submissions_(std::move(shared.submissions)),
      tenants_(std::move(shared.tenants)),
      waiting_(of.waiting.begin(), of.waiting.end()),
      running_(of.running.begin(), of.running.end()),
      running_changes_(of.running_changes.begin(), of.running_changes.end()),
      history_(of, shared.policy),
      usage_(*of.usage),
      risk_(of.node_risk.begin(), of.node_risk.end()),
      slots_(of.reserved.begin(), of.reserved.end()),
      closures_(of.closures.begin(), of.closures.end()),
      situation_(of) {
  situation_.fleet = fleet_->view();
  situation_.waiting = waiting_;
  situation_.running = running_;
  situation_.running_changes = running_changes_;
  situation_.history = &history_;
  situation_.usage = &usage_;
  if (of.power != nullptr) situation_.power = &power_.emplace(*of.power);
  if (of.caps != nullptr) situation_.caps = &caps_.emplace(*of.caps);
  if (of.plans != nullptr) situation_.plans = &plans_.emplace(*of.plans);
  situation_.node_risk = risk_;
  situation_.reserved = slots_;
  situation_.closures = closures_;
}

}  // namespace orrery

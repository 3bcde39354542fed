#include "control/held_situation.hpp"

#include <utility>

namespace orrery {

HeldHistory::HeldHistory(const Situation& of, const Policy& policy) {
  if (of.history == nullptr || policy.preemption != PreemptionRule::kRounds) return;
  for (const WaitingJob& job : of.waiting) past_[job.id] = of.history->past(job.id);
  for (const RunningJob& job : of.running) past_[job.id] = of.history->past(job.id);
  if (policy.order != QueueOrder::kMaxMin) return;
  period_ = of.history->share_period();
  for (const WaitingJob& job : of.waiting) note(job.id, *job.request, of);
  for (const RunningJob& job : of.running) note(job.id, *job.request, of);
}

void HeldHistory::note(JobId job, const JobRequest& request, const Situation& of) {
  for (const RoleRequest& role : request.roles) {
    for (const GangOption& option : role.options) {
      const double had = of.history->device_seconds(job, option.gang.type, of.now);
      if (had > 0) had_[{job, option.gang.type}] = had;
    }
  }
}

double HeldHistory::device_seconds(JobId job, FleetTypeId type, Instant) const {
  const auto found = had_.find({job, type});
  return found == had_.end() ? 0 : found->second;
}

JobPast HeldHistory::past(JobId job) const {
  const auto found = past_.find(job);
  return found == past_.end() ? JobPast{} : found->second;
}

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

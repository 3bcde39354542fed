#include "api/access/event_filter.hpp"

namespace orrery {
namespace {

/// Removes a job's id for callers that do not see the job.
void hide(JobId& job, const Visibility& sees) {
  if (!sees.job(job)) job = JobId();
}

// Whether an event is shown, and what of it: one function for each type of event, so that a new
// type does not compile without a rule.

bool keep_visible(JobSubmitted& event, const Visibility& sees) {
  std::erase_if(event.submission.after, [&](JobId before) { return !sees.job(before); });
  return sees.job(event.job);
}
bool keep_visible(const JobReleased& event, const Visibility& sees) { return sees.job(event.job); }
bool keep_visible(const JobStarted& event, const Visibility& sees) { return sees.job(event.job); }
bool keep_visible(const JobRunning& event, const Visibility& sees) { return sees.job(event.job); }
bool keep_visible(JobResized& event, const Visibility& sees) {
  hide(event.in_favour_of, sees);
  return sees.job(event.job);
}
bool keep_visible(const ClockSet& event, const Visibility& sees) { return sees.job(event.job); }
bool keep_visible(JobStopping& event, const Visibility& sees) {
  hide(event.in_favour_of, sees);
  return sees.job(event.job);
}
bool keep_visible(const DevicesFreed& event, const Visibility& sees) { return sees.job(event.job); }
bool keep_visible(const JobRequeued& event, const Visibility& sees) { return sees.job(event.job); }
bool keep_visible(const JobEnded& event, const Visibility& sees) { return sees.job(event.job); }
/// The evidence may quote what a rank of another tenant wrote.
bool keep_visible(NodeChanged& event, const Visibility& sees) {
  if (!sees.everything()) event.blame.evidence.clear();
  return true;
}
bool keep_visible(const NodeBooted&, const Visibility&) { return true; }
/// The name of a hold has the number of its job.
bool keep_visible(NodeLent& event, const Visibility& sees) {
  if (!event.job.valid() || sees.job(event.job)) return true;
  event.job = JobId();
  event.hold = manager_of(event.hold);
  return true;
}
/// Who else uses a node is for operators.
bool keep_visible(ForeignSet& event, const Visibility& sees) {
  if (!sees.everything()) event.who.clear();
  return true;
}
bool keep_visible(const ReplicaChanged& event, const Visibility& sees) {
  return sees.job(event.job);
}
bool keep_visible(const ServiceUpdating& event, const Visibility& sees) {
  return sees.job(event.service);
}
bool keep_visible(const ServiceUpdated& event, const Visibility& sees) {
  return sees.job(event.service);
}
bool keep_visible(const ServiceScaled& event, const Visibility& sees) {
  return sees.job(event.service);
}
bool keep_visible(const HoldBilled&, const Visibility& sees) { return sees.everything(); }
bool keep_visible(const SpareSet&, const Visibility&) { return true; }
bool keep_visible(const LinkChanged&, const Visibility&) { return true; }
bool keep_visible(const PowerLimitSet&, const Visibility&) { return true; }
/// The file has the quotas of all tenants.
bool keep_visible(const TenantsSet&, const Visibility& sees) { return sees.everything(); }
bool keep_visible(const FleetSet&, const Visibility& sees) { return sees.everything(); }
bool keep_visible(const PolicySet&, const Visibility&) { return true; }
bool keep_visible(SlotsReserved& event, const Visibility& sees) {
  std::erase_if(event.slots, [&](const Reservation& slot) { return !sees.job(slot.job); });
  return sees.everything() || !event.slots.empty();
}
/// A plan shows which work other tenants ask for.
bool keep_visible(const PlanFound&, const Visibility& sees) { return sees.everything(); }
bool keep_visible(const DecisionDropped& event, const Visibility& sees) {
  return sees.job(event.job);
}
bool keep_visible(const MaintenanceSet&, const Visibility&) { return true; }
bool keep_visible(const LemonFound&, const Visibility&) { return true; }
bool keep_visible(const IdleCauseSet&, const Visibility&) { return true; }
bool keep_visible(const PassDone&, const Visibility&) { return true; }
bool keep_visible(const CancelAsked& event, const Visibility& sees) { return sees.job(event.job); }
bool keep_visible(JobsArchived& event, const Visibility& sees) {
  std::erase_if(event.jobs, [&](JobId job) { return !sees.job(job); });
  return !event.jobs.empty();
}
bool keep_visible(const WorkSettled& event, const Visibility& sees) { return sees.job(event.job); }
/// The evidence is what a rank of the job wrote.
bool keep_visible(const NodeAccused& event, const Visibility& sees) { return sees.job(event.job); }
bool keep_visible(const JobHoldSet& event, const Visibility& sees) { return sees.job(event.job); }
bool keep_visible(const JobChanged& event, const Visibility& sees) { return sees.job(event.job); }
bool keep_visible(const JobResolved& event, const Visibility& sees) { return sees.job(event.job); }

}  // namespace

std::optional<TimedEvent> EventFilter::shown(const TimedEvent& event) const {
  TimedEvent copy = event;
  const bool visible =
      std::visit([this](auto& what) { return keep_visible(what, visibility_); }, copy.what);
  if (!visible) return std::nullopt;
  if (auto* submitted = std::get_if<JobSubmitted>(&copy.what)) {
    submitted->spec = redaction_->of(submitted->spec);
  }
  if (auto* updating = std::get_if<ServiceUpdating>(&copy.what)) {
    updating->texts.spec = redaction_->of(updating->texts.spec);
  }
  return copy;
}

}  // namespace orrery

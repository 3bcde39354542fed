#include "control/services/service_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace orrery {

bool is_canary(const ServiceUpdate& update) {
  return update.back.empty() && update.stage < update.terms.canary.size();
}

const Service* ServiceTable::find(JobId service) const {
  const auto found = services_.find(service);
  return found == services_.end() ? nullptr : &found->second;
}

const ReplicaMembership* ServiceTable::membership(JobId job) const {
  const auto found = memberships_.find(job);
  return found == memberships_.end() ? nullptr : &found->second;
}

std::vector<JobId> ServiceTable::replicas(JobId service) const {
  std::vector<JobId> jobs;
  for (const auto& [job, member] : memberships_) {
    if (member.service == service) jobs.push_back(job);
  }
  return jobs;
}

void ServiceTable::add(const Job& job) {
  const JobRequest& request = job.submission->request;
  if (request.kind != JobKind::kServe || !request.array.valid()) return;
  const auto [at, fresh] = by_array_.try_emplace(request.array, job.id);
  Service& service = services_[at->second];
  if (fresh) {
    service.id = job.id;
    service.revision.replica = job.submission;
    service.revision.texts = {job.spec, job.submitter, job.run_as};
  }
  const ServiceRevision& runs = service.update ? service.update->to : service.revision;
  memberships_[job.id] = {service.id, runs.number};
  ++service.made;
  service.live.insert(job.id);
}

void ServiceTable::end(const Job& job) {
  const ReplicaMembership* member = membership(job.id);
  if (member == nullptr) return;
  Service& service = services_.at(member->service);
  service.live.erase(job.id);
  std::optional<ServiceUpdate>& update = service.update;
  // A replica has no end of its own, so one that finishes has failed.
  const bool failed = job.phase != JobPhase::kCancelled;
  const bool made = update && member->revision == update->to.number && job.id > update->newest;
  if (made && failed && update->fault.empty()) {
    update->fault =
        fmt::format("job {} ({}) ended: {}", job.id.value(), job.name,
                    job.blame.evidence.empty() ? "its log may say why" : job.blame.evidence);
  }
  forget_if_over(service.id);
}

void ServiceTable::move_tenants(const std::function<TenantId(TenantId)>& now) {
  const auto move = [&now](ServiceRevision& revision) {
    auto moved = std::make_shared<Submission>(*revision.replica);
    moved->request.tenant = now(moved->request.tenant);
    revision.replica = std::move(moved);
  };
  for (auto& [id, service] : services_) {
    move(service.revision);
    if (service.update) move(service.update->to);
  }
}

void ServiceTable::on(const ServiceUpdating& event) {
  Service& service = services_.at(event.service);
  ORRERY_ASSERT(event.revision <= service.revisions + 1, "numbers of revisions are given in order");
  const std::optional<ServiceUpdate> before = std::move(service.update);
  const bool same = before && before->to.number == event.revision && before->back == event.back;
  // A number of replicas that is set during an update holds after a rollback, too.
  const bool scaled = same && before->replicas != event.replicas;
  const auto live = static_cast<std::uint32_t>(service.live.size());
  const std::uint32_t former = scaled ? event.replicas : before ? before->former : live;
  service.update = ServiceUpdate{
      .to = {event.revision, std::make_shared<const Submission>(event.replica), event.texts},
      .replicas = event.replicas,
      .former = former,
      .newest = same                   ? before->newest
                : memberships_.empty() ? JobId()
                                       : memberships_.rbegin()->first,
      .terms = event.terms,
      .stage = event.stage,
      .back = event.back,
      .fault = {}};
  service.revisions = std::max(service.revisions, event.revision);
  service.outcome.clear();
  updating_.insert(event.service);
}

std::optional<TrafficSplit> ServiceTable::split(const Service& service) const {
  if (!service.update) return std::nullopt;
  const ServiceUpdate& update = *service.update;
  if (is_canary(update)) return TrafficSplit{update.to.number, update.terms.canary[update.stage]};
  if (update.stage >= update.terms.canary.size()) return std::nullopt;
  for (const JobId replica : service.live) {
    const std::uint32_t revision = memberships_.at(replica).revision;
    if (revision != update.to.number) return TrafficSplit{revision, 0};
  }
  return std::nullopt;
}

void ServiceTable::on(const ServiceUpdated& event) {
  Service& service = services_.at(event.service);
  ORRERY_ASSERT(service.update.has_value(), "an update that ends is under way");
  const ServiceUpdate update = *std::exchange(service.update, std::nullopt);
  const auto runs = [&](JobId job) {
    return memberships_.at(job).revision == service.revision.number;
  };
  // An update that was given up leaves replicas of both revisions: the former one stays, if any.
  const bool former_left = std::any_of(service.live.begin(), service.live.end(), runs);
  if (event.outcome.empty() || !former_left) service.revision = update.to;
  service.outcome = event.outcome.empty() ? update.back : event.outcome;
  updating_.erase(event.service);
  forget_if_over(event.service);
}

const ServiceScaling* ServiceTable::scaling(JobId service) const {
  const auto found = scalings_.find(service);
  return found == scalings_.end() ? nullptr : &found->second;
}

void ServiceTable::on(const ServiceScaled& event, Instant now) {
  scalings_[event.service] = {now, event.before, event.replicas, event.why};
}

void ServiceTable::forget_if_over(JobId id) {
  const Service& service = services_.at(id);
  if (!service.live.empty() || service.update) return;
  scalings_.erase(id);
  by_array_.erase(service.revision.replica->request.array);
  services_.erase(id);
}

}  // namespace orrery

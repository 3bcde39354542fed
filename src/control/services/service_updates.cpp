#include "control/services/service_updates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace orrery {
namespace {

/// Faults of a replica's program, before it was ever ready, after which its revision is given up.
constexpr std::uint32_t kFaultsAtStart = 2;

bool is_ready(const Job& job) {
  const ReplicaState* replica = replica_of(job);
  return job.phase == JobPhase::kRunning && replica != nullptr &&
         replica->report.phase == ReplicaPhase::kReady;
}

bool was_ready(const Job& job) {
  constexpr auto kReady = static_cast<std::size_t>(ReplicaPhase::kReady);
  return std::any_of(job.attempts.begin(), job.attempts.end(), [](const Attempt& attempt) {
    return attempt.replica && attempt.replica->reached[kReady] < Instant::max();
  });
}

/// Whether the job is about to end for good.
bool is_leaving(const Job& job) {
  return job.cancel || (job.phase == JobPhase::kStopping && job.stop == StopReason::kCancelled);
}

/// The replicas of a service in the light of its update.
struct Standing {
  std::vector<const Job*> fresh;   ///< of the wanted revision
  std::vector<const Job*> former;  ///< of others
  std::uint32_t ready = 0;         ///< of both
  std::size_t held = 0;            ///< replicas that have not ended
  std::string fault;               ///< how one that the update made fails; empty: none does
};

Standing standing_of(const State& state, const Service& service) {
  const ServiceUpdate& update = *service.update;
  Standing all{.held = service.live.size(), .fault = update.fault};
  for (const JobId id : service.live) {
    const Job& job = state.job(id);
    if (is_leaving(job)) continue;
    const bool wanted = state.services().membership(id)->revision == update.to.number;
    (wanted ? all.fresh : all.former).push_back(&job);
    all.ready += is_ready(job) ? 1 : 0;
    const bool loops = job.usage.program_faults >= kFaultsAtStart && !was_ready(job);
    if (wanted && loops && id > update.newest && all.fault.empty()) {
      all.fault = fmt::format("job {} ({}) failed {} times before it was ready: {}", id.value(),
                              job.name, job.usage.program_faults, job.blame.evidence);
    }
  }
  return all;
}

/// Returns up to `most` replicas to stop: those that are not ready, then the newest; of those that
/// are ready at most `ready_max`.
std::vector<const Job*> least_useful(std::vector<const Job*> jobs, std::size_t most,
                                     std::uint64_t ready_max) {
  std::sort(jobs.begin(), jobs.end(), [](const Job* a, const Job* b) {
    return std::pair(!is_ready(*a), a->id) > std::pair(!is_ready(*b), b->id);
  });
  std::vector<const Job*> chosen;
  for (const Job* job : jobs) {
    if (chosen.size() == most) break;
    if (is_ready(*job)) {
      if (ready_max == 0) break;
      --ready_max;
    }
    chosen.push_back(job);
  }
  return chosen;
}

/// Whether all replicas of a service are of one role.
bool is_of_one_role(const State& state, const Service& service, const Submission& replica) {
  return std::all_of(service.live.begin(), service.live.end(), [&](JobId job) {
    const std::vector<RoleRequest>& roles = state.job(job).submission->request.roles;
    return roles.size() == 1 && roles.front().name == replica.request.roles.front().name;
  });
}

/// Returns the revision that a command asks for: a known one, or the next.
ServiceRevision wanted_by(const UpdateService& command, const Service& service) {
  const ServiceRevision& newest = service.update ? service.update->to : service.revision;
  if (command.texts.spec.empty() || command.texts == newest.texts) return newest;
  if (command.texts == service.revision.texts) return service.revision;
  for (const ServiceRevision& each : {newest, service.revision}) {
    if (each.number == command.revision) return {each.number, each.replica, command.texts};
  }
  auto replica = std::make_shared<Submission>(command.replica);
  replica->request.array = service.revision.replica->request.array;
  return {service.revisions + 1, std::move(replica), command.texts};
}

void go_back(Recorder& recorder, const Service& service, const std::string& why) {
  const ServiceUpdate& update = *service.update;
  const bool other = update.to.number != service.revision.number;
  if (!update.back.empty() || !other) return recorder.emit(ServiceUpdated{service.id, why});
  const ServiceRevision& former = service.revision;
  recorder.emit(ServiceUpdating{.service = service.id,
                                .revision = former.number,
                                .replica = *former.replica,
                                .texts = former.texts,
                                .replicas = update.former,
                                .terms = update.terms,
                                .back = why,
                                .stage = update.stage});
}

void make_replica(JobLife& jobs, const Service& service) {
  const ServiceRevision to = service.update->to;
  Submission one = *to.replica;
  const std::string& name = to.replica->request.name;
  one.request.name = fmt::format("{}[{}]", name.substr(0, name.rfind('[')), service.made);
  one.after.clear();
  one.after_any.clear();
  one.after_notok.clear();
  one.hold = false;
  jobs.submit({std::move(one), to.texts.spec, to.texts.submitter, to.texts.run_as}, {});
}

/// Replicas of the revision of a canary: as many as its share of the requests asks for, beside at
/// least one other. `most`: replicas that may exist.
std::size_t canary_replicas(const ServiceUpdate& update, std::size_t most) {
  constexpr std::uint64_t kWhole = 10'000;
  const std::uint64_t share = update.terms.canary[update.stage];
  const std::uint64_t replicas = (share * update.replicas + kWhole - 1) / kWhole;
  return std::min<std::size_t>(replicas, most - 1);
}

/// How many replicas a step aims at.
struct Aim {
  std::size_t most = 0;   ///< that may exist
  std::size_t fresh = 0;  ///< of the wanted revision
  bool canary = false;
};

/// Returns the replicas that are to stop now.
std::vector<JobId> superfluous(const Standing& now, const ServiceUpdate& update, const Aim& aim) {
  const std::uint64_t served = std::uint64_t{now.ready} + update.terms.unavailable;
  std::uint64_t spared = served > update.replicas ? served - update.replicas : 0;
  std::vector<JobId> leave;
  const auto take = [&](const std::vector<const Job*>& jobs, std::size_t kept) {
    const std::size_t surplus = jobs.size() - std::min(jobs.size(), kept);
    for (const Job* job : least_useful(jobs, surplus, spared)) {
      if (is_ready(*job)) --spared;
      leave.push_back(job->id);
    }
  };
  // Beside a canary only those former replicas leave that are too many, or in its way.
  if (aim.canary || now.former.empty()) take(now.fresh, aim.fresh);
  if (!now.former.empty()) take(now.former, aim.canary ? aim.most - aim.fresh : 0);
  return leave;
}

/// Returns the replicas of a service that do not leave.
std::vector<JobId> staying(const State& state, const Service& service) {
  std::vector<JobId> stay;
  stay.reserve(service.live.size());
  for (const JobId id : service.live) {
    if (!is_leaving(state.job(id))) stay.push_back(id);
  }
  return stay;
}

/// Lets replicas that rest start.
void wake(const UpdateParts& parts, const Service& service) {
  const State& state = parts.recorder.state();
  for (const JobId id : staying(state, service)) {
    if (state.job(id).hold == JobHold::kResting) parts.jobs.on(HoldJob{id, JobHold::kNone});
  }
}

/// Takes one step of an update; returns whether there may be another.
bool step(const UpdateParts& parts, const Service& service) {
  wake(parts, service);
  const ServiceUpdate& update = *service.update;
  const Standing now = standing_of(parts.recorder.state(), service);
  if (!now.fault.empty()) {
    go_back(parts.recorder, service, now.fault);
    return true;
  }
  const std::size_t wanted = update.replicas;
  const std::size_t most = wanted + update.terms.surge;
  // Where no other replica is left, there is nothing to compare a canary with.
  const bool canary = is_canary(update) && !now.former.empty();
  const std::size_t fresh = canary ? canary_replicas(update, most) : wanted;
  if (now.fresh.size() < fresh && now.held < most) {
    const std::size_t made = std::min(fresh - now.fresh.size(), most - now.held);
    for (std::size_t i = 0; i < made; ++i) make_replica(parts.jobs, service);
    return true;
  }
  const std::vector<JobId> leave = superfluous(now, update, {most, fresh, canary});
  for (const JobId id : leave) parts.jobs.cancel(id);
  const bool reached =
      !canary && now.held == wanted && now.fresh.size() == wanted && now.ready == update.replicas;
  if (reached) parts.recorder.emit(ServiceUpdated{service.id, {}});
  return !leave.empty();
}

/// Whether a service is as a command asks, or on its way there.
bool is_so(const State& state, const Service& service, const ServiceRevision& to,
           const UpdateService& command) {
  if (service.update) {
    const ServiceUpdate& update = *service.update;
    return update.to.number == to.number && update.to.texts == to.texts &&
           update.replicas == command.replicas && update.terms == command.terms;
  }
  if (service.revision.number == to.number && service.revision.texts != to.texts) return false;
  std::size_t stay = 0;
  for (const JobId id : service.live) {
    if (is_leaving(state.job(id))) continue;
    if (state.services().membership(id)->revision != to.number) return false;
    ++stay;
  }
  return stay == command.replicas;
}

/// Returns a replica that has run for long and reports nothing; none: each one reports.
std::optional<JobId> silent_replica(const State& state, const Service& service, Instant now) {
  constexpr Duration kReportsBy = Duration::minutes(1);
  for (const JobId id : service.live) {
    const Job& job = state.job(id);
    const bool silent = job.phase == JobPhase::kRunning && replica_of(job) == nullptr;
    if (silent && job.since + kReportsBy < now) return id;
  }
  return std::nullopt;
}

}  // namespace

void update_service(const UpdateParts& parts, UpdateService command) {
  Recorder& recorder = parts.recorder;
  const State& state = recorder.state();
  if (!state.has(command.job)) return recorder.refuse("no such job");
  const ReplicaMembership* member = state.services().membership(command.job);
  const Service* service = member == nullptr ? nullptr : state.services().find(member->service);
  if (service == nullptr) return recorder.refuse("the job is no replica of a service that runs");
  if (command.replicas == 0) return recorder.refuse("a service has at least one replica");
  if (command.terms.surge == 0 && command.terms.unavailable == 0) {
    return recorder.refuse("neither more replicas nor fewer are allowed: none can be replaced");
  }
  const ServiceRevision to = wanted_by(command, *service);
  if (!is_of_one_role(state, *service, *to.replica)) {
    return recorder.refuse("the service has replicas of several roles: it cannot be updated");
  }
  recorder.answer(service->id);
  if (const auto silent = silent_replica(state, *service, recorder.now())) {
    return recorder.refuse(
        fmt::format("job {} ({}) runs and does not report whether it is ready: an update could not "
                    "tell when to stop it",
                    silent->value(), state.job(*silent).name));
  }
  // A canary is of another revision than the present one.
  if (to.number == service->revision.number) command.terms.canary.clear();
  if (!command.terms.canary.empty() && command.replicas + command.terms.surge < 2) {
    return recorder.refuse("a canary of a service of one replica needs a surge of at least 1");
  }
  // An update that changes nothing clears the failure of an earlier one.
  const bool silent_success = service->update || service->outcome.empty();
  if (is_so(state, *service, to, command) && silent_success) return;
  const std::optional<ServiceUpdate>& present = service->update;
  if (present && is_canary(*present) && to.number != present->to.number) {
    if (to.number == service->revision.number) {
      return go_back(recorder, *service, "the canary was taken back");
    }
    return recorder.refuse(
        "another revision is tried as a canary: `orrery serve --update SERVICE --canary back` or "
        "`--canary none` ends it");
  }
  const bool goes_on = present && present->back.empty() && present->to.number == to.number &&
                       present->terms.canary == command.terms.canary;
  recorder.emit(ServiceUpdating{.service = service->id,
                                .revision = to.number,
                                .replica = *to.replica,
                                .texts = to.texts,
                                .replicas = command.replicas,
                                .terms = command.terms,
                                .back = {},
                                .stage = goes_on ? present->stage : 0});
}

std::uint32_t wanted_replicas(const State& state, const Service& service) {
  if (service.update) return service.update->replicas;
  const std::vector<JobId> stay = staying(state, service);
  return static_cast<std::uint32_t>(std::ranges::count_if(
      stay, [&](JobId id) { return state.job(id).hold != JobHold::kResting; }));
}

void scale_service(const UpdateParts& parts, const ScaleOrder& order) {
  Recorder& recorder = parts.recorder;
  const State& state = recorder.state();
  const Service* service = state.services().find(order.service);
  if (service == nullptr || !is_of_one_role(state, *service, *service->revision.replica)) return;
  const std::optional<ServiceUpdate>& present = service->update;
  if (present && (present->to.number != service->revision.number || !present->back.empty())) return;
  const std::uint32_t before = wanted_replicas(state, *service);
  if (order.replicas == 0 && before <= 1) {
    const std::vector<JobId> stay = staying(state, *service);
    if (present || before == 0 || stay.size() != 1) return;
    if (state.job(stay.front()).hold != JobHold::kNone) return;  // its owner keeps it from starting
    recorder.emit(ServiceScaled{service->id, before, 0, order.why});
    return parts.jobs.rest(stay.front());
  }
  const std::uint32_t wanted = std::max(order.replicas, 1U);
  if (wanted == before) return;
  const ServiceRevision revision = present ? present->to : service->revision;
  recorder.emit(ServiceScaled{service->id, before, wanted, order.why});
  recorder.emit(ServiceUpdating{.service = order.service,
                                .revision = revision.number,
                                .replica = *revision.replica,
                                .texts = revision.texts,
                                .replicas = wanted,
                                .terms = present ? present->terms : RolloutTerms(),
                                .back = {},
                                .stage = 0});
}

void judge_canary(const UpdateParts& parts, const CanaryVerdict& verdict) {
  Recorder& recorder = parts.recorder;
  const Service* service = recorder.state().services().find(verdict.service);
  if (service == nullptr || !service->update) return;
  const ServiceUpdate& update = *service->update;
  const bool present = update.to.number == verdict.revision && update.stage == verdict.stage;
  if (!is_canary(update) || !present) return;
  if (verdict.of == CanaryVerdict::Of::kGiveUp) return go_back(recorder, *service, verdict.why);
  recorder.emit(ServiceUpdating{.service = service->id,
                                .revision = update.to.number,
                                .replica = *update.to.replica,
                                .texts = update.to.texts,
                                .replicas = update.replicas,
                                .terms = update.terms,
                                .back = {},
                                .stage = update.stage + 1});
}

void settle_updates(const UpdateParts& parts) {
  const ServiceTable& services = parts.recorder.state().services();
  if (services.updating().empty()) return;
  const std::vector<JobId> updating(services.updating().begin(), services.updating().end());
  for (const JobId id : updating) {
    for (const Service* service = services.find(id);
         service != nullptr && service->update && step(parts, *service);
         service = services.find(id)) {
    }
  }
}

}  // namespace orrery

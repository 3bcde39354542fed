#include "twin/protocol/protocol_service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace orrery {
namespace {

constexpr Duration kAskAgain = Duration::seconds(7);
constexpr ArrayId kArray{1'000'000};
constexpr const char* kGood = "good";
constexpr const char* kBad = "bad";

/// Returns what a replica of a revision does: its text says so.
ProtocolJob job_of(const std::string& spec) {
  const bool fails = spec.starts_with(kBad);
  return {.restart = RestartPolicy::kAtOnce,
          .devices = 4,
          .work = Duration::seconds(4),
          .replica = fails ? ProtocolReplica::kFails : ProtocolReplica::kServes};
}

}  // namespace

Submission ProtocolService::replica_of(std::uint32_t index, const State& state) const {
  const ProtocolJob job = job_of(kGood);
  Submission submission;
  submission.restart = job.restart;
  submission.restart_max = 10;
  JobRequest& request = submission.request;
  request.name = fmt::format("service[{}]", index);
  request.kind = JobKind::kServe;
  request.array = kArray;
  request.tenant = *state.tenants().find(job.tenant);
  RoleRequest& role = request.roles.emplace_back();
  role.devices_min = role.devices_max = job.devices;
  GangRequest gang;
  gang.type = FleetTypeId(0);
  gang.devices = gang.node_devices = job.devices;
  role.options.push_back({gang, 1, std::nullopt});
  return submission;
}

void ProtocolService::ask(const InputKind& what, const std::string& request) {
  if (answered_.contains(request)) return;
  context_.transmit([this, what, request] {
    if (outside_.state() == nullptr || answered_.contains(request)) return;
    outside_.request({context_.now(), what, request}, [this, request](const Answer&) {
      if (!context_.chance(context_.rules().network.loss)) answered_.insert(request);
    });
  });
  context_.time().after(kAskAgain, [this, what, request] { ask(what, request); });
}

void ProtocolService::begin(std::uint32_t replicas) {
  const State* state = outside_.state();
  if (asked_ > 0 || state == nullptr) return;
  asked_ = replicas;
  for (std::uint32_t i = 0; i < replicas; ++i) {
    ask(SubmitJob{replica_of(i, *state), kGood, "", ""}, fmt::format("replica-{}", i));
  }
}

void ProtocolService::update(std::uint32_t replicas, const RolloutTerms& terms,
                             ProtocolReplica does) {
  const State* state = outside_.state();
  if (names_.size() < asked_ || asked_ == 0 || state == nullptr || ending_) return;
  const auto live =
      std::ranges::find_if(replicas_, [](const auto& each) { return !each.second.over; });
  if (live == replicas_.end()) return;
  const std::uint32_t number = ++updates_;
  const std::string spec =
      fmt::format("{}-{}", does == ProtocolReplica::kFails ? kBad : kGood, number);
  context_.note(fmt::format("the service shall have {} replicas of {}", replicas, spec));
  ask(UpdateService{live->first, replica_of(0, *state), {spec, "", ""}, replicas, terms},
      fmt::format("update-{}", number));
}

void ProtocolService::judge(CanaryVerdict::Of of) {
  const State* state = outside_.state();
  if (state == nullptr) return;
  for (const JobId id : state->services().updating()) {
    const ServiceUpdate update = *state->services().find(id)->update;
    if (!is_canary(update)) continue;
    context_.note(fmt::format("stage {} of the canary is {}", update.stage,
                              of == CanaryVerdict::Of::kPromote ? "passed" : "given up"));
    const CanaryVerdict verdict{id, update.to.number, update.stage, of, "it is worse"};
    return outside_.request({context_.now(), verdict, {}}, [](const Answer&) {});
  }
}

void ProtocolService::scale(std::uint32_t replicas) {
  const State* state = outside_.state();
  if (state == nullptr || ending_ || state->services().all().empty()) return;
  const JobId id = state->services().all().begin()->first;
  context_.note(fmt::format("clients ask for {} replicas", replicas));
  outside_.request({context_.now(), ScaleOrder{id, replicas, "clients ask"}, {}},
                   [](const Answer&) {});
}

void ProtocolService::end() {
  const State* state = outside_.state();
  if (state == nullptr) return;
  judge(CanaryVerdict::Of::kPromote);
  state = outside_.state();
  if (state == nullptr) return;
  // Replicas may wait for devices as long as the present ones have theirs: also behind a job that
  // waits for the present ones to end.
  const bool waited = std::exchange(waits_, waits_for_devices(*state));
  for (const JobId id : state->services().updating()) {
    const Service& service = *state->services().find(id);
    if (!service.update->back.empty()) return;
    const bool more = service.update->to.number == service.revision.number;
    if (!more && !(waits_ && waited)) return;
  }
  ending_ = true;
  for (const auto& [id, replica] : replicas_) {
    if (replica.over) continue;
    outside_.request({context_.now(), CancelJob{id}, {}}, [](const Answer&) {});
    if (outside_.state() == nullptr) return;
  }
}

bool ProtocolService::waits_for_devices(const State& state) const {
  return std::ranges::any_of(replicas_, [&](const auto& each) {
    return !each.second.over && state.job(each.first).phase == JobPhase::kQueued;
  });
}

bool ProtocolService::ended(const State& state) const {
  if (asked_ == 0) return true;
  return ending_ && state.services().all().empty() &&
         std::ranges::all_of(replicas_, [](const auto& each) { return each.second.over; });
}

std::uint32_t ProtocolService::ready() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(replicas_, [](const auto& each) {
    return each.second.up && each.second.ready && !each.second.over;
  }));
}

void ProtocolService::note_durable(std::span<const Event> events) {
  for (const Event& event : events) note(event);
}

void ProtocolService::note(const Event& event) {
  if (const auto* made = std::get_if<JobSubmitted>(&event)) {
    if (made->submission.request.array != kArray) return;
    replicas_[made->job] = {};
    outside_.made(made->job, job_of(made->spec));
    if (!names_.insert(made->submission.request.name).second) {
      context_.wrong("two replicas have the name " + made->submission.request.name);
    }
  } else if (const auto* running = std::get_if<JobRunning>(&event)) {
    const auto found = replicas_.find(running->job);
    if (found != replicas_.end()) found->second.up = true;
  } else if (const auto* told = std::get_if<ReplicaChanged>(&event)) {
    replicas_.at(told->job).ready = told->report.phase == ReplicaPhase::kReady;
  } else if (const auto* stop = std::get_if<JobStopping>(&event)) {
    note_stop(*stop);
  } else if (const auto* end = std::get_if<JobEnded>(&event)) {
    note_end(*end);
  } else if (const auto* scaled = std::get_if<ServiceScaled>(&event)) {
    note_scaled(*scaled);
  } else if (const auto* updating = std::get_if<ServiceUpdating>(&event)) {
    const Wanted now{.replicas = updating->replicas,
                     .terms = updating->terms,
                     .revision = updating->revision,
                     .stage = updating->stage,
                     .back = !updating->back.empty()};
    const bool follows =
        wanted_ && wanted_->revision == now.revision && wanted_->stage <= now.stage;
    if (!now.back && now.stage > 0 && (!follows || now.stage > wanted_->stage + 1)) {
      context_.wrong(fmt::format("stage {} of a canary does not follow the one before", now.stage));
    }
    wanted_ = now;
    rests_ = false;
  } else if (const auto* updated = std::get_if<ServiceUpdated>(&event)) {
    wanted_.reset();
    if (updated->outcome.empty() && ready() == 0) context_.wrong("an update ends without replicas");
  }
}

void ProtocolService::note_end(const JobEnded& event) {
  const auto found = replicas_.find(event.job);
  if (found == replicas_.end()) return;
  found->second = {.up = false, .ready = false, .over = true};
  if (rests_ && !ending_ && event.phase != JobPhase::kFailed) {
    context_.wrong(fmt::format("job {} of a service that rests has ended", event.job.value()));
  }
}

void ProtocolService::note_scaled(const ServiceScaled& event) {
  rests_ = event.replicas == 0;
  if (event.replicas <= kScaledMost) return;
  context_.wrong(fmt::format("{} replicas are ordered, asked for were {} at most", event.replicas,
                             kScaledMost));
}

void ProtocolService::note_stop(const JobStopping& event) {
  const auto found = replicas_.find(event.job);
  if (found == replicas_.end()) return;
  const bool served = found->second.up && found->second.ready;
  found->second.up = found->second.ready = false;
  const bool by_control = event.reason == StopReason::kCancelled && !ending_;
  if (!served || !by_control) return;
  if (!wanted_) return context_.wrong("a ready replica is taken, and nothing is updated");
  if (ready() + wanted_->terms.unavailable >= wanted_->replicas) return;
  context_.wrong(fmt::format("job {} is taken: {} replicas are ready, {} wanted", event.job.value(),
                             ready(), wanted_->replicas));
}

}  // namespace orrery

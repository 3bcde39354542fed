#include "control/core/core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/core/held_situation.hpp"
#include "control/settings.hpp"
#include "control/state/snapshot.hpp"

namespace orrery {

Core::Core(const ControlSetup& setup)
    : recorder_(setup),
      plans_(recorder_),
      emptying_(recorder_),
      claims_(recorder_, emptying_),
      starts_(recorder_, places_, plans_),
      replacement_(recorder_, places_, starts_),
      jobs_(recorder_, {timers_, emptying_, claims_, replacement_}),
      service_(recorder_, {timers_, emptying_, jobs_}),
      condition_(recorder_, {emptying_, claims_, jobs_, service_}),
      passes_(recorder_, {jobs_, starts_, plans_, replacement_}) {}

const Outcome& Core::handle(const Input& input) {
  recorder_.begin(input);
  std::visit([this](const auto& each) { dispatch(each); }, input.what);
  settle_updates({recorder_, jobs_});
  return recorder_.outcome();
}

template <class Each>
void Core::dispatch(const Each& each) {
  if constexpr (requires { jobs_.on(each); }) {
    jobs_.on(each);
  } else if constexpr (requires { service_.on(each); }) {
    service_.on(each);
  } else if constexpr (requires { condition_.on(each); }) {
    condition_.on(each);
  } else if constexpr (requires { passes_.on(each); }) {
    passes_.on(each);
  } else if constexpr (requires { plans_.on(each); }) {
    plans_.on(each);
  } else {
    on(each);
  }
}

Status Core::restore(std::string_view snapshot) { return recorder_.restore(snapshot); }

void Core::resume() {
  recorder_.resume();
  jobs_.resume();
  service_.resume();
  take_up_fleet();
}

std::unique_ptr<const HeldSituation> Core::hold(Instant now) { return recorder_.hold(now); }

Instant Core::wake() const { return std::min(timers_.next(), passes_.wake()); }

// Makes what follows from the fleet and is not in the state.
void Core::take_up_fleet() {
  emptying_.take_up_fleet();
  places_.recall_all(recorder_.state());
  plans_.forget();
  passes_.take_up_fleet();
}

void Core::on(const Tick&) {
  fire_timers();
  passes_.run_due();
}

void Core::fire_timers() {
  while (const std::optional<CoreTimers::Timer> timer = timers_.take_due(recorder_.now())) {
    if (timer->job.valid()) {
      jobs_.timer_fired(timer->job);
    } else {
      service_.keep_maintenance();
    }
  }
}

void Core::on(const SetPowerCap& command) {
  const State& state = recorder_.state();
  const Topology& topology = *state.setup().topology;
  if (!command.domain.valid() || command.domain.value() >= topology.power_domains().size()) {
    return recorder_.refuse("no such power domain");
  }
  recorder_.emit(PowerLimitSet{command.domain, PowerLimitSet::What::kCap, command.cap});
}

void Core::on(const SupplyObserved& seen) {
  recorder_.emit(PowerLimitSet{seen.domain, PowerLimitSet::What::kSupply, seen.supply});
}

void Core::on(const SetTenants& command) {
  const State& state = recorder_.state();
  Result<TenantTree> tree = tenants_from(command.yaml, *state.setup().topology);
  if (!tree) return recorder_.answer(Status(forward_error(tree)));
  for (const Job& job : state.all_jobs()) {
    const std::string& path = state.tenants().path(job.tenant);
    if (ended(job.phase) || tree->find(path)) continue;
    return recorder_.refuse(fmt::format("tenant \"{}\" still has job \"{}\"", path, job.name));
  }
  for (const auto& [id, service] : state.services().all()) {
    const JobRequest& replica = service.revision.replica->request;
    const std::string& path = state.tenants().path(replica.tenant);
    if (tree->find(path)) continue;
    return recorder_.refuse(fmt::format("tenant \"{}\" still has service {}", path, id.value()));
  }
  recorder_.emit(TenantsSet{command.yaml});
}

void Core::on(const SetPolicy& command) {
  Result<Policy> policy = policy_from(command.yaml);
  if (!policy) return recorder_.answer(Status(forward_error(policy)));
  recorder_.emit(PolicySet{command.yaml});
  passes_.policy_changed();
}

void Core::on(const SetFleet& command) {
  const State& state = recorder_.state();
  const ControlSetup& setup = state.setup();
  if (!setup.fleets.source) return recorder_.refuse("the fleet of this cluster does not change");
  const Result<const ControlSetup*> next = setup.fleets.source(command.yaml);
  if (!next) return recorder_.answer(Status(tl::unexpected(next.error())));
  if (Status fits = check_change(state, **next); !fits) {
    return recorder_.answer(Status(std::move(fits)));
  }
  recorder_.emit(FleetSet{command.yaml});
  take_up_fleet();
}

void Core::on(const ResolveJob& command) {
  if (jobs_.resolve(command)) passes_.options_changed();
}

void Core::on(const ArchiveJobs& command) {
  const State& state = recorder_.state();
  JobsArchived archived;
  archived.jobs.reserve(command.jobs.size());
  for (const JobId id : command.jobs) {
    if (state.may_archive(id)) archived.jobs.push_back(id);
  }
  if (!archived.jobs.empty()) passes_.emit_unfelt(std::move(archived));
}

}  // namespace orrery

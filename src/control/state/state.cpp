#include "control/state/state.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "control/core/held_situation.hpp"
#include "control/settings.hpp"
#include "scheduler/power/gang_power.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {
namespace {

std::vector<std::uint32_t> devices_by_type(const Topology& topology) {
  std::vector<std::uint32_t> devices(topology.type_count());
  for (std::uint32_t t = 0; t < devices.size(); ++t) {
    devices[t] = topology.device_count(Topology::root(), FleetTypeId(t));
  }
  return devices;
}

bool active_phase(JobPhase phase) {
  return phase >= JobPhase::kQueued && phase <= JobPhase::kStopping;
}

/// Copies a tenant's recent means into another usage.
void copy_recent(std::pair<const TenantUsage&, TenantId> from,
                 std::pair<TenantUsage&, TenantId> to) {
  for (std::uint32_t t = 0; t < from.first.tree().type_count(); ++t) {
    const FleetTypeId type(t);
    to.first.set_recent(to.second, type, from.first.recent(from.second, type));
  }
  to.first.set_recent(to.second, kAllTypes, from.first.recent(from.second, kAllTypes));
}

/// The order of the queue: by submission, then id.
bool before(const WaitingJob& a, const WaitingJob& b) {
  return a.submitted != b.submitted ? a.submitted < b.submitted : a.id < b.id;
}

/// Only jobs with a spec are launched, so only their places are asked for.
void note_place(Job& job, std::span<const PlacedGang> gangs) {
  if (job.spec.empty()) return;
  job.placed.clear();
  for (const PlacedGang& gang : gangs) job.placed.push_back(gang.allocation.ranks);
}

}  // namespace

State::State(const ControlSetup& setup)
    : setup_(&setup),
      now_(setup.begin),
      policy_(setup.policy),
      tenants_(setup.tenants),
      fleet_(*setup.topology),
      nodes_(setup.topology->node_count()),
      owner_(setup.topology->device_count()),
      usage_(std::make_unique<TenantUsage>(*setup.tenants)),
      usage_until_(setup.begin),
      ledger_(devices_by_type(*setup.topology), setup.begin),
      idle_(setup.topology->type_count(), DeviceUse::kNoDemand),
      by_tenant_(setup.tenants->size()) {
  fleet_changes_.last = setup.begin;
  for (NodeRecord& node : nodes_) node.number = fleet_changes_.numbers++;
  if (setup.power != nullptr) {
    caps_.emplace(*setup.power);
    power_.emplace(*setup.power);
  }
  if (setup.nodes_begin == NodeHealth::kReady) return;
  for (std::size_t at = 0; at < nodes_.size(); ++at) {
    NodeRecord record = nodes_[at];
    record.health = setup.nodes_begin;
    edit_node(NodeId::at(at), record);
  }
}

void State::apply(Instant at, const Event& event) {
  ORRERY_ASSERT(at >= now_, "events do not go back in time");
  now_ = at;
  ++version_;
  std::visit(
      [this](const auto& each) {
        if constexpr (requires { services_.on(each); }) {
          services_.on(each);
        } else if constexpr (requires { services_.on(each, now_); }) {
          services_.on(each, now_);
        } else if constexpr (requires { bills_.on(each); }) {
          bills_.on(each);
        } else {
          on(each);
        }
      },
      event);
}

std::span<const JobId> State::after(JobId id) const {
  const auto found = after_.find(id);
  if (found == after_.end()) return {};
  return found->second;
}

std::uint32_t State::active(ArrayId array) const {
  const auto found = arrays_.find(array);
  return found == arrays_.end() ? 0 : found->second.active;
}

std::vector<JobId> State::held_of(ArrayId array) const {
  const auto found = arrays_.find(array);
  if (found == arrays_.end()) return {};
  return {found->second.held.begin(), found->second.held.end()};
}

std::optional<JobId> State::answered(const std::string& request_id) const {
  const auto found = requests_.jobs.find(request_id);
  if (found == requests_.jobs.end()) return std::nullopt;
  return found->second.first;
}

Situation State::situation(Instant now) const {
  Situation s{.now = now, .fleet = fleet_.view()};
  s.waiting = waiting_;
  s.running = running_.jobs();
  s.running_changes = running_.changes();
  s.tenants = tenants_;
  s.usage = usage_.get();
  s.power = power_ ? &*power_ : nullptr;
  s.caps = caps_ ? &*caps_ : nullptr;
  // Policies that take the first option start jobs before plans are known: plans serve only
  // metering.
  s.plans = policy_.choice == OptionChoice::kCheapest ? &plans_ : nullptr;
  s.history = this;
  s.costs = setup_->costs;
  s.electricity = setup_->series.electricity;
  s.carbon = setup_->series.carbon;
  s.node_risk = risk_;
  s.failures_per_node_second = setup_->failures_per_node_second;
  s.launch = setup_->timing.launch;
  s.grace = setup_->timing.grace;
  s.reserved = slots_;
  s.closures = closed_.list();
  s.changes = changes_;
  return s;
}

std::unique_ptr<const HeldSituation> State::hold(Instant now) {
  std::vector<std::shared_ptr<const Submission>> submissions;
  submissions.reserve(waiting_.size() + running_.size());
  for (const WaitingJob& waits : waiting_) submissions.push_back(job(waits.id).submission);
  for (const RunningJob& runs : running_) submissions.push_back(job(runs.id).submission);
  return std::make_unique<const HeldSituation>(
      situation(now), HeldSituation::Shared{.version = version_,
                                            .policy = policy_,
                                            .fleet = fleet_.publish(),
                                            .submissions = std::move(submissions),
                                            .tenants = own_tenants_});
}

// --- Jobs ---------------------------------------------------------------------------------------

void State::set_phase(Job& job, JobPhase phase) {
  if (job.submission != nullptr && job.submission->request.array.valid()) {
    Array& array = arrays_[job.submission->request.array];
    array.active += (active_phase(phase) ? 1U : 0U) - (active_phase(job.phase) ? 1U : 0U);
    if (phase == JobPhase::kHeld) {
      array.held.insert(job.id);
    } else {
      array.held.erase(job.id);
    }
    if (array.active == 0 && array.held.empty()) arrays_.erase(job.submission->request.array);
  }
  if (job.phase <= JobPhase::kQueued) job.usage.waited += now_ - job.since;
  job.phase = phase;
  job.since = now_;
}

void State::on(const JobSubmitted& event) {
  const JobId next = JobId::at(jobs_.size());
  ORRERY_ASSERT(
      event.job == next || (setup_->is_lost(next) && setup_->is_lost(JobId(event.job.value() - 1))),
      "job ids grow, and only lost ones are passed over");
  ended_ += event.job.value() - jobs_.size();  // skipped ids
  Job& job = jobs_.emplace(event.job);
  job.id = event.job;
  job.submission = std::make_shared<const Submission>(event.submission);
  job.name = event.submission.request.name;
  job.tenant = event.submission.request.tenant;
  job.spec = event.spec;
  job.submitter = event.submitter;
  job.run_as = event.run_as;
  job.submitted = now_;
  job.since = now_;
  job.hold = event.submission.hold ? JobHold::kOwner : JobHold::kNone;
  const Submission& asked = event.submission;
  for (const std::vector<JobId>* list : {&asked.after, &asked.after_any, &asked.after_notok}) {
    for (const JobId before : *list) {
      if (dependency(asked, before) == Dependency::kMet) continue;
      after_[before].push_back(event.job);
      ++job.waiting_for;
    }
  }
  set_phase(job, JobPhase::kHeld);
  held_.insert(event.job);
  services_.add(job);
  if (event.request_id.empty()) return;
  requests_.jobs[event.request_id] = {event.job, now_};
  requests_.ages.emplace_back(now_, event.request_id);
  while (requests_.ages.front().first + setup_->timing.remember_requests < now_) {
    requests_.jobs.erase(requests_.ages.front().second);
    requests_.ages.pop_front();
  }
}

void State::on(const JobReleased& event) {
  Job& job = at(event.job);
  ORRERY_ASSERT(job.phase == JobPhase::kHeld, "only a held job is released");
  held_.erase(job.id);
  set_phase(job, JobPhase::kQueued);
  advance_usage();
  const WaitingJob waiting{
      job.id, &job.submission->request, job.submitted, job.done, job.attained, job.data_at};
  waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), waiting, before), waiting);
}

std::vector<WaitingJob>::iterator State::queued_at(const Job& job) {
  const WaitingJob key{job.id, nullptr, job.submitted, 0, 0};
  const auto found = std::lower_bound(waiting_.begin(), waiting_.end(), key, before);
  ORRERY_ASSERT(found != waiting_.end() && found->id == job.id, "a queued job is in the queue");
  return found;
}

void State::on(const JobStarted& event) {
  Job& job = at(event.job);
  ORRERY_ASSERT(job.phase == JobPhase::kQueued, "only a queued job starts");
  ORRERY_ASSERT(event.attempt > job.attempt, "attempts only grow");
  waiting_.erase(queued_at(job));
  drop_slots(job.id);
  set_phase(job, JobPhase::kStarting);
  job.attempt = event.attempt;
  job.epoch = 0;
  job.up = false;
  job.use = DeviceUse::kStarting;
  job.metered = now_;
  if (job.first_start == Instant::max()) job.first_start = now_;
  job.at = static_cast<std::uint32_t>(running_.size());
  RunningJob& run = running_.add();
  run.id = job.id;
  run.request = &job.submission->request;
  run.submitted = job.submitted;
  run.started = now_ + event.delay;
  run.since = Instant::max();
  run.expected_end = event.expected ? now_ + event.delay + *event.expected : Instant::max();
  run.checkpoint = event.checkpoint;
  run.done = job.done;
  run.attained = job.attained;
  run.gangs = event.gangs;
  run.terms = event.terms;
  note_place(job, event.gangs);
  begin_attempt(job, now_);
  note_nodes(job, event.gangs);
  bring_data(job, run);
  run.data_at = job.data_at;
  for (const PlacedGang& gang : run.gangs) hold_devices(run, gang, DeviceUse::kStarting);
  count_usage(run, 1);
  add_power(run);
}

void State::on(const JobRunning& event) {
  Job& job = at(event.job);
  RunningJob& run = running_at(event.job);
  ORRERY_ASSERT(!job.up && job.phase != JobPhase::kStopping, "ranks come up once an epoch");
  meter(job);
  if (job.phase == JobPhase::kStarting) set_phase(job, JobPhase::kRunning);
  job.up = true;
  if (!job.attempts.empty() && job.attempts.back().running == Instant::max()) {
    job.attempts.back().running = now_;
  }
  if (run.expected_end != Instant::max()) {
    run.expected_end = now_ + (run.expected_end - run.started);
  }
  run.started = run.since = now_;
  move_use(run, DeviceUse::kUseful);
  if (job.submission->prepare.program == 0) return;
  for (const PlacedGang& gang : run.gangs) {
    const NodeId node = gang.allocation.ranks.front().node;
    compiled_.insert({job.submission->prepare.program, fleet_.topology().group(node).type});
  }
}

void State::on(const JobStopping& event) {
  Job& job = at(event.job);
  RunningJob& run = running_at(event.job);
  ORRERY_ASSERT(holds_devices(job.phase) && job.phase != JobPhase::kStopping, "it runs");
  meter(job);
  const Progress progress = progress_at_stop(job, event);
  run.done = run.done_at(now_);
  run.attained = run.attained_at(now_);
  run.since = Instant::max();
  run.expected_end = now_ + setup_->timing.grace;
  run.stopping = true;
  job.attained = run.attained;
  job.stop = event.reason;
  job.progress = progress;
  job.up = false;
  job.end = now_;
  const bool says_why = event.blame.layer != FaultLayer::kNone;
  if (says_why || event.reason == StopReason::kRefused) job.blame = event.blame;
  end_attempt(job, event, now_);
  set_phase(job, JobPhase::kStopping);
  move_use(run, DeviceUse::kStopping);
  job.usage.preemptions += event.reason == StopReason::kPreempted ? 1 : 0;
  job.usage.faults += event.reason == StopReason::kInfra ? 1 : 0;
  job.usage.program_faults += event.reason == StopReason::kProgram ? 1 : 0;
  ++changes_.freed;  // for quotas and guarantees the job has left
}

// Ranks that were not reported gone keep their devices, but no longer for this job.
void State::leave_running(Job& job) {
  meter(job);
  RunningJob& run = running_.edit(job.at);
  remove_power(run);
  count_usage(run, -1);
  for (const PlacedGang& gang : run.gangs) {
    for (const NodeDevices& part : gang.allocation.ranks) {
      ghosts_.push_back({job.id, job.attempt, job.epoch, part, gang.host, gang.allocation.share});
      if (gang.allocation.share == kWholeDevice) {
        move_use(part.node, part.devices, {DeviceUse::kStopping, DeviceUse::kDown});
      }
    }
    for (const NodeDevices& part : gang.allocation.idle) {
      release({job.id, job.attempt, job.epoch, part, {}, kWholeDevice}, DeviceUse::kExclusive);
    }
  }
  for (const Ghost& ghost : ghosts_) {
    const bool earlier = ghost.job == job.id && ghost.attempt == job.attempt &&
                         ghost.epoch < job.epoch && ghost.share == kWholeDevice;
    if (!earlier) continue;
    move_use(ghost.at.node, ghost.at.devices, {DeviceUse::kStopping, DeviceUse::kDown});
  }
  job.leaving = 0;
  running_.remove(job.at);
  if (job.at < running_.size()) at(running_[job.at].id).at = job.at;
}

void State::on(const JobRequeued& event) {
  Job& job = at(event.job);
  ORRERY_ASSERT(job.phase == JobPhase::kStopping, "only what stopped is queued again");
  job.usage += settle_in(ledger_, job.id, event.progress, now_);
  leave_running(job);
  job.done = event.progress.done;
  job.not_before = event.not_before;
  job.end = Instant::max();
  set_phase(job, JobPhase::kHeld);
  held_.insert(job.id);
}

void State::on(const JobEnded& event) {
  Job& job = at(event.job);
  ORRERY_ASSERT(!ended(job.phase) && ended(event.phase), "a job ends once");
  if (holds_devices(job.phase)) {
    job.usage += settle_in(ledger_, job.id, event.progress, now_);
    leave_running(job);
  } else if (job.phase == JobPhase::kQueued) {
    waiting_.erase(queued_at(job));
    ++changes_.freed;  // it may have been what others waited behind
  } else {
    held_.erase(job.id);
  }
  if (event.phase == JobPhase::kFinished) job.done = 1;
  if (job.end == Instant::max()) job.end = now_;
  if (event.blame.layer != FaultLayer::kNone) job.blame = event.blame;
  set_phase(job, event.phase);
  services_.end(job);
  note_end(job);
}

// Moves the job's expected end by the correction.
void State::on(const WorkSettled& event) {
  Job& job = at(event.job);
  RunningJob& run = running_at(event.job);
  ORRERY_ASSERT(holds_devices(job.phase) && !job.up, "its epoch has begun and is not up");
  job.usage += settle_in(ledger_, job.id, event.progress, now_);
  run.done = event.progress.done;
  if (run.stopping || run.expected_end == Instant::max()) return;
  run.expected_end = run.expected_end + event.progress.lost + event.progress.undetected;
}

void State::note_end(Job& job) {
  ++ended_;
  total_ += job.usage;
  by_tenant_[job.tenant.value()] += job.usage;
  if (const auto waiting = after_.find(job.id); waiting != after_.end()) {
    for (const JobId next : waiting->second) {
      if (!has(next) || ended(at(next).phase)) continue;
      if (dependency(*at(next).submission, job.id) == Dependency::kMet) --at(next).waiting_for;
    }
  }
  drop_slots(job.id);
  job.terms = terms_of(job.submission->request);
  job.submission.reset();
}

void State::drop_slots(JobId job) {
  std::erase_if(slots_, [&](const Reservation& slot) { return slot.job == job; });
}

void State::on(const JobResized& event) {
  Job& job = at(event.job);
  RunningJob& run = running_at(event.job);
  ORRERY_ASSERT(event.epoch > job.epoch, "epochs only grow");
  meter(job);
  remove_power(run);
  count_usage(run, -1);
  run.attained = run.attained_at(now_);
  run.done = event.done;
  const std::vector<PlacedGang> old = std::exchange(run.gangs, event.gangs);
  exchange_devices(job, old, run);
  note_place(job, event.gangs);
  note_nodes(job, event.gangs);
  run.terms = event.terms;
  run.started = now_;
  run.since = Instant::max();
  run.expected_end = Instant::max();
  for (const GangTerms& terms : run.terms) {
    if (!terms.length) continue;
    const Instant end = now_ + *terms.length;
    run.expected_end = run.expected_end == Instant::max() ? end : std::max(run.expected_end, end);
  }
  job.epoch = event.epoch;
  job.up = false;
  ++job.usage.resizes;
  count_usage(run, 1);
  add_power(run);
  ++changes_.freed;
}

void State::on(const ClockSet& event) {
  Job& job = at(event.job);
  RunningJob& run = running_at(event.job);
  meter(job);
  remove_power(run);
  run.attained = run.attained_at(now_);
  if (job.up) {
    run.done = event.done;
    run.since = now_;
  }
  run.terms[event.gang] = event.terms;
  if (event.terms.length) run.expected_end = now_ + *event.terms.length;
  add_power(run);
}

// --- Everything else ----------------------------------------------------------------------------

void State::on(const LinkChanged& event) {
  ++changes_.links;
  fleet_.set_link(event.link, event.state);
}

void State::on(const PowerLimitSet& event) {
  if (!caps_) return;
  if (event.what == PowerLimitSet::What::kCap) {
    caps_->set_cap(event.domain, event.limit);
  } else {
    caps_->set_supply(event.domain, event.limit);
  }
  ++changes_.freed;
  ++changes_.limits;
}

void State::on(const PolicySet& event) {
  policy_ = *policy_from(event.yaml);
  share_period_ = {};  // that of the policy before
  texts_.policy = event.yaml;
  ++changes_.freed;
}

// Jobs follow their tenants by path; Core has checked that each tenant still exists.
void State::on(const TenantsSet& event) {
  auto tenants = std::make_shared<const TenantTree>(*tenants_from(event.yaml, *setup_->topology));
  std::vector<JobUsage> by_tenant(tenants->size());
  for (std::uint32_t t = 0; t < by_tenant_.size(); ++t) {
    const auto found = tenants->find(tenants_->path(TenantId(t)));
    by_tenant[found.value_or(TenantTree::root()).value()] += by_tenant_[t];
  }
  by_tenant_ = std::move(by_tenant);
  advance_usage();
  auto usage = std::make_unique<TenantUsage>(*tenants);
  for (std::uint32_t t = 0; t < tenants_->size(); ++t) {
    const TenantId old(t);
    const auto same = t == 0 ? TenantTree::root() : tenants->find(tenants_->path(old));
    if (same) copy_recent({*usage_, old}, {*usage, *same});
  }
  usage_ = std::move(usage);
  const auto now = [&](TenantId before) {
    return tenants->find(tenants_->path(before)).value_or(TenantTree::root());
  };
  for (Job& job : jobs_) {
    job.tenant = now(job.tenant);
    if (job.submission == nullptr || job.submission->request.tenant == job.tenant) continue;
    auto moved = std::make_shared<Submission>(*job.submission);
    moved->request.tenant = job.tenant;
    job.submission = std::move(moved);
  }
  for (Claim& claim : claims_) claim.tenant = now(claim.tenant);
  services_.move_tenants(now);
  tenants_ = tenants.get();
  texts_.tenants = event.yaml;
  own_tenants_ = std::move(tenants);
  for (WaitingJob& waiting : waiting_) waiting.request = &at(waiting.id).submission->request;
  for (std::uint32_t i = 0; i < running_.size(); ++i) {
    RunningJob& run = running_.edit(i);
    run.request = &at(run.id).submission->request;
    count_usage(run, 1);
  }
  ++changes_.freed;
}

void State::on(const SlotsReserved& event) { slots_ = event.slots; }

void State::on(const PlanFound& event) {
  const std::shared_ptr<const PlanEntry> entry =
      event.entry != nullptr ? event.entry : setup_->plans(event.key);
  plans_.put(event.key, *entry);
  ++changes_.plans;
}

void State::on(const DecisionDropped&) {}

void State::on(const CancelAsked& event) { at(event.job).cancel = true; }

bool State::may_archive(JobId id) const {
  if (!has(id) || !ended(job(id).phase)) return false;
  const auto waits = [this](JobId next) { return has(next) && !ended(job(next).phase); };
  const std::span<const JobId> next = after(id);
  return std::none_of(next.begin(), next.end(), waits) &&
         std::none_of(ghosts_.begin(), ghosts_.end(),
                      [id](const Ghost& ghost) { return ghost.job == id; });
}

void State::on(const JobsArchived& event) {
  for (const JobId id : event.jobs) {
    after_.erase(id);
    services_.archive(id);
    jobs_.remove(id);
  }
}

void State::on(const MaintenanceSet& event) {
  closed_.set(event.window, {event.nodes, event.from, event.to, event.why}, *setup_->topology);
  ++changes_.freed;
}

void State::on(const IdleCauseSet& event) {
  const auto to = static_cast<DeviceUse>(event.cause);
  DeviceUse& now = idle_[event.type.value()];
  ledger_.move({event.type, now, to, ledger_.count(event.type, now)}, now_);
  now = to;
}

void State::advance_usage() {
  if (now_ == usage_until_) return;
  usage_->advance(now_ - usage_until_);
  usage_until_ = now_;
}

void State::count_usage(const RunningJob& run, std::int64_t sign) {
  advance_usage();
  enter_usage(run, sign);
}

void State::enter_usage(const RunningJob& run, std::int64_t sign) {
  for (const PlacedGang& gang : run.gangs) {
    const GangRequest& request = run.request->roles[gang.role].options[gang.option].gang;
    usage_->apply({run.request->tenant, request.type, rank_of(*run.request),
                   sign * static_cast<std::int64_t>(request.devices)});
  }
}

void State::add_power(const RunningJob& run) {
  if (!power_) return;
  for (std::size_t i = 0; i < run.gangs.size(); ++i) {
    power_->add(draws_of_gang(*setup_->power, run.gangs[i], run.terms[i].draw));
  }
}

void State::remove_power(const RunningJob& run) {
  if (!power_) return;
  for (std::size_t i = 0; i < run.gangs.size(); ++i) {
    power_->remove(draws_of_gang(*setup_->power, run.gangs[i], run.terms[i].draw));
  }
}

}  // namespace orrery

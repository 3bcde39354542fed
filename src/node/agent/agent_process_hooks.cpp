// The operator's programs around the ranks of an attempt and independent of attempts: a failure
// here is the node's fault, never the job's.
#include <algorithm>
#include <bit>
#include <utility>

#include "base/text/utf8.hpp"
#include "node/agent/agent_process.hpp"

namespace orrery {
namespace {

constexpr std::string_view kBurnInFailed = "the burn-in failed";

std::string devices_of(const LaunchRanks& ranks) {
  std::uint64_t devices = 0;
  for (const RankShare& share : ranks.shares) devices |= share.devices;
  std::string list;
  for (; devices != 0; devices &= devices - 1) {
    list += fmt::format("{}{}", list.empty() ? "" : ",", std::countr_zero(devices));
  }
  return list;
}

}  // namespace

std::unique_ptr<HookProcess> AgentProcess::run_hook(const AttemptId& id, const HookSpec& spec,
                                                    HookEnded ended) {
  const HookStart start{spec.command, attempts_.at(id).variables,
                        Duration::from_seconds(spec.timeout.value())};
  return std::make_unique<HookProcess>(
      real_, start, [this, id, ended](const std::string& failure) { (this->*ended)(id, failure); });
}

/// Notes the variables that hooks get for an attempt.
void AgentProcess::note_launch(const AttemptId& id, const KeeperLaunch& launch) {
  attempts_.at(id).variables = {{"ORRERY_JOB", launch.facts.job},
                                {"ORRERY_JOB_ID", fmt::format("{}", id.job.value())},
                                {"ORRERY_ATTEMPT", fmt::format("{}", id.attempt)},
                                {"ORRERY_TENANT", launch.facts.tenant},
                                {"ORRERY_DEVICES", devices_of(launch.ranks)},
                                {"ORRERY_NODE", setup_.opening.node}};
}

// --- Prologue -----------------------------------------------------------------------------------

void AgentProcess::begin_prologue(const AttemptId& id, const KeeperLaunch& launch) {
  Attempt& attempt = attempts_.at(id);
  attempt.step = Attempt::Step::kPrologue;
  attempt.launch = launch;
  attempt.hook = run_hook(id, *setup_.spec.prologue, &AgentProcess::end_prologue);
}

void AgentProcess::end_prologue(const AttemptId& of, const std::string& failure) {
  const AttemptId id = of;
  Attempt& attempt = attempts_.at(id);
  const std::unique_ptr<HookProcess> ended = std::move(attempt.hook);  // whose call this is
  attempt.step = Attempt::Step::kRanks;
  const KeeperLaunch launch = *std::exchange(attempt.launch, std::nullopt);
  if (failure.empty()) {
    hook_complaint_.clear();
    mend_if_well();  // The hook works again, and the controller may still wait for that.
    start_keeper(id, launch);
  } else {
    const std::string evidence = fmt::format("the prologue failed: {}", failure);
    // Before the report of the attempt, so that the job goes elsewhere.
    hook_complaint_ = evidence;
    refuse_work(evidence);
    note_unstarted(id, {ExitKind::kInfra, {.layer = FaultLayer::kHost, .evidence = evidence}});
  }
  act();
}

void AgentProcess::leave_prologue(const AttemptId& id, const OrderStamp& stamp) {
  Attempt& attempt = attempts_.at(id);
  attempt.hook.reset();
  attempt.report.stage = RankStage::kGone;
  attempt.report.applied = stamp;
  agent_->on_keeper_report(attempt.report, now());
  note_over(id);
}

// --- Epilogue -----------------------------------------------------------------------------------

bool AgentProcess::wants_epilogue(const Attempt& attempt) const {
  return setup_.spec.epilogue.has_value() && attempt.step == Attempt::Step::kRanks;
}

void AgentProcess::begin_epilogue(const AttemptId& id) {
  Attempt& attempt = attempts_.at(id);
  attempt.step = Attempt::Step::kEpilogue;
  attempt.hook = run_hook(id, *setup_.spec.epilogue, &AgentProcess::end_epilogue);
}

void AgentProcess::end_epilogue(const AttemptId& of, const std::string& failure) {
  const AttemptId id = of;
  Attempt& attempt = attempts_.at(id);
  const std::unique_ptr<HookProcess> ended = std::move(attempt.hook);  // whose call this is
  attempt.step = Attempt::Step::kClean;
  if (!failure.empty()) {
    hook_complaint_ = fmt::format("the epilogue failed: {}", failure);
    refuse_work(hook_complaint_);
  }
  if (attempt.report.stage == RankStage::kGone) agent_->on_keeper_report(attempt.report, now());
  if (attempt.over) note_ended(id);
  act();
}

// --- Health -------------------------------------------------------------------------------------

void AgentProcess::begin_health() {
  if (!setup_.spec.health) return;
  health_ = std::make_unique<HealthCheck>(
      real_, *setup_.spec.health,
      HealthCheck::Events{
          .passed =
              [this] {
                mend_if_well();
                tell_reading();
              },
          .failed = [this](const std::string& evidence) { refuse_work(evidence); }});
}

// --- Burn-in ------------------------------------------------------------------------------------

void AgentProcess::on_burn_in() {
  if (burn_in_ || !agent_) return;
  if (!attempts_.empty()) {
    burn_in_said_ = "not begun: work is here";
    return tell_reading();
  }
  const HookSpec& spec = *setup_.spec.burn_in;
  const HookStart start{spec.command,
                        {{"ORRERY_NODE", setup_.opening.node}},
                        Duration::from_seconds(spec.timeout.value())};
  burn_in_began_ = now();
  burn_in_said_ = "runs";
  burn_in_ = std::make_unique<HookProcess>(
      real_, start, [this](const std::string& failure) { end_burn_in(failure); });
  tell_reading();
}

void AgentProcess::end_burn_in(const std::string& failure) {
  const std::unique_ptr<HookProcess> ended = std::move(burn_in_);  // whose call this is
  const std::string after = (now() - burn_in_began_).text();
  if (!failure.empty()) {
    burn_in_said_ = fmt::format("failed after {}: {}", after, failure);
    burn_in_complaint_ = fmt::format("{}: {}", kBurnInFailed, failure);
    write_burn_in();
    return refuse_work(burn_in_complaint_);
  }
  burn_in_said_ = fmt::format("passed, in {}", after);
  burn_in_complaint_.clear();
  write_burn_in();
  log_.info(wall(), "burn-in passed", {{"after", after}});
  // No fault of any layer: it is reported as a finding of the node's checks.
  agent_->on_fault({.layer = FaultLayer::kNone,
                    .evidence = fmt::format("the burn-in passed, in {}", after),
                    .stops_jobs = false},
                   now());
  tell_reading();
  mend_if_well();
  act();
}

/// Records the complaint, so that the next agent does not mend the node either.
void AgentProcess::write_burn_in() {
  const auto written = real_.env().storage.write_file(burn_in_file(), burn_in_complaint_);
  if (written) return;
  log_.error(wall(), "the burn-in's end is not written down", {{"why", written.error().message}});
}

void AgentProcess::leave_burn_in() {
  if (!burn_in_) return;
  burn_in_.reset();
  burn_in_said_ = fmt::format("stopped after {}: work came", (now() - burn_in_began_).text());
  tell_reading();
}

// --- What ranks find ----------------------------------------------------------------------------

/// A program's report is a claim, sent once per attempt: the controller decides whether the node
/// goes out of service, and then a burn-in has to pass. All other work here goes on.
void AgentProcess::on_wrong(const AttemptId& id, const WrongResults& wrong) {
  constexpr std::size_t kEvidenceMax = 200;
  if (std::exchange(attempts_.at(id).claimed, true)) return;
  const std::string evidence = fmt::format("job {} says that it computes wrong results here: {}",
                                           id.job.value(), printable(wrong.evidence, kEvidenceMax));
  // A failed burn-in stays until an operator reruns it.
  if (!burn_in_complaint_.starts_with(kBurnInFailed)) burn_in_complaint_ = evidence;
  write_burn_in();
  log_.warning(wall(), "a job says that the node computes wrong results", {{"why", evidence}});
  agent_->on_fault({.layer = FaultLayer::kAccelerator,
                    .evidence = evidence,
                    .repair = true,
                    .stops_jobs = false,
                    .claimed_by = id},
                   now());
  act();
}

// --- What follows -------------------------------------------------------------------------------

void AgentProcess::refuse_work(const std::string& evidence) {
  log_.error(wall(), "the node is unwell", {{"why", evidence}});
  const HealthFault fault{
      .layer = FaultLayer::kHost, .evidence = evidence, .repair = true, .stops_jobs = false};
  agent_->on_fault(fault, now());
  tell_reading();
  act();
}

/// The agent mends nothing itself. With a health check the node is well once that passes; without
/// one it is well unless a prologue or epilogue failed, and then an operator has to look at it. A
/// burn-in may clear a fault that ranks found; a failed burn-in has to be run again by an operator.
void AgentProcess::apply(const BeginMending&) {
  mending_ = true;
  try_what_ranks_found();
  if (health_) return health_->run();
  mend_if_well();
}

/// Starts a burn-in once no attempt runs that it would disturb.
void AgentProcess::try_what_ranks_found() {
  const bool due = !burn_in_complaint_.empty() && !burn_in_complaint_.starts_with(kBurnInFailed);
  if (mending_ && due && attempts_.empty()) on_burn_in();
}

void AgentProcess::mend_if_well() {
  if (!mending_ || (!health_ && !hook_complaint_.empty()) || !burn_in_complaint_.empty()) return;
  mending_ = false;
  hook_complaint_.clear();
  agent_->on_mended(now());
  act();
}

/// A job's claim counts once the controller has taken the node out of service for it.
std::string AgentProcess::complaint() const {
  const bool believed = mending_ || burn_in_complaint_.starts_with(kBurnInFailed);
  if (believed && !burn_in_complaint_.empty()) return burn_in_complaint_;
  const std::string checked = health_ ? health_->complaint() : "";
  return checked.empty() ? hook_complaint_ : checked;
}

/// Sends the newest reading, with the present complaint.
void AgentProcess::tell_reading() {
  if (!reading_ || !welcomed_) return;
  reading_->unwell = complaint();
  reading_->burn_in = burn_in_said_;
  reading_->clock_refusal = clocks_.refusal();
  for (std::uint32_t at = 0; at < reading_->accelerators.size(); ++at) {
    const double clock = clocks_.clock(at);
    reading_->accelerators[at].clock = clock < 1 ? std::optional(clock) : std::nullopt;
  }
  channel_.send(*reading_);
}

}  // namespace orrery

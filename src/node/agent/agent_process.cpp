#include "node/agent/agent_process.hpp"

#include <utility>

#include "base/assert.hpp"
#include "base/system/daemon_signals.hpp"
#include "node/launch/run_directory.hpp"

namespace orrery {
namespace {

/// Within a hold: see AgentDriver.
constexpr Duration kFailureDelay = Duration::seconds(1);

/// How links to the keepers of this node are made.
NodeAttempt::MakeKeeper keeper_links(RealEnv& real, const std::string& program) {
  return [&real, program](KeeperEvents& events, const AttemptId& id, KeeperFiles files) {
    return std::make_unique<KeeperLink>(real, events, KeeperPlace{program, id, std::move(files)});
  };
}

NodeAttempts::Setup attempts_of(RealEnv& real, const AgentProcessSetup& setup,
                                const AgentDirectory& directory) {
  return {.directory = directory.attempts(),
          .run = directory.run(),
          .facts = setup.facts,
          .hooks = {setup.spec.prologue, setup.spec.epilogue, setup.opening.node},
          .make_keeper = keeper_links(real, setup.keeper)};
}

NodeFitness::Setup health_of(const AgentProcessSetup& setup, const AgentDirectory& directory) {
  return {.check = setup.spec.health,
          .burn_in = {setup.opening.node, directory.burn_in(),
                      setup.spec.burn_in.value_or(HookSpec())}};
}

NodeClocks::Setup clocks_of(const AgentProcessSetup& setup, const AgentDirectory& directory) {
  return {.file = directory.clocks(),
          .devices = static_cast<std::uint32_t>(setup.telemetry.devices.size()),
          .by_driver = setup.facts.device_cpu == 0};
}

/// Runs the loop for a while. Returns false, and sooner, where the process is told to end.
bool run_for(RealEnv& real, Duration time) {
  bool over = false;
  bool told = false;
  const auto signals = watch_signals(real.loop(), DaemonSignals::kEnd, [&told] { told = true; });
  const TimerId timer = real.env().timers.call_after(time, [&over] { over = true; });
  real.run_until([&] { return over || told; });
  (void)real.env().timers.cancel(timer);
  return over && !told;
}

/// Within a hold, the agent of an earlier hold may still be leaving the node. `log` and `setup` are
/// borrowed.
LockWait lock_wait(RealEnv& real, const Log& log, const AgentProcessSetup& setup) {
  if (setup.opening.hold.key.empty()) return {};
  return {.begin =
              [&real, &log, &setup] {
                log.warning(real.env().clock.now_wall(),
                            "another agent holds the lock: waits up to 60 s for its end",
                            {{"directory", setup.directory}});
              },
          .pause = [&real](Duration time) { return run_for(real, time); }};
}

}  // namespace

Result<std::unique_ptr<AgentProcess>> AgentProcess::open(RealEnv& real, ControllerChannel& channel,
                                                         const Log& log, AgentProcessSetup setup) {
  Result<AgentDirectory> directory =
      AgentDirectory::open(real.env().storage, setup.directory, lock_wait(real, log, setup));
  if (!directory) return forward_error(directory);
  setup.opening.incarnation = directory->incarnation();
  setup.opening.process = real.env().entropy.draw();
  return std::make_unique<AgentProcess>(real, channel, log,
                                        std::pair(std::move(setup), *std::move(directory)));
}

AgentProcess::AgentProcess(RealEnv& real, ControllerChannel& channel, const Log& log,
                           std::pair<AgentProcessSetup, AgentDirectory> place)
    : real_(real),
      log_(log),
      setup_(std::move(place.first)),
      directory_(std::move(place.second)),
      session_(channel),
      agent_(
          real.env().timers,
          [this](const AgentEffect& effect, const NodeProgram* program) {
            carry_out(effect, program);
          },
          setup_.opening.hold.key.empty() ? Duration() : kFailureDelay),
      clocks_(real.env(), log, clocks_of(setup_, directory_), clock_events()),
      health_(real, log, health_of(setup_, directory_), health_events()),
      commands_(session_, setup_.opening.node),
      attempts_({real, log, session_, agent_, clocks_, health_, commands_},
                attempts_of(real, setup_, directory_)),
      readings_(session_, agent_, clocks_, health_) {}

NodeClocks::Events AgentProcess::clock_events() {
  return {
      .set = [this](const DeviceClocks::Change& change,
                    Telemetry::ClockSetting then) { readings_.set_clock(change, std::move(then)); },
      .answered =
          [this] {
            readings_.send();
            attempts_.correct_clocks();
          }};
}

NodeFitness::Events AgentProcess::health_events() {
  return {.fault =
              [this](const HealthFault& fault) {
                agent_.fault(fault);
                agent_.act();
              },
          .mended =
              [this] {
                agent_.mended();
                agent_.act();
              },
          .changed = [this] { readings_.send(); },
          .idle = [this] { return attempts_.empty(); }};
}

HoldWatch::Agent AgentProcess::hold_agent() {
  return {.connected = [this] { return session_.welcomed(); },
          .idle = [this] { return attempts_.empty() && agent_.attempts_acknowledged(); },
          .tell = [this](const HoldEnding& ending) { session_.send(ending); },
          .kill = [this](std::function<void()> then) { attempts_.abandon(std::move(then)); },
          .stop = [this] { stop(); }};
}

Status AgentProcess::run() {
  const Env& env = real_.env();
  HoldWatch hold({env.clock, env.timers, log_, setup_.opening.hold.key}, hold_agent());
  const auto signals = watch_signals(real_.loop(), DaemonSignals::kEnd, [&hold] { hold.end(); });
  if (!signals) return tl::unexpected(signals.error());
  log_beginning();
  session_.open(setup_.opening, *this);
  readings_.begin(real_.loop(), std::move(setup_.telemetry));
  real_.run_until([this] { return outcome_.has_value(); });
  readings_.end();
  health_.end();
  session_.leave();
  if (attempts_.empty()) leave_run_directory(directory_.path());
  return outcome_.value_or(Status());
}

void AgentProcess::log_beginning() {
  for (const std::string& note : setup_.notes) log_.warning(wall(), "discovery", {{"why", note}});
  for (const std::string& change : setup_.file_changes) {
    log_.warning(wall(), "file changed", {{"what", change}});
  }
  if (setup_.facts.agent.jobs == JobUsers::kAny) {
    log_.warning(wall(), "jobs without run_as run as root", {{"why", "allow_agent_user"}});
  }
}

void AgentProcess::stop() {
  if (!outcome_) outcome_ = Status();
}

/// Nothing more is sent, because the controller may be another one than that of the attempts here.
void AgentProcess::fail(Status why) {
  session_.leave();
  outcome_ = std::move(why);
}

// --- The controller -----------------------------------------------------------------------------

void AgentProcess::on_welcome(const AgentWelcome& welcome) {
  if (Status accepted = session_.accept(welcome); !accepted) return fail(std::move(accepted));
  if (!agent_.begun()) {
    if (Status begun = begin(welcome); !begun) return fail(std::move(begun));
  }
  log_.info(wall(), "connected", {{"node", welcome.node.value()}, {"attempts", attempts_.size()}});
  attempts_.send_notes();
  readings_.send();
  agent_.act();
}

/// Looks for keepers only now, because the result answers the controller's question which attempts
/// live here.
Status AgentProcess::begin(const AgentWelcome& welcome) {
  const Result<std::vector<AttemptId>> living = attempts_.find_living();
  if (!living) return tl::unexpected(living.error());
  if (Status same = directory_.join(welcome.cluster, welcome.node, living->size()); !same) {
    return same;
  }
  const AgentIdentity identity{welcome.node, setup_.opening.boot, setup_.opening.incarnation};
  agent_.begin(AgentSetup{welcome.cluster, identity, welcome.beat, welcome.repeat}, *living);
  attempts_.adopt(*living);
  health_.begin();
  clocks_.request();
  return {};
}

void AgentProcess::on_lost(const Error& why) {
  commands_.close();
  if (why.kind == ErrorKind::kInfeasible) return leave_node(why);
  const bool refused = why.kind == ErrorKind::kInput && !agent_.begun();
  if (refused) return fail(tl::unexpected<Error>(why));
  session_.lose();
}

/// Another agent has the node, or it is not lent any more, so no attempt here belongs to the
/// controller: it may start the same work elsewhere. This agent ends once no rank runs, or when its
/// patience is over.
void AgentProcess::leave_node(const Error& why) {
  constexpr Duration kPatience = Duration::seconds(10);
  log_.warning(wall(), "this agent leaves its node: ranks that are left here are killed",
               {{"why", why.message}});
  session_.leave();
  const auto end = [this, outcome = outcome_of_leaving(setup_.opening.hold.key, why)] {
    fail(outcome);
  };
  (void)real_.env().timers.call_after(kPatience, end);
  attempts_.abandon(end);
}

void AgentProcess::on_order(const NodeOrder& order) {
  if (!outcome_) agent_.obey(order);
}

void AgentProcess::on_log_question(const AttemptLogQuestion& question) {
  attempts_.answer(question);
}

void AgentProcess::on_burn_in() {
  if (agent_.begun()) health_.run_burn_in();
}

void AgentProcess::on_command(const AttemptExecOpen& asked) {
  commands_.open(asked, attempts_.living_keeper(asked.attempt));
}

void AgentProcess::on_command_input(const ExecInput& input) { commands_.input(input); }

// --- What the agent decides ---------------------------------------------------------------------

void AgentProcess::carry_out(const AgentEffect& effect, const NodeProgram* program) {
  if (const auto* report = std::get_if<Report>(&effect)) {
    session_.send(*report);
  } else if (const auto* start = std::get_if<StartKeeper>(&effect)) {
    ORRERY_ASSERT(program != nullptr, "only an order to launch starts a keeper");
    attempts_.carry_out(*start, *program);
  } else if (const auto* tell = std::get_if<TellKeeper>(&effect)) {
    attempts_.carry_out(*tell, program);
  } else {
    ORRERY_ASSERT(std::holds_alternative<BeginMending>(effect), "an effect of an agent");
    health_.begin_mending();
  }
}

}  // namespace orrery

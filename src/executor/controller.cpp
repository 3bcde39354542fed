#include "executor/controller.hpp"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

namespace orrery {
namespace {

/// Returns the time after the start in which nodes that are not heard are not lost: all agents
/// connect anew, at a cost of up to 4 ms of a core each (docs/benchmarks.md), and half of the time
/// is left.
Duration grace_of(const ControllerSettings& settings, const State& state) {
  const auto cores = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  const auto nodes = static_cast<std::int64_t>(state.setup().topology->node_count());
  return std::max(Duration::from_seconds(settings.node_grace.value()),
                  Duration::milliseconds(8 * nodes / cores));
}

std::unique_ptr<AgentHost> make_host(LiveStart& start, const ControllerOptions& options,
                                     HostOutlet& outlet) {
  const AgentHost::Setup setup{
      {.cluster = start.cluster,
       .term = static_cast<std::uint64_t>(start.store.term),
       .heartbeats = {.grace = grace_of(options.settings, start.core->state())}},
      options.lost_jobs};
  return std::make_unique<AgentHost>(std::move(start.core), setup, outlet, start.clock.now());
}

/// Both arguments outlive the result.
std::function<std::string(JobId)> archived_form(const ControllerOptions& options,
                                                const Controller& controller) {
  if (!options.archived_form) return {};
  return [&options, &controller](JobId job) {
    return options.archived_form(
        {controller.state(), job, controller.now(), controller.agents().notes_of(job)});
  };
}

}  // namespace

// --- Begin --------------------------------------------------------------------------------------

Result<std::unique_ptr<Controller>> Controller::open(const Env& env, const Log& log,
                                                     ControllerOptions options) {
  Result<LiveStart> start = start_from(env, log, options);
  if (!start) return forward_error(start);
  return std::make_unique<Controller>(env, log, std::move(options), *std::move(start));
}

Controller::Controller(const Env& env, const Log& log, ControllerOptions options, LiveStart start)
    : options_(std::move(options)),
      counts_{.since = start.began},
      setup_(std::move(start.setup)),
      host_(env.timers,
            {.clock = start.clock,
             .directory = options_.directory,
             .wake = [this] { act_when_due(); },
             .changed = [this] { schedule(); }},
            make_host(start, options_, *this)),
      holds_(log,
             {host_, start.cluster, static_cast<std::uint64_t>(start.store.term), start.step_key}),
      store_(env, log, std::move(start.store),
             {.host = host_,
              .settings = options_.settings,
              .counts = counts_,
              .history = start.history,
              .writer = std::move(start.writer),
              .record = std::move(start.record),
              .archived_form = archived_form(options_, *this),
              .durable =
                  [this](std::uint64_t input) {
                    events_.durable(input);
                    host_.control().durable(input);
                    store_.log().snapshot_if_due();
                    schedule();
                  },
              .may_speak = [this] { host_.control().release(); },
              .failed = options_.failed}),
      events_(env, log, host_.state(), store_.open_log()),
      sessions_(env, log,
                {.cluster = start.cluster,
                 .state = host_.state(),
                 .clock = start.clock,
                 .lent = holds_.lent_nodes(),
                 .counts = counts_,
                 .keys = std::move(start.agent_keys),
                 .step_key = std::move(start.step_key)}),
      side_(env, {.host = host_, .setup = *setup_, .counts = counts_}),
      reports_(log, {.host = host_,
                     .setup = *setup_,
                     .texts = store_.log(),
                     .lost_jobs = options_.lost_jobs}),
      submissions_({.host = host_,
                    .setup = *setup_,
                    .store = store_,
                    .agents = sessions_.agents(),
                    .settings = options_.settings}),
      fleet_(env, log, host_,
             {.setup = *setup_, .sessions = sessions_, .side = side_, .holds = holds_}) {
  store_.log().commit();
  fleet_.renew_waiting();
  schedule();
  store_.look();
  log.info(env.clock.now_wall(), "history read",
           {{"jobs", state().jobs()},
            {"events", start.history.read.events},
            {"batches", start.history.newest}});
}

// --- Time ---------------------------------------------------------------------------------------

void Controller::schedule() {
  Instant due =
      std::min({host_.control().next_due(), store_.archive().next_due(), holds_.next_due()});
  if (fleet_.renews()) due = std::min(due, now());
  host_.wake_at(due);
}

void Controller::act_when_due() {
  const Instant until = now();
  const Instant began = host_.clock().monotonic();
  const std::uint64_t passes = host_.core().passes().incremental;
  host_.advance(until);
  if (host_.core().passes().incremental != passes) {
    counts_.pass.observe(host_.clock().monotonic() - began);
  }
  if (host_.link().superseded_by() != 0) {
    options_.failed({ErrorKind::kEnvironment, "another controller has taken over", {}});
  }
  holds_.advance(until);
  // Some in each turn: other calls do not wait until thousands are resolved.
  fleet_.renew(until);
  store_.log().snapshot_if_due();
  store_.archive().move_due();
  schedule();
}

// --- What leaves the host -----------------------------------------------------------------------

void Controller::note(const Input& input) { store_.log().note(input); }

std::uint64_t Controller::append(Instant at, std::span<const Event> events) {
  const std::uint64_t input = store_.log().append(at, events);
  events_.decided(input, at, events);
  for (const Event& event : events) {
    counts_.note(event, state());
    if (const auto* end = std::get_if<JobEnded>(&event)) store_.archive().on_end(at, end->job);
    fleet_.note(event);
    if (const auto* lent = std::get_if<NodeLent>(&event)) sessions_.note(*lent);
  }
  store_.log().commit();
  return input;
}

bool Controller::may_speak() { return store_.log().may_speak(); }

void Controller::send(const Order& order) { sessions_.send(order); }

void Controller::run_full_pass(Core& core, Instant now) { side_.run_full_pass(core, now); }

void Controller::search_plan(const PlanKey& key) { side_.search_plan(key); }

// --- Commands -----------------------------------------------------------------------------------

void Controller::command(InputKind what, const std::string& request_id, Answered<JobId> answered) {
  if (Status running = host_.check_running(); !running) return answered(forward_error(running));
  host_.handle(std::move(what), request_id, [answered = std::move(answered)](const Answer& answer) {
    if (answer.status) return answered(answer.job);
    answered(tl::unexpected(answer.status.error()));
  });
  schedule();
}

void Controller::compact(Answered<CompactedLog> answered) {
  if (Status running = host_.check_running(); !running) return answered(forward_error(running));
  store_.log().compact(setup_->control(), std::move(answered));
}

void Controller::set_limits(const ControllerSettings& settings) {
  options_.settings = settings;
  submissions_.limits_changed();
  schedule();
}

void Controller::receive(NodeId number, const AgentMessage& message) {
  const std::optional<Report> report = sessions_.receive(number, message);
  if (!report) return;
  reports_.deliver(*report);
  schedule();
}

}  // namespace orrery

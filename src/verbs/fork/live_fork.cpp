#include "verbs/fork/live_fork.hpp"

#include <algorithm>
#include <utility>

#include "base/system/real_clock.hpp"
#include "control/state/snapshot.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace orrery {
namespace {

Duration work_of(const JobRequest& request) {
  if (request.kind == JobKind::kServe) return Duration::max();
  double steps = 0;
  for (const RoleRequest& role : request.roles) steps = std::max(steps, role.steps.value_or(0));
  // Where work is told in steps, one counts as a second.
  if (steps > 0) return Duration::from_seconds(steps);
  const std::optional<Duration> told = request.estimate ? request.estimate : request.time_limit;
  if (!told) return Duration::max();
  return Duration::from_seconds(told->count_seconds() *
                                request.roles.front().options.front().speed);
}

}  // namespace

Simulation::KnownJob known_of(const State& state, JobId id, Instant now) {
  constexpr std::int64_t kTenthsDone = 9;
  const Job& job = state.job(id);
  Simulation::KnownJob known;
  if (job.submission == nullptr) return known;
  known.work = work_of(job.submission->request);
  if (!holds_devices(job.phase)) return known;
  const RunningJob& run = state.running(id);
  Instant end = run.expected_end;
  if (end == Instant::max() && run.request->time_limit) {
    end = run.started + *run.request->time_limit;
  }
  if (end == Instant::max()) return {};
  const std::int64_t ran = (now - run.started).count_ns();
  known.left = end > now ? end - now : Duration::nanoseconds(ran / kTenthsDone);
  return known;
}

Result<std::unique_ptr<LiveFork>> LiveFork::read(const CommandOptions& options,
                                                 const std::string& path) {
  auto store = SqliteStore::open_to_read(path);
  if (!store) {
    Error error = store.error();
    if (store.error().failure == StorageFailure::kNotFound) error.kind = ErrorKind::kInput;
    return tl::unexpected(std::move(error));
  }
  auto fork = std::make_unique<LiveFork>();
  Result<std::unique_ptr<StoredSetup>> setup =
      StoredSetup::load(with_catalog_of(options, path), **store);
  if (!setup) return forward_error(setup);
  fork->setup_ = *std::move(setup);
  HistoryResult<RecoveredCore> history = recover_core(**store, fork->setup_->live().control());
  if (!history) return forward_error(history);
  fork->history_ = *std::move(history);
  fork->setup_->live().use(fork->state());
  fork->snapshot_ = snapshot_of(fork->state());
  fork->now_ = std::max(RealClock().now_wall(), fork->state().now());
  return fork;
}

Result<std::vector<SubmitJob>> LiveFork::jobs_of(const JobText& text) {
  return setup_->live().intake().read(text, state(), now_);
}

Result<std::vector<JobFate>> LiveFork::play(const ForkChange& change, Duration span) {
  std::vector<PlayedJob> jobs;
  jobs.reserve(change.jobs.size());
  for (const SubmitJob& job : change.jobs) {
    jobs.push_back({job.submission, {.work = work_of(job.submission.request)}, now_});
  }
  std::vector<Input> commands;
  commands.reserve(change.commands.size());
  for (const InputKind& command : change.commands) commands.push_back({now_, command, {}});
  std::vector<JobFate> fates(state().jobs() + jobs.size());
  const ControlSetup& setup = setup_->live().in_use();
  SimulationHooks hooks;
  hooks.events = [&](Instant at, std::span<const Event> events) {
    for (const Event& event : events) {
      const auto* started = std::get_if<JobStarted>(&event);
      if (started == nullptr) continue;
      Instant& start = fates[started->job.value()].start;
      start = std::min(start, at);
    }
  };
  Simulation twin(
      {setup, {.rules = {}, .timing = {}, .plans = setup.plans}, jobs, hooks, commands});
  const auto knowledge = [&](const State& state, JobId id) { return known_of(state, id, now_); };
  if (Status on = twin.go_on_from(snapshot_, now_, knowledge); !on) return forward_error(on);
  twin.run(now_ + span);
  for (std::size_t i = 0; i < fates.size(); ++i) {
    const JobId id = JobId::at(i);
    fates[i].job = id;
    if (twin.state().has(id)) fates[i].end = twin.state().job(id).end;
  }
  return fates;
}

}  // namespace orrery

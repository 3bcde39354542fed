#include "node/agent/agent_process.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <system_error>
#include <utility>

#include "base/assert.hpp"
#include "base/text/utf8.hpp"
#include "node/daemon_signals.hpp"
#include "node/keeper/exit_cause.hpp"
#include "node/launch/run_directory.hpp"

namespace orrery {
namespace {

constexpr Duration kBackoffFirst = Duration::milliseconds(100);
constexpr Duration kBackoffMax = Duration::seconds(5);

tl::unexpected<Error> system_error(std::string_view what) {
  return environment_error(
      fmt::format("cannot {}: {}", what, std::generic_category().message(errno)));
}

/// A failure to start the keeper is the node's fault, unless its text names a disk fault.
AttemptEnd fault_of_start(const std::string& why) {
  Blame blame = exit_cause(1, why);
  if (blame.layer == FaultLayer::kProgram) blame.layer = FaultLayer::kHost;
  blame.evidence = fmt::format("the keeper of its ranks did not start: {}", why);
  return {ExitKind::kInfra, std::move(blame)};
}

/// A job that the node may not run is no fault and is not tried again; a node that cannot look its
/// users up is broken.
AttemptEnd refusal_of(const Error& why, const std::string& node) {
  if (why.kind == ErrorKind::kEnvironment) {
    return {ExitKind::kInfra, {.layer = FaultLayer::kHost, .evidence = why.message}};
  }
  return {ExitKind::kRefused, {.evidence = fmt::format("{} refused it: {}", node, why.message)}};
}

/// Lets other users pass through the directory to their own files, without listing it.
void make_searchable(const std::string& place) {
  constexpr mode_t kSearchable = 0711;
  (void)::chmod(place.c_str(), kSearchable);
}

}  // namespace

Result<std::unique_ptr<AgentProcess>> AgentProcess::open(RealEnv& real, ControllerChannel& channel,
                                                         const Log& log, AgentProcessSetup setup) {
  auto process = std::make_unique<AgentProcess>(real, channel, log, std::move(setup));
  if (Status ready = process->prepare(); !ready) return forward_error(ready);
  return process;
}

AgentProcess::AgentProcess(RealEnv& real, ControllerChannel& channel, const Log& log,
                           AgentProcessSetup setup)
    : real_(real),
      channel_(channel),
      log_(log),
      setup_(std::move(setup)),
      clocks_(static_cast<std::uint32_t>(setup_.telemetry.devices.size()),
              real.env().storage.read_file(clocks_file(), 4096).value_or("")),
      burn_in_complaint_(
          real.env().storage.read_file(burn_in_file(), std::size_t{1} << 20).value_or("")),
      backoff_(kBackoffFirst) {
  burn_in_said_ = burn_in_complaint_;
}

// --- The beginning ------------------------------------------------------------------------------

Status check_agent_directory(Storage& storage, const std::string& directory) {
  const AttemptId longest{JobId(~1u), ~0u};
  const std::size_t path_max = sizeof(sockaddr_un::sun_path) - 1;
  const std::string place = directory + "/attempts";
  const AttemptDirectories attempts(storage, place, place);
  const std::size_t path = attempts.files(longest).directory.size() + sizeof "/socket" - 1;
  if (path <= path_max) return {};
  return input_error({}, fmt::format("{}: at most {} bytes, so that sockets may be in it",
                                     directory, directory.size() - (path - path_max)));
}

Status AgentProcess::prepare() {
  if (Status fits = check_agent_directory(real_.env().storage, setup_.directory); !fits)
    return fits;
  if (auto made = real_.env().storage.make_directories(setup_.directory); !made) {
    return forward_error(made);
  }
  if (::geteuid() == 0) make_searchable(setup_.directory);
  if (Status locked = lock_directory(); !locked) return locked;
  if (Status counted = count_incarnation(); !counted) return counted;
  setup_.opening.process = real_.env().entropy.draw();
  Result<std::string> run = own_run_directory(setup_.directory);
  if (!run) return forward_error(run);
  directories_.emplace(real_.env().storage, setup_.directory + "/attempts", *std::move(run));
  return watch_signals();
}

Status AgentProcess::lock_directory() {
  const std::string path = setup_.directory + "/lock";
  lock_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock_.valid()) return system_error("open " + path);
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return {};
  if (errno != EWOULDBLOCK) return system_error("lock " + path);
  return environment_error(fmt::format("{}: another agent holds it", path));
}

Status AgentProcess::count_incarnation() {
  Storage& storage = real_.env().storage;
  const std::string path = setup_.directory + "/incarnation";
  const std::string text = storage.read_file(path, 64).value_or("");
  (void)std::from_chars(text.data(), text.data() + text.size(), setup_.opening.incarnation);
  ++setup_.opening.incarnation;
  auto written = storage.write_file(path, fmt::format("{}\n", setup_.opening.incarnation));
  if (!written) return forward_error(written);
  return {};
}

Status AgentProcess::watch_signals() {
  auto watch = orrery::watch_signals(real_.loop(), DaemonSignals::kEnd, [this] { stop(); });
  if (!watch) return forward_error(watch);
  signals_ = *std::move(watch);
  return {};
}

Status AgentProcess::run() {
  for (const std::string& note : setup_.notes) log_.warning(wall(), "discovery", {{"why", note}});
  for (const std::string& change : setup_.file_changes) {
    log_.warning(wall(), "file changed", {{"what", change}});
  }
  if (setup_.facts.agent.jobs == JobUsers::kAny) {
    log_.warning(wall(), "jobs without run_as run as root", {{"why", "allow_agent_user"}});
  }
  open_channel();
  telemetry_ =
      std::make_unique<Telemetry>(real_.loop(), real_.loop(), std::move(setup_.telemetry),
                                  [this](const NodeReading& reading) { note_reading(reading); });
  real_.run_until([this] { return done_; });
  telemetry_.reset();
  health_.reset();
  burn_in_.reset();
  channel_.close();
  if (attempts_.empty()) leave_run_directory(setup_.directory);
  return outcome_;
}

void AgentProcess::fail(Status why) {
  outcome_ = std::move(why);
  done_ = true;
}

// --- The controller -----------------------------------------------------------------------------

void AgentProcess::open_channel() { channel_.open(setup_.opening, *this); }

/// Reopens after a random delay: agents that lost the controller together must not return together.
void AgentProcess::open_later() {
  const auto half = static_cast<std::uint64_t>(backoff_.count_ns() / 2);
  const auto jitter = static_cast<std::int64_t>(real_.env().entropy.draw() % half);
  const Duration delay =
      Duration::nanoseconds(static_cast<std::int64_t>(half)) + Duration::nanoseconds(jitter);
  backoff_ = std::min(backoff_ * 2, kBackoffMax);
  (void)real_.env().timers.call_after(delay, [this] { open_channel(); });
}

/// Another agent has the node, so no attempt here belongs to the controller any more: it may start
/// the same work elsewhere.
void AgentProcess::leave_node(const Error& why) {
  constexpr Duration kPatience = Duration::seconds(10);
  if (replaced_) return;
  log_.error(wall(), "another agent has this node: the ranks here are killed, and this agent ends",
             {{"why", why.message}});
  welcomed_ = false;
  replaced_ = {ErrorKind::kInput, why.message, {}};
  for (auto& [id, attempt] : attempts_) {
    const AttemptReport& report = attempt.report;
    if (attempt.link == nullptr || report.stage == RankStage::kGone) continue;
    attempt.link->tell(AgentOrder{{report.applied, KillRanks{report.token}}, {}});
  }
  (void)real_.env().timers.call_after(kPatience,
                                      [this] { fail(tl::unexpected<Error>(*replaced_)); });
  end_if_clear();
}

/// Ends this agent once no rank runs: its keepers are then released.
void AgentProcess::end_if_clear() {
  if (!replaced_ || done_) return;
  const bool clear = std::all_of(attempts_.begin(), attempts_.end(), [](const auto& each) {
    return each.second.report.stage == RankStage::kGone;
  });
  if (!clear) return;
  for (auto& [id, attempt] : attempts_) {
    if (attempt.link != nullptr)
      attempt.link->tell(AgentOrder{{attempt.report.applied, ReleaseKeeper{}}, {}});
  }
  fail(tl::unexpected<Error>(*replaced_));
}

void AgentProcess::on_lost(const Error& why) {
  close_commands();
  if (why.kind == ErrorKind::kInfeasible) return leave_node(why);
  const bool refused = why.kind == ErrorKind::kInput && !agent_;
  if (refused) return fail(tl::unexpected<Error>(why));
  if (welcomed_ || backoff_ == kBackoffFirst) {
    log_.warning(wall(), "controller out of reach", {{"why", why.text()}});
  }
  welcomed_ = false;
  open_later();
}

void AgentProcess::on_welcome(const AgentWelcome& welcome) {
  backoff_ = kBackoffFirst;
  if (!agent_) {
    if (Status begun = begin(welcome); !begun) return fail(std::move(begun));
  } else if (welcome.cluster != welcome_.cluster || welcome.node != welcome_.node) {
    return fail(environment_error(fmt::format(
        "the controller takes this agent for node {} of cluster {:016x}; it is node {} "
        "of cluster {:016x}",
        welcome.node.value(), welcome.cluster, welcome_.node.value(), welcome_.cluster)));
  }
  welcomed_ = true;
  log_.info(wall(), "connected", {{"node", welcome.node.value()}, {"attempts", attempts_.size()}});
  for (const auto& [id, attempt] : attempts_) {
    if (attempt.said.attempt == id) channel_.send(attempt.said);
  }
  tell_reading();
  act();
}

/// Looks for keepers only now, because the result answers the controller's question which attempts
/// live here.
Status AgentProcess::begin(const AgentWelcome& welcome) {
  welcome_ = welcome;
  Result<std::vector<AttemptId>> living = directories_->find_living();
  if (!living) return forward_error(living);
  if (Status same = check_cluster(welcome, living->size()); !same) return same;
  const AgentIdentity identity{welcome.node, setup_.opening.boot, setup_.opening.incarnation};
  agent_.emplace(AgentSetup{welcome.cluster, identity, welcome.beat, welcome.repeat}, *living,
                 now());
  for (const AttemptId& id : *living) {
    Attempt& attempt = attempts_[id];
    attempt.link = std::make_unique<KeeperLink>(real_, *this, id, directories_->files(id));
    attempt.link->adopt();
    clocks_.adopt(id);
    const auto launch = read_keeper_launch(real_.env().storage, directories_->files(id));
    if (launch) note_launch(id, *launch);
  }
  remove_old();
  begin_health();
  set_clocks();
  return {};
}

/// Attempts that run here are not reported to another controller, which would end them as unknown.
Status AgentProcess::check_cluster(const AgentWelcome& welcome, std::size_t living) {
  Storage& storage = real_.env().storage;
  const std::string path = setup_.directory + "/cluster";
  const std::string own = fmt::format("{:016x} node {}\n", welcome.cluster, welcome.node.value());
  const std::string before = storage.read_file(path, 256).value_or(own);
  if (before != own && living > 0) {
    return environment_error(
        fmt::format("{}: what runs here belongs to cluster {}, not to cluster {}", setup_.directory,
                    before.substr(0, before.find('\n')), own.substr(0, own.find('\n'))));
  }
  auto written = storage.write_file(path, own);
  if (!written) return forward_error(written);
  return {};
}

void AgentProcess::on_order(const NodeOrder& order) {
  if (done_) return;
  program_ = &order.program;
  agent_->on_order(order.order, now());
  act();
  program_ = nullptr;
}

// --- What is done -------------------------------------------------------------------------------

void AgentProcess::act() {
  for (std::vector<AgentEffect> effects = agent_->take(); !effects.empty();
       effects = agent_->take()) {
    for (const AgentEffect& effect : effects) {
      std::visit([this](const auto& what) { apply(what); }, effect);
    }
  }
  arm_timer();
}

void AgentProcess::apply(const Report& report) {
  // Without a controller the report is dropped; what must arrive is sent again.
  if (welcomed_) channel_.send(report);
}

void AgentProcess::apply(const StartKeeper& start) {
  ORRERY_ASSERT(program_ != nullptr, "only an order to launch starts a keeper");
  Attempt& attempt = attempts_[start.id];
  attempt.report.token = start.launch.token;
  attempt.report.applied = start.stamp;
  log_.info(
      wall(), "attempt starts",
      {{"job", start.id.job.value()}, {"attempt", start.id.attempt}, {"name", program_->job}});
  leave_burn_in();
  note_clocks(start.id, start.launch.shares);
  const Result<KeeperLaunch> launch = keeper_launch(start, *program_, setup_.facts);
  if (!launch) return note_unstarted(start.id, refusal_of(launch.error(), setup_.opening.node));
  attempt.link =
      std::make_unique<KeeperLink>(real_, *this, start.id, directories_->files(start.id));
  note_launch(start.id, *launch);
  if (setup_.spec.prologue) return begin_prologue(start.id, *launch);
  start_keeper(start.id, *launch);
}

void AgentProcess::start_keeper(const AttemptId& id, const KeeperLaunch& launch) {
  if (const Status started = run_keeper(id, launch); !started) {
    note_unstarted(id, fault_of_start(started.error().message));
  }
}

Status AgentProcess::run_keeper(const AttemptId& id, const KeeperLaunch& launch) {
  Storage& storage = real_.env().storage;
  const KeeperFiles files = directories_->files(id);
  directories_->note_started(id);
  for (const std::string& place : {setup_.directory + "/attempts", files.directory, files.run}) {
    if (auto made = storage.make_directories(place); !made) return forward_error(made);
    if (launch.user) make_searchable(place);  // Its processes have files of their own in it.
  }
  if (Status written = write_keeper_launch(storage, files, launch); !written) return written;
  return attempts_.at(id).link->start(setup_.keeper);
}

void AgentProcess::apply(const TellKeeper& tell) {
  const auto found = attempts_.find(tell.id);
  if (found == attempts_.end()) return;  // That it is over is on its way to the agent.
  if (std::holds_alternative<ReleaseKeeper>(tell.order.what)) {
    return keep_logs(tell.id, found->second);
  }
  const bool ends = std::holds_alternative<EndRanks>(tell.order.what) ||
                    std::holds_alternative<KillRanks>(tell.order.what);
  if (ends && found->second.step == Attempt::Step::kPrologue) {
    return leave_prologue(tell.id, tell.order.stamp);
  }
  AgentOrder order{tell.order, {}};
  if (const auto* launch = std::get_if<LaunchRanks>(&tell.order.what)) {
    note_clocks(tell.id, launch->shares);
    if (program_ != nullptr) order.gangs = program_->gangs;
  }
  found->second.link->tell(order);
}

void AgentProcess::arm_timer() {
  if (timer_) real_.env().timers.cancel(*timer_);
  timer_ = real_.env().timers.call_after(agent_->next_due() - now(), [this] {
    timer_.reset();
    agent_->on_timer(now());
    act();
  });
}

// --- Keepers ------------------------------------------------------------------------------------

void AgentProcess::on_status(const AttemptId& id, const KeeperStatus& status) {
  Attempt& attempt = attempts_.at(id);
  attempt.report = with_clocks(status.report);
  std::optional<AttemptEnd>& end = attempt.report.end;
  if (end && end->kind != ExitKind::kDone) end->blame.node = welcome_.node;
  tell_notes(id, {id, status.progress, status.notes, attempt.said.paces});
  // What is reported gone is free for others, so it is clean before.
  const bool gone = status.report.stage == RankStage::kGone;
  if (gone && wants_epilogue(attempt)) return begin_epilogue(id);
  if (attempt.step == Attempt::Step::kEpilogue) return;
  agent_->on_keeper_report(attempt.report, now());
  act();
  end_if_clear();
}

void AgentProcess::on_paces(const AttemptId& id, const RankPaces& paces) {
  const AttemptNotes& said = attempts_.at(id).said;
  tell_notes(id, {id, said.progress, said.notes, paces.paces});
}

/// Sends notes only when they changed: most small jobs have none.
void AgentProcess::tell_notes(const AttemptId& id, AttemptNotes notes) {
  AttemptNotes& said = attempts_.at(id).said;
  said.attempt = id;
  if (notes == said) return;
  said = std::move(notes);
  if (welcomed_) channel_.send(said);
}

void AgentProcess::on_over(const AttemptId& id, const std::string& failure) {
  const AttemptId over = id;  // copied, because the link that owns it ends here
  if (!failure.empty()) {
    note_unstarted(over, fault_of_start(failure));
    return act();
  }
  tell_errors(over);
  Attempt& attempt = attempts_.at(over);
  attempt.over = true;
  if (wants_epilogue(attempt)) return begin_epilogue(over);
  if (attempt.step == Attempt::Step::kEpilogue) return;
  note_ended(over);
  act();
}

/// Logs what a keeper that came to life wrote to its errors file, such as why it died.
void AgentProcess::tell_errors(const AttemptId& id) {
  constexpr std::size_t kErrorsMax = std::size_t{1} << 16;
  constexpr std::size_t kShown = 2000;
  const std::string words =
      real_.env().storage.read_file(directories_->files(id).errors(), kErrorsMax).value_or("");
  if (words.empty()) return;
  log_.warning(
      wall(), "a keeper complained",
      {{"job", id.job.value()}, {"attempt", id.attempt}, {"words", printable(words, kShown)}});
}

void AgentProcess::note_ended(const AttemptId& id) {
  for (const LoggedRank& rank : logged_ranks(real_.env().storage, directories_->files(id))) {
    if (attempts_.at(id).kept) break;
    answer_from_files(id, {std::nullopt, {rank.gang, rank.rank, kFromTail}});
  }
  note_over(id);
}

void AgentProcess::note_unstarted(const AttemptId& id, AttemptEnd end) {
  log_.error(wall(), "attempt did not start",
             {{"job", id.job.value()}, {"attempt", id.attempt}, {"why", end.blame.evidence}});
  AttemptReport& report = attempts_[id].report;
  if (end.kind == ExitKind::kInfra) end.blame.node = welcome_.node;
  report.stage = RankStage::kGone;
  report.end = std::move(end);
  agent_->on_keeper_report(report, now());
  note_over(id);
}

void AgentProcess::note_over(const AttemptId& id) {
  log_.info(wall(), "attempt over", {{"job", id.job.value()}, {"attempt", id.attempt}});
  end_commands(id, "the attempt has ended");
  attempts_.erase(id);
  clocks_.forget(id);
  set_clocks();
  (void)seal_if_over(directories_->files(id));
  directories_->note_ended(id, wall());
  agent_->on_keeper_exit(id, now());
  remove_old();
  try_what_ranks_found();
  end_if_clear();
}

void AgentProcess::note_reading(const NodeReading& reading) {
  reading_ = reading;
  if (agent_) agent_->on_signals(signals_of(reading));
  tell_reading();
}

/// Removes files in pieces, so that heartbeats are sent while a job's files are removed.
void AgentProcess::remove_old() {
  if (removing_ || !directories_->remove_some(wall())) return;
  removing_ = true;
  (void)real_.env().timers.call_after(Duration::milliseconds(1), [this] {
    removing_ = false;
    remove_old();
  });
}

}  // namespace orrery

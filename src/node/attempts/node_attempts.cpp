#include "node/attempts/node_attempts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/utf8.hpp"
#include "node/launch/run_directory.hpp"

namespace orrery {
namespace {

/// A job that the node may not run is no fault and is not tried again; a node that cannot look its
/// users up is broken.
AttemptEnd refusal_of(const Error& why, const std::string& node) {
  if (why.kind == ErrorKind::kEnvironment) {
    return {ExitKind::kInfra, {.layer = FaultLayer::kHost, .evidence = why.message}};
  }
  return {ExitKind::kRefused, {.evidence = fmt::format("{} refused it: {}", node, why.message)}};
}

}  // namespace

NodeAttempts::NodeAttempts(const Parts& parts, Setup setup)
    : real_(parts.real),
      log_(parts.log),
      session_(parts.session),
      agent_(parts.agent),
      clocks_(parts.clocks),
      health_(parts.health),
      commands_(parts.commands),
      setup_(std::move(setup)),
      directories_(parts.real.env().storage, setup_.directory, setup_.run) {}

NodeAttempts::~NodeAttempts() {
  if (removal_) real_.env().timers.cancel(*removal_);
}

NodeAttempt& NodeAttempts::make(const AttemptId& id) {
  const NodeAttempt::Setup setup{real_, session_, commands_, setup_.hooks, setup_.make_keeper};
  std::unique_ptr<NodeAttempt>& attempt = attempts_[id];
  attempt = std::make_unique<NodeAttempt>(setup, *this, id, directories_.files(id));
  return *attempt;
}

void NodeAttempts::adopt(const std::vector<AttemptId>& living) {
  for (const AttemptId& id : living) {
    const auto launch = read_keeper_launch(real_.env().storage, directories_.files(id));
    clocks_.adopt(id);
    make(id).adopt(launch ? std::optional(*launch) : std::nullopt);
  }
  remove_old();
}

// --- Orders -------------------------------------------------------------------------------------

void NodeAttempts::carry_out(const StartKeeper& start, const NodeProgram& program) {
  NodeAttempt& attempt = make(start.id);
  attempt.note_order(start.launch.token, start.stamp);
  log_.info(wall(), "attempt starts",
            {{"job", start.id.job.value()}, {"attempt", start.id.attempt}, {"name", program.job}});
  health_.leave_burn_in();
  clocks_.want(start.id, start.launch.shares);
  const Result<KeeperLaunch> launch = keeper_launch(start, program, setup_.facts);
  if (!launch) return attempt.refuse(refusal_of(launch.error(), setup_.hooks.node));
  attempt.start(*launch);
}

Status NodeAttempts::prepare(const AttemptId& id, const KeeperLaunch& launch) {
  Storage& storage = real_.env().storage;
  const KeeperFiles files = directories_.files(id);
  directories_.note_started(id);
  for (const std::string& place : {setup_.directory, files.directory, files.run}) {
    if (auto made = storage.make_directories(place); !made) return forward_error(made);
    if (launch.user) make_searchable(place);  // Its processes have files of their own in it.
  }
  return write_keeper_launch(storage, files, launch);
}

void NodeAttempts::carry_out(const TellKeeper& tell, const NodeProgram* program) {
  const auto found = attempts_.find(tell.id);
  if (found == attempts_.end()) return;  // That it is over is on its way to the agent.
  std::vector<GangLayout> gangs;
  if (const auto* launch = std::get_if<LaunchRanks>(&tell.order.what)) {
    clocks_.want(tell.id, launch->shares);
    if (program != nullptr) gangs = program->gangs;
  }
  found->second->carry_out(tell.order, gangs);
}

void NodeAttempts::answer(const AttemptLogQuestion& question) {
  const AskedLog asked{question.id, question.log, question.since};
  const auto found = attempts_.find(question.attempt);
  if (found != attempts_.end()) return found->second->ask(asked);
  const KeeperFiles files = directories_.files(question.attempt);
  answer_from_files({real_.env().storage, session_, question.attempt, files}, asked);
}

void NodeAttempts::send_notes() {
  for (const auto& [id, attempt] : attempts_) attempt->send_notes();
}

void NodeAttempts::correct_clocks() {
  for (const auto& [id, attempt] : attempts_) {
    if (attempt->correct_clocks()) agent_.keeper_report(attempt->report());
  }
  agent_.act();
}

KeeperHandle* NodeAttempts::living_keeper(const AttemptId& id) {
  const auto found = attempts_.find(id);
  return found == attempts_.end() ? nullptr : found->second->living_keeper();
}

// --- What attempts report -----------------------------------------------------------------------

void NodeAttempts::on_report(const AttemptReport& report) {
  agent_.keeper_report(report);
  agent_.act();
  end_if_clear();
}

void NodeAttempts::on_claim(const AttemptId& id, const std::string& evidence) {
  health_.note_claim(id, evidence);
}

/// Logs what a keeper that came to life wrote to its errors file, such as why it died.
void NodeAttempts::on_keeper_end(const AttemptId& id) {
  constexpr std::size_t kErrorsMax = std::size_t{1} << 16;
  constexpr std::size_t kShown = 2000;
  const std::string words =
      real_.env().storage.read_file(directories_.files(id).errors(), kErrorsMax).value_or("");
  if (words.empty()) return;
  log_.warning(
      wall(), "a keeper complained",
      {{"job", id.job.value()}, {"attempt", id.attempt}, {"words", printable(words, kShown)}});
}

void NodeAttempts::on_unstarted(const AttemptReport& report) {
  const AttemptId& id = report.token.id;
  log_.error(
      wall(), "attempt did not start",
      {{"job", id.job.value()}, {"attempt", id.attempt}, {"why", report.end->blame.evidence}});
}

void NodeAttempts::on_over(AttemptId id, const std::optional<AttemptReport>& unreported) {
  if (unreported) agent_.keeper_report(*unreported);
  log_.info(wall(), "attempt over", {{"job", id.job.value()}, {"attempt", id.attempt}});
  commands_.end(id, "the attempt has ended");
  attempts_.erase(id);
  clocks_.forget(id);
  (void)seal_if_over(directories_.files(id));
  directories_.note_ended(id, wall());
  agent_.keeper_exit(id);
  remove_old();
  health_.note_attempt_ended();
  end_if_clear();
  agent_.act();
}

// --- The end of work here -----------------------------------------------------------------------

void NodeAttempts::abandon(std::function<void()> clear) {
  clear_ = std::move(clear);
  for (const auto& [id, attempt] : attempts_) attempt->kill();
  end_if_clear();
}

void NodeAttempts::end_if_clear() {
  if (!clear_) return;
  const bool ended = std::ranges::all_of(
      attempts_, [](const auto& each) { return each.second->report().stage == RankStage::kGone; });
  if (!ended) return;
  for (const auto& [id, attempt] : attempts_) attempt->release();
  std::exchange(clear_, nullptr)();
}

void NodeAttempts::remove_old() {
  if (removal_ || !directories_.remove_some(wall())) return;
  removal_ = real_.env().timers.call_after(Duration::milliseconds(1), [this] {
    removal_.reset();
    remove_old();
  });
}

}  // namespace orrery

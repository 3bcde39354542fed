#include "node/attempts/node_attempt.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/text/utf8.hpp"
#include "node/keeper/exit_cause.hpp"

namespace orrery {
namespace {

/// A failure to start the keeper is the node's fault, unless its text names a disk fault.
AttemptEnd fault_of_start(const std::string& why) {
  Blame blame = exit_cause(1, why);
  if (blame.layer == FaultLayer::kProgram) blame.layer = FaultLayer::kHost;
  blame.evidence = fmt::format("the keeper of its ranks did not start: {}", why);
  return {ExitKind::kInfra, std::move(blame)};
}

}  // namespace

NodeAttempt::NodeAttempt(const Setup& setup, AttemptEvents& events, const AttemptId& id,
                         const KeeperFiles& files)
    : events_(events),
      session_(setup.session),
      commands_(setup.commands),
      id_(id),
      keeper_(setup.make_keeper(*this, id, files)),
      logs_({setup.real.env().storage, setup.session, id, files}, *keeper_),
      hooks_(setup.real, setup.hooks) {}

// --- The beginning ------------------------------------------------------------------------------

void NodeAttempt::note_order(const FenceToken& token, const OrderStamp& stamp) {
  report_.token = token;
  report_.applied = stamp;
}

void NodeAttempt::adopt(const std::optional<KeeperLaunch>& launch) {
  keeper_->adopt();
  if (launch) hooks_.note_launch(id_, *launch);
}

void NodeAttempt::start(const KeeperLaunch& launch) {
  hooks_.note_launch(id_, launch);
  if (!hooks_.run_prologue([this](const std::string& failure) { end_prologue(failure); })) {
    return start_keeper(launch);
  }
  launch_ = launch;
}

void NodeAttempt::end_prologue(const std::string& failure) {
  const KeeperLaunch launch = *std::exchange(launch_, std::nullopt);
  if (failure.empty()) {
    events_.on_prologue_passed();
    return start_keeper(launch);
  }
  const std::string evidence = fmt::format("the prologue failed: {}", failure);
  // Before the report of the attempt, so that the job goes elsewhere.
  events_.on_hook_failed(evidence);
  end_unstarted({ExitKind::kInfra, {.layer = FaultLayer::kHost, .evidence = evidence}},
                Epilogue::kNone);
}

void NodeAttempt::start_keeper(const KeeperLaunch& launch) {
  Status started = events_.prepare(id_, launch);
  if (started) started = keeper_->start();
  if (!started) end_unstarted(fault_of_start(started.error().message), Epilogue::kDue);
}

void NodeAttempt::end_unstarted(AttemptEnd end, Epilogue epilogue) {
  if (end.kind == ExitKind::kInfra) end.blame.node = session_.node();
  report_.stage = RankStage::kGone;
  report_.end = std::move(end);
  logs_.on_keeper_gone();
  over_ = true;
  events_.on_unstarted(report_);
  if (epilogue == Epilogue::kNone || !begin_epilogue()) finish(report_);
}

// --- Orders -------------------------------------------------------------------------------------

void NodeAttempt::carry_out(const KeeperOrder& order, const std::vector<GangLayout>& gangs) {
  if (std::holds_alternative<ReleaseKeeper>(order.what)) return logs_.keep_then_release();
  const bool ends =
      std::holds_alternative<EndRanks>(order.what) || std::holds_alternative<KillRanks>(order.what);
  if (ends && hooks_.step() == AttemptHooks::Step::kPrologue) {
    hooks_.stop();
    report_.stage = RankStage::kGone;
    report_.applied = order.stamp;
    logs_.on_keeper_gone();
    return events_.on_over(id_, report_);
  }
  keeper_->tell(AgentOrder{order, gangs});
}

void NodeAttempt::kill() {
  if (report_.stage == RankStage::kGone) return;
  keeper_->tell(AgentOrder{{report_.applied, KillRanks{report_.token}}, {}});
}

void NodeAttempt::release() { keeper_->tell(AgentOrder{{report_.applied, ReleaseKeeper{}}, {}}); }

// --- What the keeper says -----------------------------------------------------------------------

void NodeAttempt::on_status(const AttemptId&, const KeeperStatus& status) {
  report_ = status.report;
  events_.add_clocks(report_);
  std::optional<AttemptEnd>& end = report_.end;
  if (end && end->kind != ExitKind::kDone) end->blame.node = session_.node();
  note({id_, status.progress, status.notes, notes_.paces});
  if (report_.stage == RankStage::kGone && begin_epilogue()) return;
  if (hooks_.step() != AttemptHooks::Step::kEpilogue) events_.on_report(report_);
}

void NodeAttempt::on_paces(const AttemptId&, const RankPaces& paces) {
  note({id_, notes_.progress, notes_.notes, paces.paces});
}

/// Sends notes only when they changed: most small jobs have none.
void NodeAttempt::note(AttemptNotes notes) {
  notes_.attempt = id_;
  if (notes == notes_) return;
  notes_ = std::move(notes);
  session_.send(notes_);
}

void NodeAttempt::send_notes() {
  if (notes_.attempt == id_) session_.send(notes_);
}

void NodeAttempt::on_wrong(const AttemptId&, const WrongResults& wrong) {
  constexpr std::size_t kEvidenceMax = 200;
  if (std::exchange(claimed_, true)) return;
  events_.on_claim(id_, fmt::format("job {} says that it computes wrong results here: {}",
                                    id_.job.value(), printable(wrong.evidence, kEvidenceMax)));
}

bool NodeAttempt::correct_clocks() {
  // Before a keeper's first report there is nothing to correct, and after its end nothing runs.
  const bool runs = hooks_.step() == AttemptHooks::Step::kRanks &&
                    report_.stage > RankStage::kUnknown && report_.stage < RankStage::kGone;
  if (!runs) return false;
  const std::vector<double> before = report_.clocks;
  events_.add_clocks(report_);
  return report_.clocks != before;
}

void NodeAttempt::on_tail(const AttemptId&, const LogTail& tail) { logs_.on_tail(tail); }

void NodeAttempt::on_command_output(const ExecOutput& output) { commands_.output(output); }

void NodeAttempt::on_command_end(const ExecEnd& end) { commands_.end(end); }

void NodeAttempt::on_break(const AttemptId&) {
  logs_.on_break();
  commands_.end(id_, "the keeper of its ranks was lost");
}

// --- The end ------------------------------------------------------------------------------------

void NodeAttempt::on_over(const AttemptId&, const std::string& failure) {
  if (!failure.empty()) return end_unstarted(fault_of_start(failure), Epilogue::kDue);
  events_.on_keeper_end(id_);
  over_ = true;
  logs_.on_keeper_gone();
  if (!begin_epilogue() && hooks_.step() != AttemptHooks::Step::kEpilogue) finish(std::nullopt);
}

bool NodeAttempt::begin_epilogue() {
  return hooks_.run_epilogue([this](const std::string& failure) { end_epilogue(failure); });
}

void NodeAttempt::end_epilogue(const std::string& failure) {
  if (!failure.empty()) events_.on_hook_failed(fmt::format("the epilogue failed: {}", failure));
  const bool gone = report_.stage == RankStage::kGone;
  if (over_) return finish(gone ? std::optional(report_) : std::nullopt);
  if (gone) events_.on_report(report_);
}

void NodeAttempt::finish(const std::optional<AttemptReport>& unreported) {
  logs_.on_over();
  events_.on_over(id_, unreported);
}

}  // namespace orrery

// Reports of executors and agents that contradict what is known. Control believes what only they
// can know (that ranks of the present attempt are up, have ended or are gone); no false report here
// concerns that.
#include <limits>

#include "twin/protocol/protocol_world.hpp"

namespace orrery {

InputKind ProtocolWorld::draw_contradiction(const Job& job) {
  const NodeId nowhere = NodeId::at(nodes_.size() + rng_.below(9));
  const std::uint32_t never = job.attempt + 1 + static_cast<std::uint32_t>(rng_.below(3));
  const JobId unknown = JobId::at(state().jobs() + rng_.below(9));
  switch (rng_.below(9)) {
    case 0:
      return RanksUp{job.id, never, 0};
    case 1:
      return RanksUp{job.id, job.attempt, job.epoch + 1};
    case 2:
      return RanksEnded{job.id, never, ExitKind::kDone, {}, {1, {}, {}, {}}, true};
    case 3:  // of before this attempt, or of none
      return RanksEnded{job.id, std::max(job.attempt, 1U) - 1, ExitKind::kProgram};
    case 4:
      return RanksEnded{unknown, 1, ExitKind::kDone, {}, {}, true};
    case 5:
      return RanksGone{job.id, job.attempt, {nowhere}, Progress{.done = 1}};
    case 6:
      return RanksGone{job.id, never, {}, Progress{.done = -1}};
    case 7:
      return WorkReported{job.id, never, {0.5, {}, {}, {}}};
    default:
      return NodeFault{nowhere, FaultLayer::kHost, "of another cluster", true, true};
  }
}

void ProtocolWorld::contradict() {
  if (!controller_ || state().jobs() == 0) return;
  const Job& job = state().job(JobId::at(rng_.below(state().jobs())));
  const InputKind lie = draw_contradiction(job);
  const std::uint64_t term = controllers_;
  const std::uint64_t before = appended_;
  const std::size_t heard = heard_.size();
  handle({time_.now(), lie, {}}, [this](const Answer& answer) {
    if (answer.status) wrong("what cannot be was believed");
  });
  heard_.resize(heard);  // an impossible report may become true later, so it is not repeated
  if (controller_ && controllers_ == term && appended_ != before) {
    wrong("something came of what cannot be");
  }
}

void ProtocolWorld::mislead() {
  if (reports_.empty()) return;
  Report report = reports_[rng_.below(reports_.size())];
  auto* state = std::get_if<AttemptReport>(&report.what);
  if (state == nullptr || state->stage > RankStage::kRunning) return;
  switch (rng_.below(4)) {
    case 0:
      state->token.id.attempt += 1 + static_cast<std::uint32_t>(rng_.below(2));
      break;
    case 1:
      state->token.id.job = JobId::at(rng_.below(clients_.size() + 3));
      break;
    case 2:
      state->token.epoch += 1 + static_cast<std::uint32_t>(rng_.below(3));
      break;
    default:
      state->progress.done = rng_.below(2) == 0 ? -1 : std::numeric_limits<double>::quiet_NaN();
      state->clocks.assign(64, 0.5);
      break;
  }
  deliver(report);
}

}  // namespace orrery

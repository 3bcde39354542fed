#include "twin/protocol/protocol_reports.hpp"

#include <algorithm>
#include <limits>

namespace orrery {
namespace {

constexpr std::size_t kRemembered = 64;

}  // namespace

void ProtocolReports::remember(const Report& report) {
  if (reports_.size() < kRemembered) {
    reports_.push_back(report);
  } else {
    reports_[context_.rng().below(kRemembered)] = report;
  }
}

void ProtocolReports::remember(const InputKind& what) {
  const bool of_ranks = std::holds_alternative<RanksUp>(what) ||
                        std::holds_alternative<RanksEnded>(what) ||
                        std::holds_alternative<RanksGone>(what);
  if (of_ranks) inputs_.push_back(what);
}

std::optional<Report> ProtocolReports::draw_report() {
  if (reports_.empty()) return std::nullopt;
  return reports_[context_.rng().below(reports_.size())];
}

std::optional<InputKind> ProtocolReports::draw_input() {
  if (inputs_.empty()) return std::nullopt;
  return inputs_[context_.rng().below(inputs_.size())];
}

InputKind ProtocolReports::draw_contradiction(const State& state) {
  Rng& rng = context_.rng();
  const Job& job = state.job(JobId::at(rng.below(state.jobs())));
  const NodeId nowhere = NodeId::at(state.setup().topology->node_count() + rng.below(9));
  const std::uint32_t never = job.attempt + 1 + static_cast<std::uint32_t>(rng.below(3));
  const JobId unknown = JobId::at(state.jobs() + rng.below(9));
  switch (rng.below(9)) {
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

std::optional<Report> ProtocolReports::draw_misleading(std::size_t jobs) {
  std::optional<Report> report = draw_report();
  if (!report) return std::nullopt;
  auto* state = std::get_if<AttemptReport>(&report->what);
  if (state == nullptr || state->stage > RankStage::kRunning) return std::nullopt;
  Rng& rng = context_.rng();
  switch (rng.below(4)) {
    case 0:
      state->token.id.attempt += 1 + static_cast<std::uint32_t>(rng.below(2));
      break;
    case 1:
      state->token.id.job = JobId::at(rng.below(jobs));
      break;
    case 2:
      state->token.epoch += 1 + static_cast<std::uint32_t>(rng.below(3));
      break;
    default:
      state->progress.done = rng.below(2) == 0 ? -1 : std::numeric_limits<double>::quiet_NaN();
      state->clocks.assign(64, 0.5);
      break;
  }
  return report;
}

}  // namespace orrery

#include "planner/run_estimate.hpp"

#include <fmt/format.h>

#include "perf/machine/measured_parts.hpp"
#include "perf/training/training_estimate.hpp"
#include "planner/plan_space.hpp"
#include "planner/search.hpp"

namespace orrery {
namespace {

/// Fraction of its width by which an interval grows for every doubt.
constexpr double kDoubt = 0.25;

PlanSpace space_of_run(const TrainingRun& run, const RunQuestion& question) {
  PlanSpace space = space_of(question.machine);
  const StatedPlan& stated = run.plan;
  space.tp = stated.tp;
  space.pp = stated.pp;
  space.vpp = stated.vpp;
  space.dp = stated.dp;
  space.cp = stated.cp.value_or(1);
  space.ep = stated.ep;
  if (stated.zero && *stated.zero > 0) space.zero = *stated.zero;
  if (stated.shard) space.shard = *stated.shard;
  if (run.micro_batch) space.micro_batch = static_cast<std::uint32_t>(*run.micro_batch);
  if (run.recompute.mode) space.recompute = *run.recompute.mode;
  if (stated.sequence_parallel == SequenceParallel::kOn) {
    space.sequence_parallel = SequenceParallel::kOn;
  }
  return space;
}

/// The fastest plan that agrees with what the row states; where none fits the memory, the one that
/// comes closest.
Status fill_layout(const TrainingRun& run, const TrainingModel& model, RunQuestion& question) {
  const SearchResult found = search(model, space_of_run(run, question), {.best = 1});
  if (!found.best.empty()) {
    question.plan = found.best.front().plan;
  } else if (found.nearest) {
    question.plan = found.nearest->plan;
  } else if (found.first_refusal) {
    return tl::unexpected<Error>(*found.first_refusal);
  } else {
    return infeasible("no layout matches the figures of the row");
  }
  return {};
}

Status at_row(Error error, const TrainingRun& run) {
  if (error.where.file.empty()) error.where = run.where;
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace

Interval interval_of(const Calibration& calibration, const std::string& kind, double seconds,
                     std::size_t doubts) {
  const ResidualKind residual = calibration.residual_of({kind, "training"});
  const double wider = 1 + kDoubt * static_cast<double>(doubts);
  const double low = 1 - (1 - residual.low) * wider;
  return {.low = seconds * (low > 0.05 ? low : 0.05),
          .high = seconds * (1 + (residual.high - 1) * wider)};
}

Interval interval_on(const Calibration& calibration, const Accelerator& accelerator,
                     const std::string& kind, double seconds) {
  switch (training_evidence(accelerator)) {
    case RunEvidence::kMeasured:
      return interval_of(calibration, kind, seconds, 0);
    case RunEvidence::kFew:
    case RunEvidence::kGeneration:
      return interval_of(calibration, kind, seconds, 2);
    case RunEvidence::kNone:
      break;
  }
  const ResidualKind unknown = Calibration::unknown_kind();
  return {.low = seconds * unknown.low, .high = seconds * unknown.high};
}

Result<TrainingEstimate> estimate(const TrainingRun& run, const Catalog& catalog,
                                  const Calibration& calibration) {
  Result<RunQuestion> question = question_of(run, catalog);
  if (!question) return forward_error(question);
  Result<TrainingModel> model = TrainingModel::make(question->job, question->machine, calibration);
  if (!model) return forward_error(model);
  TrainingEstimate result{.warnings = run.warnings};
  if (!question->batch_known) {
    result.warnings.push_back(fmt::format("the batch is not stated; {} sequences are assumed",
                                          question->job.global_batch));
  }
  if (question->layout_open) {
    if (Status filled = fill_layout(run, *model, *question); !filled) {
      Status failed = at_row(filled.error(), run);
      return forward_error(failed);
    }
    result.warnings.push_back(
        "the layout is not stated completely; the planner's best layout is used");
  } else {
    close_recompute(*question, *model);
  }
  if (Status valid = model->check(question->plan); !valid) {
    Status failed = at_row(valid.error(), run);
    return forward_error(failed);
  }
  result.plan = question->plan;
  result.cost = model->evaluate(question->plan);
  result.cost.memory = memory_of(*question, *model);
  result.mfu = model->utilisation(result.cost.seconds);
  result.flops = model->model_flops() / (result.cost.seconds * static_cast<double>(run.count));
  result.fits = model->fits(result.cost.memory);
  const Interval interval = interval_of(calibration, kind_of_question(*question),
                                        result.cost.seconds, result.warnings.size());
  result.seconds_low = interval.low;
  result.seconds_high = interval.high;
  return result;
}

}  // namespace orrery

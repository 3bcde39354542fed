#include "verbs/plan/planned_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/format/document.hpp"
#include "planner/launch/layout_text.hpp"
#include "verbs/local/local_plan.hpp"
#include "workload/job_spec.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShown = 3;

/// The training spec that a job's command names.
Result<std::string> training_of(const JobSpec& job) {
  const bool trains = job.launch && job.launch->command.size() >= 2 &&
                      fs::path(job.launch->command[0]).filename() == "orrery-train" &&
                      !job.launch->command[1].starts_with('-');
  if (!trains) {
    return input_error(
        job.launch ? job.launch->where : job.where,
        "only a job of orrery-train can be planned: expected launch.command: [orrery-train, SPEC]");
  }
  return (fs::path(job.launch->directory) / job.launch->command[1]).string();
}

Result<RoleSpec*> role_of(JobSpec& job) {
  if (job.roles.size() != 1) {
    return input_error(job.where, fmt::format("only a job with one role can be planned, found {}",
                                              job.roles.size()));
  }
  RoleSpec& role = job.roles.front();
  if (role.layout) {
    return input_error(role.layout->where, "expected no layout in a job that is to be planned");
  }
  if (!role.accelerators && !role.accelerators_max) {
    return input_error(role.where, "expected accelerators, or accelerators_min and _max");
  }
  return &role;
}

}  // namespace

Result<PlannedJob> plan_job(const CommandOptions& options, const JobFile& job,
                            const std::string& calibration) {
  const Result<Document> document = Document::parse(job.text, job.name);
  if (!document) return tl::unexpected(document.error());
  Result<JobSpec> spec = read_job_spec(*document);
  if (!spec) return forward_error(spec);
  Result<RoleSpec*> role = role_of(*spec);
  if (!role) return forward_error(role);
  Result<std::string> training = training_of(*spec);
  if (!training) return forward_error(training);
  Result<LocalPlan> plan =
      read_local_plan(options, {.training = *training, .calibration = calibration});
  if (!plan) return forward_error(plan);
  const std::uint32_t ranks =
      (*role)->accelerators ? *(*role)->accelerators : *(*role)->accelerators_max;
  Result<std::vector<PlannedStep>> steps = plan_local_steps(*plan, {ranks, ranks});
  if (!steps) return forward_error(steps);
  const PlannedStep chosen = best_of(*steps);
  const ParallelPlan planned = parallel_plan(chosen.step.layout);
  ParallelPlan best = planned;
  best.dp = 1;
  (*role)->layout = LayoutSpec{best, {}};
  if ((*role)->accelerators_min) {
    const auto replica = static_cast<std::uint32_t>(best.ranks());
    *(*role)->accelerators_min = (*(*role)->accelerators_min + replica - 1) / replica * replica;
  }
  if (steps->size() > kShown) steps->resize(kShown);
  const bool shown = std::ranges::any_of(
      *steps, [&](const PlannedStep& each) { return parallel_plan(each.step.layout) == planned; });
  if (!shown) steps->push_back(chosen);
  std::string why = plan->doubt.empty() ? "" : fmt::format("orrery: {}\n", plan->doubt);
  why += local_plan_text(*plan, *steps);
  why += fmt::format("planned: {} ranks, {}: {:.1f} ms per step\n", ranks, print_layout(planned),
                     1000 * chosen.step.seconds);
  return PlannedJob{write_job_spec(*spec), std::move(why)};
}

}  // namespace orrery

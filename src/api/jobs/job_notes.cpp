#include "api/jobs/job_notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "agent/launch_plan.hpp"
#include "scheduler/price/slowed_text.hpp"
#include "scheduler/tenants/slack.hpp"

namespace orrery {
namespace {

/// Describes whether a job that has not ended is expected to meet its deadline.
std::optional<std::string> deadline_note(const Controller& controller, const Job& job) {
  const State& state = controller.state();
  if (job.submission == nullptr || ended(job.phase)) return std::nullopt;
  const std::optional<Instant> deadline = job.submission->request.deadline;
  if (!deadline) return std::nullopt;
  const Instant now = controller.now();
  if (now > *deadline) return fmt::format("its deadline was {} ago", (now - *deadline).text());
  if (holds_devices(job.phase)) {
    const Instant end = state.running(job.id).expected_end;
    if (end == Instant::max()) return std::nullopt;
    if (end <= *deadline) return "it is expected to meet its deadline, at " + end.text();
    return fmt::format("it is expected to be {} late, at {}", (end - *deadline).text(), end.text());
  }
  const WaitingJob waiting{job.id, &job.submission->request, job.submitted, job.done, 0};
  const std::optional<Slack> slack = slack_of(waiting, state.policy(), state.situation(now));
  return slack ? std::optional(slack_text(*slack)) : std::nullopt;
}

/// Returns notes such as "rank 5 on node-3 is slow: it computes 1.43 s in a step, the median of the
/// ranks is 1 s".
std::vector<std::string> straggler_notes(const Controller& controller, const Job& job) {
  constexpr std::size_t kNamed = 8;
  const State& state = controller.state();
  std::vector<std::string> notes;
  if (!holds_devices(job.phase)) return notes;
  std::vector<NodePaces> paces = controller.agents().paces_of({job.id, job.attempt});
  if (paces.empty()) return notes;
  // Nodes that left the job with an earlier epoch are left out.
  const LaunchPlan plan = launch_plan(state, job.id);
  std::erase_if(paces, [&](const NodePaces& of) {
    return std::none_of(plan.nodes.begin(), plan.nodes.end(),
                        [&](const NodeRanks& node) { return node.node == of.node; });
  });
  const std::vector<Straggler> slow = find_stragglers(paces);
  notes.reserve(kNamed);
  for (const Straggler& each : slow) {
    if (notes.size() == kNamed) break;
    notes.push_back(
        fmt::format("rank {} on {} is slow: it computes for {} per step, the median rank for {}",
                    each.pace.rank, state.setup().topology->node_name(each.node),
                    Duration::from_seconds(each.pace.seconds).text(),
                    Duration::from_seconds(each.usual).text()));
  }
  return notes;
}

}  // namespace

std::string slowed_note(const Controller& controller, const Job& job) {
  if (!holds_devices(job.phase)) return {};
  const State& state = controller.state();
  return slowed_text(state.situation(controller.now()), state.running(job.id));
}

std::vector<std::string> job_notes(const Controller& controller, const Job& job) {
  std::vector<std::string> notes;
  if (std::optional<std::string> note = deadline_note(controller, job)) {
    notes.push_back(*std::move(note));
  }
  for (std::string& note : straggler_notes(controller, job)) notes.push_back(std::move(note));
  if (std::string note = slowed_note(controller, job); !note.empty()) {
    notes.push_back(std::move(note));
  }
  return notes;
}

}  // namespace orrery

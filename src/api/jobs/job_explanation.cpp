#include "api/jobs/job_explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/access/visibility.hpp"
#include "api/hold_service.hpp"
#include "api/jobs/job_notes.hpp"
#include "api/orrery_service.hpp"
#include "api/views.hpp"
#include "base/text/terminal_text.hpp"
#include "executor/holds/hold_wait.hpp"
#include "scheduler/explain/explain.hpp"

namespace orrery {
namespace {

using CallPtr = std::shared_ptr<Call>;

/// The jobs that an explanation may name, as the caller knows them: itself, those that run, and
/// those with a reservation.
class KnownNames {
 public:
  KnownNames(const State& state, JobId job, const Visibility& sees) {
    const std::span<const RunningJob> running = state.running();
    const std::span<const Reservation> reserved = state.situation(state.now()).reserved;
    names_.reserve(1 + running.size() + reserved.size());
    names_.emplace_back(job, sees.job_text(job));
    for (const RunningJob& each : running) names_.emplace_back(each.id, sees.job_text(each.id));
    for (const Reservation& each : reserved) names_.emplace_back(each.job, sees.job_text(each.job));
    std::ranges::sort(names_);
  }

  [[nodiscard]] std::string of(JobId job) const {
    const auto found = std::ranges::lower_bound(names_, job, {}, &Name::first);
    if (found != names_.end() && found->first == job) return found->second;
    return "another job";
  }

 private:
  using Name = std::pair<JobId, std::string>;
  std::vector<Name> names_;  ///< ascending
};

/// What an explanation says beside the scheduler's own.
struct Beside {
  KnownNames names;
  std::optional<std::string> never;
  std::string out_of_service;
  std::string holds;              ///< see waiting_holds_text()
  std::vector<LikelyStart> lent;  ///< see lent_starts()
};

/// A job that has no room starts with a hold if that comes before room is made.
void use_lent_starts(const std::vector<LikelyStart>& lent, Explanation& found) {
  const bool has_no_room = found.refusal && found.refusal->kind == RejectionKind::kBusy;
  if (!has_no_room || lent.empty()) return;
  const LikelyStart& start = lent[std::min<std::size_t>(found.ahead, lent.size() - 1)];
  if (!found.when || start.median < found.when->median) found.when = start;
}

v1::Explanation explained(const HeldSituation& held, JobId job, const Beside& beside) {
  const ExplainNames names{[&beside](JobId other) { return beside.names.of(other); }};
  Explanation found = explain(held.situation(), held.policy(), job, names);
  use_lent_starts(beside.lent, found);
  if (beside.never) found.set_never(*beside.never);
  std::string text = found.text();
  if (!beside.out_of_service.empty()) {
    text += fmt::format("  not there   {}\n", beside.out_of_service);
  }
  if (!beside.holds.empty()) text += fmt::format("  lent        {}\n", beside.holds);
  v1::Explanation view;
  view.set_id(job.value());
  view.set_text(std::move(text));
  return view;
}

/// The explanation of a job that is not queued: what it does.
v1::Explanation described(const Controller& controller, JobId id) {
  const Job& job = controller.state().job(id);
  const v1::Job shown = job_view(controller, id, JobDetail::kRow);
  std::string text = fmt::format("Job {} ({}) is {}", id.value(), job.name, shown.phase());
  if (!shown.waiting().empty()) text += ": it " + shown.waiting();
  const std::string slowed = slowed_note(controller, job);
  if (!slowed.empty()) text += ": it " + slowed;
  const bool has_reason = !shown.reason().empty() && shown.reason() != shown.phase();
  if (has_reason) text += ", its last attempt stopped: " + shown.reason();
  if (!shown.blame().empty()) text += " (" + shown.blame() + ")";
  v1::Explanation view;
  view.set_id(id.value());
  view.set_text(terminal_text(text, Newlines::kEscaped) + ".\n");
  return view;
}

void answer(Controller& controller, const CallPtr& call, v1::Explanation view) {
  controller.after_durable([call, view = std::move(view)] { call->reply(view); });
}

std::vector<LikelyStart> starts_in_holds(const Controller& controller, JobId job) {
  const HoldLink* link = controller.holds().link();
  if (link == nullptr) return {};
  return lent_starts(*link, controller.state(), job, controller.now());
}

/// Prepares the explanation of a queued job; one that meanwhile left the queue is answered at once.
SideReads::Read prepare(Controller& controller, JobId job, const CallPtr& call) {
  if (!call->wanted() || !find_job(controller, job.value(), *call)) return {};
  const State& state = controller.state();
  if (state.job(job).phase != JobPhase::kQueued) {
    answer(controller, call, described(controller, job));
    return {};
  }
  const Visibility sees(state, call->caller());
  auto beside = std::make_shared<const Beside>(
      Beside{KnownNames(state, job, sees), controller.fleet().why_never(job),
             out_of_service_text(state, state.job(job).submission->request, sees),
             waiting_holds_text(controller, job), starts_in_holds(controller, job)});
  return [&controller, job, call, beside](const HeldSituation& held) -> SideReads::Finish {
    return [&controller, call, view = explained(held, job, *beside)] {
      answer(controller, call, view);
    };
  };
}

}  // namespace

void begin_explanation(Controller& controller, JobId job, const CallPtr& call) {
  if (controller.state().job(job).phase != JobPhase::kQueued) {
    return answer(controller, call, described(controller, job));
  }
  const bool taken =
      controller.reads().add([&controller, job, call] { return prepare(controller, job, call); });
  if (!taken) call->finish({CallCode::kUnavailable, "too many explanations wait"});
}

}  // namespace orrery

#include "verbs/plan/plan_answer.hpp"

#include "planner/launch/layout_text.hpp"
#include "planner/sensitivity.hpp"
#include "verbs/output_file.hpp"
#include "verbs/plan/plan_html.hpp"
#include "verbs/plan/plan_json.hpp"
#include "verbs/plan/plan_text.hpp"

namespace orrery {
namespace {

Result<VerbAnswer> launch_of(const PlanRequest& request, const PlanAnswer& answer,
                             Launcher launcher) {
  const PlanOffer& best = answer.plans.front();
  const Machine& machine = request.question.machines[best.machine].machine;
  Result<std::string> text = launch_text(
      {request.question.job, best.plan, machine, best.quote.run_steps.value_or(1)}, launcher);
  if (!text) return forward_error(text);
  Json json = {
      {"launcher", word_of(launcher)}, {"layout", print_layout(best.plan)}, {"text", *text}};
  return VerbAnswer{*std::move(text), std::move(json), TextKind::kBytes};
}

Result<VerbAnswer> plans_of(const PlanRequest& request, const PlanAnswer& answer,
                            Sensitive sensitivity) {
  VerbAnswer shown{answer_text(answer, request), answer_json(answer, request)};
  if (sensitivity == Sensitive::kNo) return shown;
  const Result<std::vector<Sensitivity>> changes =
      sensitivities(request.facts(), request.question, answer.plans.front().machine);
  if (!changes) return tl::unexpected(changes.error());
  if (!changes->empty()) shown.text += sensitivity_text(*changes);
  shown.json["sensitivity"] = sensitivity_json(*changes);
  return shown;
}

}  // namespace

Result<VerbAnswer> report_plan(const CommandOptions& options, const PlanCall& call) {
  Result<PlanRequest> request = plan_request(options, call.options);
  if (!request) return forward_error(request);
  if (call.emit && call.options.layout.runtime.empty()) {
    request->question.space.abilities = abilities_of(*call.emit);
  }
  request->question.progress = call.progress;
  const Result<PlanAnswer> answer = plan(request->facts(), request->question);
  if (!answer) return tl::unexpected(answer.error());
  request->question.progress = {};
  if (!call.html.empty()) {
    if (Status done = write_output_file(call.html, answer_html(*answer, *request)); !done) {
      return forward_error(done);
    }
  }
  if (call.emit) return launch_of(*request, *answer, *call.emit);
  return plans_of(*request, *answer, call.sensitivity);
}

}  // namespace orrery

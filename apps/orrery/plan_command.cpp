// orrery plan
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output_file.hpp"
#include "apps/orrery/plan_html.hpp"
#include "apps/orrery/plan_json.hpp"
#include "apps/orrery/plan_options.hpp"
#include "apps/orrery/plan_text.hpp"
#include "apps/orrery/serve_command.hpp"
#include "base/quantity_text.hpp"
#include "base/real_clock.hpp"
#include "planner/launch_flags.hpp"
#include "planner/layout_text.hpp"

namespace orrery {
namespace {

enum class Sensitive { kNo, kYes };

struct PlanCall {
  PlanOptions options;
  std::string html;
  std::optional<Launcher> emit;
  Sensitive sensitivity = Sensitive::kNo;
  ServeChoice serve;
};

/// Counts on a terminal's last line, after the first second and then a few times a second.
class Progress {
 public:
  Progress() : begin_(clock_.now_monotonic()), shown_(begin_) {}
  ~Progress() {
    if (shown_ != begin_) print_message("\n");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const SearchCounters& counters) {
    const Instant now = clock_.now_monotonic();
    if ((now - begin_).count_seconds() < 1 || (now - shown_).count_seconds() < kPause) return;
    shown_ = now;
    print_progress(fmt::format("\r{} layouts, {} priced",
                               print_count(static_cast<double>(counters.enumerated)),
                               print_count(static_cast<double>(counters.evaluated))));
  }

 private:
  static constexpr double kPause = 0.2;
  RealClock clock_;
  Instant begin_;
  Instant shown_;
};

Result<PlanAnswer> answer_of(PlanRequest& request) {
  if (isatty(STDERR_FILENO) == 0) return plan(request.facts(), request.question);
  Progress progress;
  request.question.progress = [&](const SearchCounters& counters) { progress.show(counters); };
  Result<PlanAnswer> answer = plan(request.facts(), request.question);
  request.question.progress = {};
  return answer;
}

Status emit(OutputFormat format, const PlanRequest& request, const PlanAnswer& answer,
            Launcher launcher) {
  const PlanOffer& best = answer.plans.front();
  const Machine& machine = request.question.machines[best.machine].machine;
  Result<std::string> text = launch_text(
      {request.question.job, best.plan, machine, best.quote.run_steps.value_or(1)}, launcher);
  if (!text) return forward_error(text);
  if (format == OutputFormat::kJson) {
    print_json(
        {{"launcher", word_of(launcher)}, {"layout", print_layout(best.plan)}, {"text", *text}});
  } else {
    print_bytes(*text);
  }
  return {};
}

Status report(const CommandOptions& options, const PlanCall& call, const PlanRequest& request,
              const PlanAnswer& answer) {
  std::vector<Sensitivity> changes;
  if (call.sensitivity == Sensitive::kYes) {
    Result<std::vector<Sensitivity>> found =
        sensitivities(request.facts(), request.question, answer.plans.front().machine);
    if (!found) return forward_error(found);
    changes = *std::move(found);
  }
  if (options.output == OutputFormat::kJson) {
    Json json = answer_json(answer, request);
    if (call.sensitivity == Sensitive::kYes) json["sensitivity"] = sensitivity_json(changes);
    print_json(json);
    return {};
  }
  print_text(answer_text(answer, request));
  if (!changes.empty()) print_text(sensitivity_text(changes));
  return {};
}

Status run_plan(const CommandOptions& options, const PlanCall& call) {
  Result<PlanRequest> request = plan_request(options, call.options);
  if (!request) return forward_error(request);
  if (call.emit && call.options.runtime.empty()) {
    request->question.space.abilities = abilities_of(*call.emit);
  }
  Result<PlanAnswer> answer = answer_of(*request);
  if (!answer) return forward_error(answer);
  if (!call.html.empty()) {
    if (Status done = write_output_file(call.html, answer_html(*answer, *request)); !done) {
      return done;
    }
  }
  if (call.emit) return emit(options.output, *request, *answer, *call.emit);
  return report(options, call, *request, *answer);
}

}  // namespace

void add_plan_options(CLI::App& verb, PlanOptions& plan) {
  verb.add_option("--model", plan.model, "a catalog name, or the path of a config.json")
      ->required();
  verb.add_option("--accelerators", plan.accelerators, "TYPE:N[,TYPE:N..], such as h100:64");
  verb.add_option("--fleet", plan.fleet, "every type and size of a fleet spec")->type_name("FILE");
  verb.add_option("--seq", plan.sequence, "tokens of a sequence");
  verb.add_option("--global-batch", plan.global_batch, "sequences of a step");
  verb.add_option("--precision", plan.precision, "bf16, fp8, mxfp8, nvfp4, ...");
  verb.add_option("--task", plan.task, "pretrain, fine-tune or lora");
  verb.add_option("--attention", plan.attention, "flash or unfused");
  verb.add_option("--objective", plan.objective, "time, cost, energy or time-under-budget");
  verb.add_option("--budget", plan.budget, "dollars of the whole run");
  verb.add_option("--tokens", plan.tokens, "of the whole run, such as 15T");
  verb.add_option("--samples", plan.samples,
                  "of the whole run of a model of images or videos, such as 1.2M");
  verb.add_option(
      "--release", plan.release,
      "NeMo release that training is priced for, such as 26.04; none: unknown software");
  verb.add_option("--layout", plan.layout, "fixed dimensions: tp=8,pp=16,dp=128,..");
  verb.add_option("--runtime", plan.runtime, "what the program can do")->type_name("FILE");
  verb.add_option("--price", plan.price, "on-demand, spot, hyperscaler or owned");
  verb.add_option("--utilisation", plan.utilisation,
                  "part of its life in which an owned machine works");
  verb.add_option("--region", plan.region, "of the catalog's carbon and electricity tables");
  verb.add_option("--power-cap", plan.power_cap, "of each accelerator, such as \"500 W\"");
  verb.add_option("--storage", plan.storage, "that checkpoints go to, a catalog id");
  verb.add_option("--input-rate", plan.input_rate,
                  "at which training data is read, such as \"40 GB/s\"; none: it is always there");
}

void add_plan_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto call = std::make_shared<PlanCall>();
  CLI::App* verb = app.add_subcommand(
      "plan", "how to train (or --serve) a model on accelerators, and what it costs");
  add_plan_options(*verb, call->options);
  PlanOptions& plan = call->options;
  verb->add_option("--top", plan.top, "plans to list")->check(CLI::Range(1, 10'000));
  verb->add_flag_callback(
      "--exhaustive", [&plan] { plan.effort = Effort::kExhaustive; },
      "look at every layout; shown by the counts alone");
  verb->add_flag_callback(
      "--sensitivity", [call] { call->sensitivity = Sensitive::kYes; },
      "what one percent of each figure of the hardware is worth");
  verb->add_option("--html", call->html, "also write a report into this file")->type_name("FILE");
  verb->add_option_function<std::string>(
          "--emit",
          [call](const std::string& name) {
            for (const auto& entry : enum_words(Launcher{})) {
              if (entry.word == name) call->emit = entry.value;
            }
          },
          "print the best plan as flags of megatron, or configuration of deepspeed or fsdp")
      ->check(CLI::IsMember({"megatron", "deepspeed", "fsdp"}));
  add_serve_options(*verb, call->serve);
  verb->callback([&options, &chosen, call, verb] {
    ServeOptions& serve = call->serve.options;
    // The defaults of the options that training has too are not those of serving.
    if (verb->count("--precision") > 0) serve.precision = call->options.precision;
    if (verb->count("--objective") > 0) serve.objective = call->options.objective;
    chosen = [&options, call] {
      if (call->serve.wanted == Serving::kNo) return run_plan(options, *call);
      return run_serve(options, {call->options, call->serve.options});
    };
  });
}

}  // namespace orrery

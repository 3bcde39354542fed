// orrery plan
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "apps/orrery/plan_options.hpp"
#include "apps/orrery/serve_command.hpp"
#include "base/format/field_writer.hpp"
#include "base/system/real_clock.hpp"
#include "base/text/quantity_text.hpp"
#include "planner/launch/launch_flags.hpp"
#include "planner/launch/layout_text.hpp"
#include "verbs/output_file.hpp"
#include "verbs/plan/plan_html.hpp"
#include "verbs/plan/plan_json.hpp"
#include "verbs/plan/plan_text.hpp"

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
    print_progress(fmt::format("\r{} layouts, {} evaluated",
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
  verb.add_option("--model", plan.model, "catalog name of a model, or path of a config.json")
      ->required();
  verb.add_option("--accelerators", plan.accelerators,
                  "accelerators to use: TYPE:N[,TYPE:N..], such as h100:64");
  verb.add_option("--fleet", plan.fleet,
                  "fleet spec; every type and size of its accelerators is tried")
      ->type_name("FILE");
  verb.add_option("--seq", plan.sequence,
                  "tokens per sequence (default: 8192, at most the maximum of the model)");
  verb.add_option("--global-batch", plan.global_batch,
                  "sequences per step (default: 16 M tokens above 100 B parameters, else 4 M)");
  verb.add_option("--precision", plan.precision,
                  "number format: bf16, fp8, mxfp8, nvfp4, ... (default: bf16)");
  verb.add_option("--task", plan.task,
                  "training task: pretrain, fine-tune or lora (default: pretrain)");
  verb.add_option("--attention", plan.attention,
                  "attention kernel: flash or unfused (default: flash)");
  verb.add_option("--objective", plan.objective,
                  "figure to minimize: time, cost, energy or time-under-budget (default: time)");
  verb.add_option("--budget", plan.budget,
                  "budget of the whole run in dollars, for time-under-budget");
  verb.add_option("--tokens", plan.tokens, "tokens of the whole run, such as 15T");
  verb.add_option("--samples", plan.samples,
                  "samples of the whole run, for image and video models, such as 1.2M");
  verb.add_option("--release", plan.release,
                  "NeMo release of the training software, such as 26.04; none: unknown software");
  verb.add_option("--layout", plan.layout, "fixed dimensions of the layout: tp=8,pp=16,dp=128,..");
  verb.add_option("--runtime", plan.runtime, "capabilities of the training program (kind: Runtime)")
      ->type_name("FILE");
  verb.add_option("--price", plan.price, "price basis: on-demand, spot, hyperscaler or owned");
  verb.add_option("--utilisation", plan.utilisation,
                  "fraction of its life in which owned hardware is busy");
  verb.add_option("--region", plan.region, "region in the catalog's carbon and electricity tables");
  verb.add_option("--power-cap", plan.power_cap,
                  "power cap of each accelerator, such as \"500 W\"");
  verb.add_option("--storage", plan.storage, "storage for checkpoints, a catalog id");
  verb.add_option("--input-rate", plan.input_rate,
                  "read rate of training data, such as \"40 GB/s\"; none: reading takes no time");
}

void add_plan_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto call = std::make_shared<PlanCall>();
  CLI::App* verb = app.add_subcommand(
      "plan", "plan how to train (or --serve) a model on accelerators, with time, cost and energy");
  add_plan_options(*verb, call->options);
  PlanOptions& plan = call->options;
  verb->add_option("--top", plan.top, "number of plans to list (default: 5)")
      ->check(CLI::Range(1, 10'000));
  verb->add_flag_callback(
      "--exhaustive", [&plan] { plan.effort = Effort::kExhaustive; },
      "evaluate every layout, without pruning");
  verb->add_flag_callback(
      "--sensitivity", [call] { call->sensitivity = Sensitive::kYes; },
      "show the effect of a 1 % change of each hardware figure");
  verb->add_option("--html", call->html, "also write an HTML report to this file")
      ->type_name("FILE");
  verb->add_option_function<std::string>(
          "--emit",
          [call](const std::string& name) {
            for (const auto& entry : enum_words(Launcher{})) {
              if (entry.word == name) call->emit = entry.value;
            }
          },
          "print the best plan as megatron flags, or as a deepspeed or fsdp configuration")
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

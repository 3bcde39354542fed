// orrery plan
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "apps/orrery/plan_options.hpp"
#include "apps/orrery/serve_command.hpp"
#include "base/system/real_clock.hpp"
#include "base/text/quantity_text.hpp"
#include "verbs/plan/plan_answer.hpp"
#include "verbs/serve/serve_answer.hpp"

namespace orrery {
namespace {

struct PlanVerbOptions {
  PlanCall call;
  ServeChoice serve;
  std::string emit;
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

Result<VerbAnswer> report(const CommandOptions& options, PlanCall call) {
  if (isatty(STDERR_FILENO) == 0) return report_plan(options, call);
  Progress progress;
  call.progress = [&](const SearchCounters& counters) { progress.show(counters); };
  return report_plan(options, call);
}

/// Returns which of the programs is named; none: no name is given. Error: another one is.
template <class Program>
Result<std::optional<Program>> emitted(const std::string& name, std::string_view expected) {
  if (name.empty()) return std::nullopt;
  for (const auto& entry : enum_words(Program())) {
    if (entry.word == name) return entry.value;
  }
  return input_error({}, fmt::format("--emit {}: expected {}", name, expected));
}

Status run_plan(const CommandOptions& options, const PlanVerbOptions& asked) {
  PlanCall call = asked.call;
  const Result<std::optional<Launcher>> emit =
      emitted<Launcher>(asked.emit, "megatron, deepspeed or fsdp without --serve");
  if (!emit) return tl::unexpected(emit.error());
  call.emit = *emit;
  return print_answer(options, report(options, std::move(call)));
}

Status run_serve(const CommandOptions& options, const PlanVerbOptions& asked) {
  ServeOptions serve = asked.serve.options;
  const Result<std::optional<EngineName>> emit =
      emitted<EngineName>(asked.emit, "vllm, sglang, trtllm or llamacpp with --serve");
  if (!emit) return tl::unexpected(emit.error());
  serve.emit = *emit;
  return print_answer(options, report_serving(options, {asked.call.options, serve}));
}

}  // namespace

void add_plan_options(CLI::App& verb, PlanOptions& plan) {
  verb.add_option("--model", plan.model, "catalog name of a model, or path of a config.json")
      ->required();
  verb.add_option("--accelerators", plan.machines.accelerators,
                  "accelerators to use: TYPE:N[,TYPE:N..], such as h100:64");
  verb.add_option("--fleet", plan.machines.fleet,
                  "fleet spec; every type and size of its accelerators is tried")
      ->type_name("FILE");
  verb.add_option("--seq", plan.training.sequence,
                  "tokens per sequence (default: 8192, at most the maximum of the model)");
  verb.add_option("--global-batch", plan.training.global_batch,
                  "sequences per step (default: 16 M tokens above 100 B parameters, else 4 M)");
  verb.add_option("--precision", plan.training.precision,
                  "number format: bf16, fp8, mxfp8, nvfp4, ... (default: bf16)");
  verb.add_option("--task", plan.training.task,
                  "training task: pretrain, fine-tune or lora (default: pretrain)");
  verb.add_option("--attention", plan.training.attention,
                  "attention kernel: flash or unfused (default: flash)");
  verb.add_option("--objective", plan.goal.objective,
                  "figure to minimize: time, cost, energy or time-under-budget (default: time)");
  verb.add_option("--budget", plan.goal.budget,
                  "budget of the whole run in dollars, for time-under-budget");
  verb.add_option("--tokens", plan.goal.tokens, "tokens of the whole run, such as 15T");
  verb.add_option("--samples", plan.goal.samples,
                  "samples of the whole run, for image and video models, such as 1.2M");
  verb.add_option("--release", plan.training.release,
                  "NeMo release of the training software, such as 26.04; none: unknown software");
  verb.add_option("--layout", plan.layout.fixed,
                  "fixed dimensions of the layout: tp=8,pp=16,dp=128,..");
  verb.add_option("--runtime", plan.layout.runtime,
                  "capabilities of the training program (kind: Runtime)")
      ->type_name("FILE");
  verb.add_option("--price", plan.cost.price, "price basis: on-demand, spot, hyperscaler or owned");
  verb.add_option("--utilisation", plan.cost.utilisation,
                  "fraction of its life in which owned hardware is busy");
  verb.add_option("--region", plan.cost.region,
                  "region in the catalog's carbon and electricity tables");
  verb.add_option("--power-cap", plan.cost.power_cap,
                  "power cap of each accelerator, such as \"500 W\"");
  verb.add_option("--storage", plan.cost.storage, "storage for checkpoints, a catalog id");
  verb.add_option("--input-rate", plan.training.input_rate,
                  "read rate of training data, such as \"40 GB/s\"; none: reading takes no time");
}

void add_plan_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<PlanVerbOptions>();
  CLI::App* verb = app.add_subcommand(
      "plan", "plan how to train (or --serve) a model on accelerators, with time, cost and energy");
  add_plan_options(*verb, asked->call.options);
  PlanOptions& plan = asked->call.options;
  verb->add_option("--top", plan.top, "number of plans to list (default: 5)")
      ->check(CLI::Range(1, 10'000));
  verb->add_flag_callback(
      "--exhaustive", [&plan] { plan.effort = Effort::kExhaustive; },
      "evaluate every layout, without pruning");
  verb->add_flag_callback(
      "--sensitivity", [asked] { asked->call.sensitivity = Sensitive::kYes; },
      "show the effect of a 1 % change of each hardware figure");
  verb->add_option("--html", asked->call.html, "also write an HTML report to this file")
      ->type_name("FILE");
  verb->add_option(
          "--emit", asked->emit,
          "print the best plan as megatron flags, or as a deepspeed or fsdp configuration; "
          "with --serve as the command of vllm, sglang, trtllm or llamacpp")
      ->check(
          CLI::IsMember({"megatron", "deepspeed", "fsdp", "vllm", "sglang", "trtllm", "llamacpp"}));
  add_serve_options(*verb, asked->serve);
  verb->callback([&options, &chosen, asked, verb] {
    ServeOptions& serve = asked->serve.options;
    // The defaults of the options that training has too are not those of serving.
    if (verb->count("--precision") > 0) serve.precision = asked->call.options.training.precision;
    if (verb->count("--objective") > 0) serve.objective = asked->call.options.goal.objective;
    chosen = [&options, asked] {
      return asked->serve.wanted == Serving::kNo ? run_plan(options, *asked)
                                                 : run_serve(options, *asked);
    };
  });
}

}  // namespace orrery

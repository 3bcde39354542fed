#include "planner/launch/serving_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/format/field_writer.hpp"
#include "base/text/count_text.hpp"
#include "workload/engine_flags.hpp"

namespace orrery {
namespace {

/// Stand for what the shell must know. They are words of a shell already.
constexpr std::string_view kModel = "\"${MODEL:?directory or file of the model}\"";
constexpr std::string_view kNodeRank = "\"${NODE_RANK:?number of this node, from 0}\"";
constexpr std::string_view kFirstNode = "${FIRST_NODE:?address of node 0}";
constexpr std::string_view kOwnHost = "${OWN_HOST:?address of this node}";

std::uint32_t whole(double value) { return static_cast<std::uint32_t>(std::llround(value)); }

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:=";
  const bool is_shell = word.starts_with("\"$");
  if (is_shell || word.find_first_not_of(kPlain) == word.npos) return word;
  if (word.starts_with("$")) return "\"" + word + "\"";
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

/// One option a line.
std::string shell_command(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += word.starts_with("--") ? " \\\n  " : " ";
    text += shell_word(word);
  }
  return text + "\n";
}

/// One instance to start.
struct LaunchedInstance {
  const ServingQuestion& question;
  const ServingChoice& machine;
  const ServingPlan& plan;
  ServingNumbers numbers;
  NumberFormat cache;
  double concurrency = 0;  ///< 0: the engine's choice
  EnginePart part = EnginePart::kWhole;
};

std::uint64_t context_of(const ServingQuestion& question) {
  return static_cast<std::uint64_t>(std::ceil(question.input + question.output));
}

EngineShape shape_of(const LaunchedInstance& instance) {
  const ServingPlan& plan = instance.plan;
  const bool counted = instance.concurrency > 0;
  const double sequences = std::max(1.0, std::ceil(instance.concurrency / plan.attention_dp));
  return {.tensor = whole(plan.tp),
          .pipeline = whole(plan.pp),
          .data = whole(plan.attention_dp),
          .expert = whole(plan.ep),
          .context = context_of(instance.question),
          .sequences = counted ? static_cast<std::uint64_t>(sequences) : 0,
          .weights = instance.numbers.weights,
          .cache = instance.cache};
}

EngineNodes nodes_of(const LaunchedInstance& instance) {
  const std::uint32_t count = instance_nodes(instance.machine, instance.plan);
  if (count == 1) return {};
  return {.count = count,
          .rank = std::string(kNodeRank),
          .first = std::string(kFirstNode),
          .first_group =
              fmt::format("\"$((NODE_RANK * {}))\"", whole(instance.plan.attention_dp) / count)};
}

/// The words of nodes after the first, as arguments of the script that the command ends with.
std::string followers_text(const EngineCommand& command) {
  if (command.followers.empty()) return {};
  std::string text = fmt::format("[ {} = 0 ] || set --", kNodeRank);
  for (const std::string& word : command.followers) text += " " + shell_word(word);
  return text + "\n";
}

/// A script that starts one instance, without a heading.
Result<std::string> instance_text(const LaunchedInstance& instance, EngineName engine) {
  if (instance.plan.cores > 1) {
    return infeasible(fmt::format("{} cannot be told to run a rank on each core of an accelerator",
                                  word_of(engine)));
  }
  Result<EngineCommand> command = engine_launch({.engine = engine,
                                                 .artifact = std::string(kModel),
                                                 .shape = shape_of(instance),
                                                 .nodes = nodes_of(instance),
                                                 .part = instance.part,
                                                 .own_host = std::string(kOwnHost)});
  if (!command) return tl::unexpected(command.error());
  std::string text;
  const std::uint32_t nodes = instance_nodes(instance.machine, instance.plan);
  if (nodes > 1 && command->words.front() != "srun") {
    text += fmt::format("# Run it on each of the instance's {} nodes.\n", nodes);
  }
  for (const std::string& note : command->notes) text += "# " + note + "\n";
  if (planned_engine(engine).empty()) {
    text += fmt::format("# Figures of the plan are those of {}: there are none of {}.\n",
                        instance.question.engine, word_of(engine));
  }
  for (const auto& [name, value] : command->environment) {
    text += fmt::format("export {}={}\n", name, shell_word(value));
  }
  if (!command->config.empty()) {
    text += fmt::format("cat >{} <<'END'\n{}END\n", kEngineConfigFile, command->config);
  }
  if (!command->followers.empty()) command->words.emplace_back("\"$@\"");
  return text + followers_text(*command) + shell_command(command->words);
}

/// What sends requests to instances of both kinds.
std::string_view router_of(EngineName engine) {
  switch (engine) {
    case EngineName::kVllm:
      return "A router that knows both kinds stands before them, such as vllm-router.";
    case EngineName::kSglang:
      return "python3 -m sglang_router.launch_router --pd-disaggregation stands before them.";
    case EngineName::kTrtllm:
      return "trtllm-serve disaggregated stands before them.";
    case EngineName::kOrrery:
    case EngineName::kLlamacpp:
      break;
  }
  return "";
}

}  // namespace

std::string_view planned_engine(EngineName engine) {
  switch (engine) {
    case EngineName::kVllm:
      return "vllm";
    case EngineName::kSglang:
      return "sglang";
    case EngineName::kTrtllm:
      return "tensorrt-llm";
    case EngineName::kOrrery:
    case EngineName::kLlamacpp:
      break;
  }
  return "";
}

Result<std::string> serving_launch_text(const ServingLaunch& launch, EngineName engine) {
  const ServingOffer& offer = launch.offer;
  const ServingChoice& machine = launch.question.machines[offer.machine];
  const Result<std::string> script = instance_text({.question = launch.question,
                                                    .machine = machine,
                                                    .plan = offer.plan,
                                                    .numbers = offer.numbers,
                                                    .cache = offer.cache,
                                                    .concurrency = offer.concurrency},
                                                   engine);
  if (!script) return tl::unexpected(script.error());
  return fmt::format(
      "# Starts one instance; the plan is {} of {} ({}). Requests have up to {} tokens, prompt "
      "and answer.\n{}",
      counted(static_cast<std::uint64_t>(offer.plan.replicas), "instance"),
      counted(static_cast<std::uint64_t>(devices_of(offer.plan)), "accelerator"),
      machine.accelerator->id, context_of(launch.question), *script);
}

Result<std::string> apart_launch_text(const ApartLaunch& launch, EngineName engine) {
  const ApartOffer& offer = launch.offer;
  const ServingChoice& machine = launch.question.machines[offer.machine];
  LaunchedInstance instance{.question = launch.question,
                            .machine = machine,
                            .plan = offer.prompts,
                            .numbers = offer.numbers,
                            .cache = offer.cache,
                            .part = EnginePart::kPrompts};
  const Result<std::string> prompts = instance_text(instance, engine);
  if (!prompts) return tl::unexpected(prompts.error());
  const Result<std::string> answers = instance_text({.question = launch.question,
                                                     .machine = machine,
                                                     .plan = offer.answers,
                                                     .numbers = offer.numbers,
                                                     .cache = offer.cache,
                                                     .concurrency = offer.concurrency,
                                                     .part = EnginePart::kAnswers},
                                                    engine);
  if (!answers) return tl::unexpected(answers.error());
  const auto kind = [](const ServingPlan& plan) {
    return fmt::format("{} of {}", counted(static_cast<std::uint64_t>(plan.replicas), "instance"),
                       counted(static_cast<std::uint64_t>(devices_of(plan)), "accelerator"));
  };
  return fmt::format(
      "# Starts one instance; the plan is {} with ROLE=prefill and {} with ROLE=decode ({}).\n"
      "# Requests have up to {} tokens, prompt and answer. {}\n"
      "case \"${{ROLE:?prefill or decode}}\" in\nprefill)\n{};;\ndecode)\n{};;\n"
      "*) echo \"ROLE=$ROLE: expected prefill or decode\" >&2; exit 2;;\nesac\n",
      kind(offer.prompts), kind(offer.answers), machine.accelerator->id,
      context_of(launch.question), router_of(engine), *prompts, *answers);
}

}  // namespace orrery

#include "planner/launch/serving_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/format/field_writer.hpp"
#include "base/text/count_text.hpp"
#include "workload/engine_flags.hpp"

namespace orrery {
namespace {

/// Stands for the model until the words are a shell's.
constexpr std::string_view kModel = "\"${MODEL:?directory or file of the model}\"";

std::uint32_t whole(double value) { return static_cast<std::uint32_t>(std::llround(value)); }

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:=";
  if (word == kModel || word.find_first_not_of(kPlain) == word.npos) return word;
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

EngineShape shape_of(const ServingLaunch& launch) {
  const ServingPlan& plan = launch.offer.plan;
  const ServingQuestion& question = launch.question;
  return {.tensor = whole(plan.tp),
          .pipeline = whole(plan.pp),
          .data = whole(plan.attention_dp),
          .expert = whole(plan.ep),
          .context = static_cast<std::uint64_t>(std::ceil(question.input + question.output)),
          .sequences = static_cast<std::uint64_t>(
              std::max(1.0, std::ceil(launch.offer.concurrency / plan.attention_dp))),
          .weights = launch.offer.numbers.weights,
          .cache = launch.offer.cache};
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
  if (offer.plan.cores > 1) {
    return infeasible(fmt::format("{} cannot be told to run a rank on each core of an accelerator",
                                  word_of(engine)));
  }
  const Result<EngineCommand> command =
      engine_launch({.engine = engine, .artifact = std::string(kModel), .shape = shape_of(launch)});
  if (!command) return tl::unexpected(command.error());
  std::string text = fmt::format(
      "# Starts one instance; the plan is {} of {} ({}). Requests have up to {:.0f} tokens, prompt "
      "and answer.\n",
      counted(static_cast<std::uint64_t>(offer.plan.replicas), "instance"),
      counted(static_cast<std::uint64_t>(devices_of(offer.plan)), "accelerator"),
      machine.accelerator->id, std::ceil(launch.question.input + launch.question.output));
  for (const std::string& note : command->notes) text += "# " + note + "\n";
  if (planned_engine(engine).empty()) {
    text += fmt::format("# Figures of the plan are those of {}: there are none of {}.\n",
                        launch.question.engine, word_of(engine));
  }
  if (!command->config.empty()) {
    text += fmt::format("cat >{} <<'END'\n{}END\n", kEngineConfigFile, command->config);
  }
  return text + shell_command(command->words);
}

}  // namespace orrery

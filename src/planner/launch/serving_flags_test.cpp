#include "planner/launch/serving_flags.hpp"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "base/format/document.hpp"
#include "planner/launch/launch_arguments_test.hpp"
#include "planner/serving/serving_test.hpp"
#include "workload/engine_flags.hpp"

namespace orrery {
namespace {

constexpr std::array kEngines = {EngineName::kVllm, EngineName::kSglang, EngineName::kTrtllm,
                                 EngineName::kLlamacpp};

std::string_view word(EngineName engine) {
  for (const auto& entry : enum_words(EngineName())) {
    if (entry.value == engine) return entry.word;
  }
  return "";
}

/// The options of a command, as launch_arguments_test.hpp checks them.
TorchrunCall options_of(const std::vector<std::string>& words) {
  TorchrunCall call;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--")) continue;
    const bool value = i + 1 < words.size() && !words[i + 1].starts_with("--");
    const std::string name = words[i].substr(2);
    if (!call.flags.emplace(name, value ? words[i + 1] : "").second) {
      call.wrong.push_back(name + " stands twice");
    }
  }
  return call;
}

void add_keys(const DocumentNode& node, const std::string& path, std::set<std::string>& keys) {
  for (const DocumentNode::Entry& entry : node.entries()) {
    const std::string name = path + std::string(entry.key.text());
    if (entry.value.entries().empty()) keys.insert(name);
    add_keys(entry.value, name + ".", keys);
  }
}

TEST(ServingFlags, EveryCommandHoldsOptionsThatItsEngineKnows) {
  const std::array formats = {NumberFormat::kBf16, NumberFormat::kFp16, NumberFormat::kFp8,
                              NumberFormat::kFp4,  NumberFormat::kInt8, NumberFormat::kInt4};
  for (const EngineName engine : kEngines) {
    const LauncherArguments known = launcher_arguments(std::string(word(engine)));
    std::set<std::string> written;
    int told = 0;
    for (const NumberFormat format : formats) {
      for (const std::uint32_t size : {1u, 2u, 8u}) {
        for (const std::uint32_t groups : {1u, 2u}) {
          const EngineLaunch launch{.engine = engine,
                                    .artifact = "/m",
                                    .model = "lab/m",
                                    .host = "10.0.0.7",
                                    .port = 20001,
                                    .shape = {.tensor = groups == 1 ? size : 1,
                                              .pipeline = groups == 1 ? 1 : size,
                                              .data = size == 8 ? groups : 1,
                                              .expert = size == 8 ? groups : 1,
                                              .context = 8192,
                                              .sequences = 16,
                                              .weights = format,
                                              .cache = format}};
          const Result<EngineCommand> command = engine_launch(launch);
          if (!command) continue;
          ++told;
          const TorchrunCall call = options_of(command->words);
          EXPECT_EQ(wrong_arguments(call, known), std::vector<std::string>()) << word(engine);
          for (const auto& [name, value] : call.flags) written.insert(name);
          if (command->config.empty()) continue;
          const Result<Document> config = Document::parse(command->config, "config");
          ASSERT_TRUE(config) << command->config;
          std::set<std::string> keys;
          add_keys(config->root(), "", keys);
          for (const std::string& key : keys) EXPECT_TRUE(known.keys.contains(key)) << key;
        }
      }
    }
    EXPECT_GE(told, 12) << word(engine);
    std::set<std::string> listed = known.switches;
    listed.insert(known.integers.begin(), known.integers.end());
    listed.insert(known.texts.begin(), known.texts.end());
    for (const auto& [name, words] : known.words) listed.insert(name);
    EXPECT_EQ(written, listed) << word(engine) << ": each listed option is written somewhere";
  }
}

TEST(ServingFlags, APlanIsAScriptThatAsksForTheModel) {
  ServingQuestion question = serving_question("llama-3.1-70b", {serving_on("h100", 8)});
  const Result<ServingAnswer> answer = plan_serving(serving_facts(), question);
  ASSERT_TRUE(answer) << answer.error().text();
  const ServingOffer& best = answer->plans.front();
  for (const EngineName engine : {EngineName::kVllm, EngineName::kSglang, EngineName::kTrtllm}) {
    const Result<std::string> text = serving_launch_text({question, best}, engine);
    ASSERT_TRUE(text) << text.error().text();
    EXPECT_TRUE(text->starts_with("# Starts one instance; the plan is ")) << *text;
    EXPECT_NE(text->find("\"${MODEL:?directory or file of the model}\""), std::string::npos)
        << *text;
    EXPECT_NE(text->find("1500"), std::string::npos) << *text;
    EXPECT_FALSE(planned_engine(engine).empty());
  }
  ServingOffer cores = best;
  cores.plan.cores = 2;
  EXPECT_FALSE(serving_launch_text({question, cores}, EngineName::kVllm));
}

TEST(ServingFlags, LlamaCppIsToldOfOneInstanceOnly) {
  ServingQuestion question = serving_question("llama-3.1-8b", {serving_on("h100", 1)});
  const Result<ServingAnswer> answer = plan_serving(serving_facts(), question);
  ASSERT_TRUE(answer) << answer.error().text();
  const Result<std::string> text =
      serving_launch_text({question, answer->plans.front()}, EngineName::kLlamacpp);
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_NE(text->find("# Figures of the plan are those of vllm: there are none of llamacpp.\n"),
            std::string::npos)
      << *text;
  EXPECT_NE(text->find("\nllama-server \\\n  --model \"${MODEL"), std::string::npos) << *text;
  ServingOffer groups = answer->plans.front();
  groups.plan.attention_dp = 2;
  EXPECT_FALSE(serving_launch_text({question, groups}, EngineName::kLlamacpp));
}

}  // namespace
}  // namespace orrery

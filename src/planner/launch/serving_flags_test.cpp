#include "planner/launch/serving_flags.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
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
                                              .pipeline = groups == 1 || size == 8 ? 1 : size,
                                              .data = size == 8 ? groups : 1,
                                              .expert = size == 8 ? groups : 1,
                                              .context = 8192,
                                              .sequences = 16,
                                              .weights = format,
                                              .cache = format},
                                    .nodes = {.count = size == 8 ? 2u : 1u,
                                              .rank = "1",
                                              .first = "10.0.0.8",
                                              .first_group = "1"},
                                    .part = size == 8 ? EnginePart::kPrompts : EnginePart::kWhole};
          Result<EngineCommand> command = engine_launch(launch);
          if (!command) continue;
          ++told;
          std::ranges::copy(command->followers, std::back_inserter(command->words));
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

TEST(ServingFlags, AnInstanceOverNodesIsStartedOnEachOfThem) {
  ServingQuestion question = serving_question("deepseek-v3", {serving_on("h100", 32)});
  question.formats = {NumberFormat::kFp8};
  const Result<ServingAnswer> answer = plan_serving(serving_facts(), question);
  ASSERT_TRUE(answer) << answer.error().text();
  ServingOffer offer = answer->plans.front();
  const auto script = [&](ServingPlan plan, EngineName engine) {
    offer.plan = plan;
    const Result<std::string> text = serving_launch_text({question, offer}, engine);
    return text ? *text : text.error().message;
  };
  const auto holds = [](const std::string& text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  };
  const std::string staged = script({.tp = 8, .pp = 2}, EngineName::kVllm);
  holds(staged, "# Run it on each of the instance's 2 nodes.\n");
  holds(staged, "[ \"${NODE_RANK:?number of this node, from 0}\" = 0 ] || set -- --headless\n");
  holds(staged, "--nnodes 2 \\\n  --node-rank \"${NODE_RANK:?number of this node, from 0}\" \\\n");
  holds(staged, "--master-addr \"${FIRST_NODE:?address of node 0}\"");
  holds(staged, " \"$@\"\n");
  const std::string groups = script({.tp = 1, .ep = 16, .attention_dp = 16}, EngineName::kVllm);
  holds(groups, "--data-parallel-size-local 8 \\\n");
  holds(groups, "--data-parallel-start-rank \"$((NODE_RANK * 8))\"");
  holds(script({.tp = 1, .pp = 2, .ep = 8, .attention_dp = 8}, EngineName::kVllm),
        "cannot be told to have stages of several attention groups on nodes of their own");
  holds(script({.tp = 8, .pp = 2, .ep = 8}, EngineName::kSglang),
        "--nnodes 2 \\\n  --node-rank \"${NODE_RANK:?number of this node, from 0}\" \\\n"
        "  --dist-init-addr \"${FIRST_NODE:?address of node 0}:5000\"");
  holds(script({.tp = 16}, EngineName::kTrtllm),
        "srun -N 2 \\\n  --ntasks-per-node 8 \\\n  --mpi pmix trtllm-llmapi-launch trtllm-serve ");
  holds(script({.tp = 16}, EngineName::kLlamacpp), "cannot be told to compute on several nodes");
  holds(script({.tp = 16, .ep = 32, .attention_dp = 2}, EngineName::kVllm),
        "cannot be told to spread 2 attention groups over 4 nodes");
}

TEST(ServingFlags, InstancesOfBothKindsComeFromOneScript) {
  const ServingQuestion question = serving_question("llama-3.1-70b", {serving_on("h100", 16)});
  const Result<ServingAnswer> answer = plan_serving(serving_facts(), question);
  ASSERT_TRUE(answer) << answer.error().text();
  ASSERT_FALSE(answer->apart.empty());
  const auto expect = [&](EngineName engine, std::initializer_list<std::string_view> parts) {
    const Result<std::string> text = apart_launch_text({question, answer->apart[0]}, engine);
    ASSERT_TRUE(text) << text.error().text();
    for (const std::string_view part : parts) {
      EXPECT_NE(text->find(part), std::string::npos) << part << "\n" << *text;
    }
  };
  expect(EngineName::kVllm,
         {"# Starts one instance; the plan is ", " with ROLE=prefill and ", "\nprefill)\n",
          "--kv-transfer-config "
          "'{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}'",
          "export VLLM_NIXL_SIDE_CHANNEL_HOST=\"${OWN_HOST:?address of this node}\"\n"});
  expect(EngineName::kSglang,
         {"--disaggregation-mode prefill \\\n  --disaggregation-transfer-backend nixl",
          "--disaggregation-mode decode", "sglang_router.launch_router --pd-disaggregation"});
  expect(EngineName::kTrtllm,
         {"disable_overlap_scheduler: true\ncache_transceiver_config:\n  backend: DEFAULT\n  "
          "max_tokens_in_buffer: 1500\nEND\n",
          "trtllm-serve disaggregated"});
  EXPECT_FALSE(apart_launch_text({question, answer->apart[0]}, EngineName::kLlamacpp));
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

#include "adapter/engine_metrics.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "adapter/engine_slots.hpp"
#include "adapter/prometheus_text.hpp"

namespace orrery {
namespace {

/// The figures of an answer in tests/engines/metrics. Those of vLLM 0.32 and the
/// llama.cpp of 2026 were recorded by real_engines.py; the others have the form of their releases'
/// documents or source.
EngineLoad load_of(EngineName engine, const std::string& file) {
  std::stringstream text;
  text << std::ifstream(ORRERY_SOURCE_DIR "/tests/engines/metrics/" + file + ".txt").rdbuf();
  EXPECT_FALSE(text.str().empty()) << file;
  EXPECT_EQ(read_prometheus(text.str(), [](const MetricSample&) {}), 0u) << file;
  return engine_load(engine, text.str());
}

/// "running 8, waiting 15, kv 0.175, 7633 blocks of 16, generated 27453, steps 27453"; "-" for what
/// is unknown.
std::string figures_of(EngineName engine, const std::string& file) {
  const EngineLoad load = load_of(engine, file);
  const auto text = [](const std::optional<double>& figure) {
    return figure ? fmt::format("{}", *figure) : std::string("-");
  };
  return fmt::format("running {}, waiting {}, kv {}, {} blocks of {}, generated {}, steps {}",
                     text(load.running), text(load.waiting), text(load.kv_usage), text(load.blocks),
                     text(load.block_tokens), text(load.generated), text(load.steps));
}

TEST(EngineMetrics, ReadsThreeReleasesOfVllm) {
  EXPECT_EQ(figures_of(EngineName::kVllm, "vllm-0.6"),
            "running 8, waiting 15, kv 0.17456166457021974, 7633 blocks of 16, generated 27453, "
            "steps 27453");
  EXPECT_EQ(figures_of(EngineName::kVllm, "vllm-0.11"),
            "running 8, waiting 2, kv 0.5, 2000 blocks of 16, generated 150, steps 150")
      << "of two groups; the cache by its newer name, as a mean";
  EXPECT_EQ(figures_of(EngineName::kVllm, "vllm-0.32"),
            "running 4, waiting 4, kv 0.00024415552707079957, 16384 blocks of 128, generated 283, "
            "steps 283")
      << "the reasons are parts of those that wait";
}

TEST(EngineMetrics, ReadsTwoReleasesOfSglang) {
  EXPECT_EQ(figures_of(EngineName::kSglang, "sglang-0.4"),
            "running 162, waiting 2826, kv 0.28, 27000 blocks of 16, generated 7557572, steps -");
  EXPECT_EQ(figures_of(EngineName::kSglang, "sglang-0.5.11"),
            "running 7, waiting 1, kv 0.5, 62500 blocks of 64, generated 34, steps 2048")
      << "neither ranks nor priorities count twice";
}

TEST(EngineMetrics, ReadsTensorRtLlm) {
  EXPECT_EQ(figures_of(EngineName::kTrtllm, "trtllm-1.3"),
            "running 3, waiting 1, kv 0.42, 62762 blocks of 32, generated 12345, steps -");
  EXPECT_EQ(metrics_path(EngineName::kTrtllm), "/prometheus/metrics");
  EXPECT_EQ(metrics_path(EngineName::kVllm), "/metrics");
}

TEST(EngineMetrics, ReadsTwoReleasesOfLlamaCpp) {
  EXPECT_EQ(figures_of(EngineName::kLlamacpp, "llamacpp-b4000"),
            "running 2, waiting 1, kv 0.2, - blocks of -, generated 34, steps -");
  EXPECT_EQ(figures_of(EngineName::kLlamacpp, "llamacpp-2026"),
            "running 4, waiting 4, kv -, - blocks of -, generated 183, steps 502");
}

TEST(EngineMetrics, AFigureThatIsMissingOrNoNumberIsUnknown) {
  const EngineLoad load = engine_load(
      EngineName::kVllm,
      "vllm:num_requests_running{} NaN\nvllm:num_requests_waiting +Inf\n"
      "vllm:kv_cache_usage_perc -1\nvllm:cache_config_info{num_gpu_blocks=\"None\"} 1\n");
  EXPECT_FALSE(load.running || load.waiting || load.kv_usage || load.blocks);
  EXPECT_FALSE(load.busy());
  EXPECT_EQ(engine_load(EngineName::kVllm, "vllm:num_requests_running 0\n").busy(), false);
  EXPECT_EQ(engine_load(EngineName::kVllm, "vllm:num_requests_waiting 1\n").busy(), true);
}

TEST(EngineMetrics, RequestsStandWhereNoStepIsCounted) {
  const EngineLoad earlier{.running = 1, .generated = 5, .steps = 7};
  EngineLoad load = earlier;
  EXPECT_TRUE(load.stands_since(earlier));
  load.waiting = 1;
  EXPECT_TRUE(load.stands_since(earlier)) << "others come";
  load.steps = 8;
  EXPECT_FALSE(load.stands_since(earlier));
  load = earlier;
  load.generated = 6;
  EXPECT_FALSE(load.stands_since(earlier));
  load = earlier;
  load.running = 0;
  EXPECT_FALSE(load.stands_since(earlier)) << "it is idle";
  EXPECT_FALSE((EngineLoad{.running = 1, .generated = 5}.stands_since(
      EngineLoad{.running = 1, .generated = 5})))
      << "tokens that are counted as requests end prove nothing";
}

TEST(PrometheusText, PassesOverTimesExemplarsAndLinesThatAreNone) {
  std::vector<MetricSample> samples;
  const std::uint64_t bad = read_prometheus(
      "a 1 1712000000000\r\n  b{x=\"1\", y=\"a\\\"\\\\\\n\",} 2e3 # {id=\"7\"} 1\n# c 3\nd\n"
      "e{x=1} 2\nf{x=\"1} 2\n-g 1\nh 1x\n\ni +Inf\nj{ 1",
      [&](const MetricSample& sample) { samples.push_back(sample); });
  EXPECT_EQ(bad, 6u);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[0].name, "a");
  EXPECT_EQ(samples[0].value, 1);
  EXPECT_EQ(samples[1].label("y"), "a\"\\\n");
  EXPECT_EQ(samples[1].label("z"), "");
  EXPECT_EQ(samples[1].value, 2000);
  EXPECT_EQ(samples[2].name, "i");
}

TEST(EngineSlots, AreWhatTheEngineAnswers) {
  EXPECT_EQ(slots_path(EngineName::kLlamacpp), "/props");
  EXPECT_EQ(slots_path(EngineName::kVllm), "");
  EXPECT_EQ(slots_answered(EngineName::kLlamacpp, R"({"total_slots": 4})"), 4u);
  EXPECT_EQ(slots_answered(EngineName::kSglang,
                           R"({"max_running_requests": null,
                               "internal_states": [{"max_running_requests": 48}]})"),
            48u);
  EXPECT_EQ(slots_answered(EngineName::kSglang, R"({"max_running_requests": 32})"), 32u);
  for (const char* none : {"", "[]", "{}", R"({"total_slots": 0})", R"({"total_slots": "4"})"}) {
    EXPECT_FALSE(slots_answered(EngineName::kLlamacpp, none)) << none;
    EXPECT_FALSE(slots_answered(EngineName::kSglang, none)) << none;
  }
}

}  // namespace
}  // namespace orrery

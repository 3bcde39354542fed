#include "adapter/engine_metrics.hpp"

#include <gtest/gtest.h>

#include <fstream>
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

TEST(EngineMetrics, ReadsThreeReleasesOfVllm) {
  const EngineLoad first = load_of(EngineName::kVllm, "vllm-0.6");
  EXPECT_EQ(first.running, 8);
  EXPECT_EQ(first.waiting, 15);
  EXPECT_DOUBLE_EQ(first.kv_usage.value(), 0.17456166457021973);
  EXPECT_EQ(first.block_tokens, 16);
  EXPECT_EQ(first.blocks, 7633);
  EXPECT_EQ(first.generated, 27453);

  const EngineLoad both = load_of(EngineName::kVllm, "vllm-0.11");
  EXPECT_EQ(both.running, 8) << "of two groups";
  EXPECT_EQ(both.waiting, 2);
  EXPECT_EQ(both.kv_usage, 0.5) << "by the newer name, as a mean";
  EXPECT_EQ(both.block_tokens, 16);
  EXPECT_EQ(both.blocks, 2000);
  EXPECT_EQ(both.generated, 150);

  const EngineLoad newest = load_of(EngineName::kVllm, "vllm-0.32");
  EXPECT_EQ(newest.running, 4);
  EXPECT_EQ(newest.waiting, 4) << "the reasons are parts of it";
  EXPECT_DOUBLE_EQ(newest.kv_usage.value(), 0.00024415552707079957);
  EXPECT_EQ(newest.block_tokens, 128);
  EXPECT_EQ(newest.blocks, 16384);
  EXPECT_EQ(newest.generated, 283);
}

TEST(EngineMetrics, ReadsTwoReleasesOfSglang) {
  const EngineLoad old = load_of(EngineName::kSglang, "sglang-0.4");
  EXPECT_EQ(old.running, 162);
  EXPECT_EQ(old.waiting, 2826);
  EXPECT_EQ(old.kv_usage, 0.28);
  EXPECT_EQ(old.block_tokens, 16);
  EXPECT_EQ(old.blocks, 27000);
  EXPECT_EQ(old.generated, 7557572);
  const EngineLoad newer = load_of(EngineName::kSglang, "sglang-0.5.11");
  EXPECT_EQ(newer.running, 7) << "neither ranks nor priorities count twice";
  EXPECT_EQ(newer.waiting, 1);
  EXPECT_EQ(newer.kv_usage, 0.5);
  EXPECT_EQ(newer.block_tokens, 64);
  EXPECT_EQ(newer.blocks, 62500);
  EXPECT_EQ(newer.generated, 34);
}

TEST(EngineMetrics, ReadsTensorRtLlm) {
  const EngineLoad load = load_of(EngineName::kTrtllm, "trtllm-1.3");
  EXPECT_EQ(load.running, 3);
  EXPECT_EQ(load.waiting, 1);
  EXPECT_EQ(load.kv_usage, 0.42);
  EXPECT_EQ(load.block_tokens, 32);
  EXPECT_EQ(load.blocks, 62762);
  EXPECT_EQ(load.generated, 12345);
  EXPECT_EQ(metrics_path(EngineName::kTrtllm), "/prometheus/metrics");
  EXPECT_EQ(metrics_path(EngineName::kVllm), "/metrics");
}

TEST(EngineMetrics, ReadsTwoReleasesOfLlamaCpp) {
  const EngineLoad old = load_of(EngineName::kLlamacpp, "llamacpp-b4000");
  EXPECT_EQ(old.running, 2);
  EXPECT_EQ(old.waiting, 1);
  EXPECT_EQ(old.kv_usage, 0.2);
  EXPECT_EQ(old.generated, 34);
  const EngineLoad newest = load_of(EngineName::kLlamacpp, "llamacpp-2026");
  EXPECT_EQ(newest.running, 4);
  EXPECT_EQ(newest.waiting, 4);
  EXPECT_FALSE(newest.kv_usage);
  EXPECT_EQ(newest.generated, 183);
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

// perf/serving/serving_engine_test.cpp - names and releases of engines, as published.
#include "perf/serving/serving_engine.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

std::string first_key(std::string_view name, std::string_view version = "") {
  return engine_profile({.name = name, .version = version, .vendor = "nvidia"}).keys.front();
}

TEST(ServingEngine, ReleasesOrderAsNumbers) {
  EXPECT_NEAR(release_number("0.17").value(), 0.17, 1e-12);
  EXPECT_NEAR(release_number("v0.5.12-rocm700").value(), 0.0512, 1e-12);
  EXPECT_NEAR(release_number("1.2.0rc6.post2").value(), 1.02, 1e-12);
  EXPECT_LT(release_number("0.9.0").value(), release_number("0.17").value());
  EXPECT_FALSE(release_number("nightly"));
  EXPECT_FALSE(release_number(""));
}

TEST(ServingEngine, AReleaseSelectsTheGenerationOfTheEngine) {
  EXPECT_EQ(first_key("TensorRT-LLM", "0.17"), "tensorrt-llm-0.nvidia");
  EXPECT_EQ(first_key("TensorRT-LLM (PyTorch backend)", "1.0"), "tensorrt-llm-1.0.nvidia");
  EXPECT_EQ(first_key("TensorRT-LLM (PyTorch backend)", "1.2"), "tensorrt-llm-1.1.nvidia");
  EXPECT_EQ(first_key("vLLM", "0.6.5"), "vllm-0.nvidia");
  EXPECT_EQ(first_key("vLLM"), "vllm-unknown.nvidia");
  EXPECT_EQ(first_key("vLLM", "0.12.0"), "vllm-1.nvidia");
  EXPECT_EQ(first_key("vLLM", "nightly-5b8c30d6"), "vllm-1.nvidia");
  EXPECT_EQ(first_key("vLLM 0.10.0", "MLPerf v5.1"), "vllm-1.nvidia");
}

TEST(ServingEngine, AnUnknownEngineGetsTheConstantsOfAny) {
  const EngineProfile profile = engine_profile({.name = "Mango", .vendor = "amd"});
  EXPECT_EQ(profile.keys, (std::vector<std::string>{"any.amd", "any"}));
  EXPECT_TRUE(profile.queued);
}

TEST(ServingEngine, AStaticBatchHasNoQueueAndAnOnlineBenchmarkAnEnd) {
  EXPECT_FALSE(engine_profile({.name = "TensorRT-LLM (static batch)", .version = "0.9.0"}).queued);
  EXPECT_EQ(engine_profile({.name = "TensorRT-LLM (Triton)", .version = "0.14.0"}).requests, 500);
  EXPECT_TRUE(engine_profile({.name = "TensorRT 10.11", .version = "MLPerf v5.1"}).mlperf);
}

}  // namespace
}  // namespace orrery

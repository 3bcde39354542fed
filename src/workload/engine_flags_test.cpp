#include "workload/engine_flags.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace orrery {
namespace {

std::string text_of(const Result<EngineCommand>& command) {
  if (!command) return command.error().text();
  std::string text;
  for (const std::string& word : command->words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// A replica of an engine, as orrery-engine starts it.
EngineLaunch replica(EngineName engine) {
  return {.engine = engine,
          .artifact = "/m",
          .model = "lab/m",
          .host = "10.0.0.7",
          .port = 20001,
          .arguments = {"--seed", "7"}};
}

TEST(EngineFlags, AReplicaIsToldWhereToListenAndItsName) {
  EXPECT_EQ(text_of(engine_launch(replica(EngineName::kVllm))),
            "vllm serve /m --served-model-name lab/m --host 10.0.0.7 --port 20001 --seed 7");
  EXPECT_EQ(text_of(engine_launch(replica(EngineName::kSglang))),
            "python3 -m sglang.launch_server --model-path /m --served-model-name lab/m --host "
            "10.0.0.7 --port 20001 --enable-metrics --seed 7");
  EXPECT_EQ(text_of(engine_launch(replica(EngineName::kTrtllm))),
            "trtllm-serve /m --host 10.0.0.7 --port 20001 --config orrery-engine.yaml --seed 7");
  EXPECT_EQ(
      text_of(engine_launch(replica(EngineName::kLlamacpp))),
      "llama-server --model /m --alias lab/m --host 10.0.0.7 --port 20001 --metrics --seed 7");
  EXPECT_EQ(text_of(engine_launch(replica(EngineName::kOrrery))),
            "orrery-serve --checkpoint /m --model lab/m --listen 10.0.0.7:20001 --seed 7");
}

TEST(EngineFlags, ThePortOfVllmsKvEventsIsTheOneThatItsUserNames) {
  using Words = std::vector<std::string>;
  const auto port = [](const Words& words) { return kv_events_port_in(words); };
  const std::string on = R"({"enable_kv_cache_events": true, "publisher": "zmq")";
  EXPECT_EQ(port({"--kv-events-config", on + R"(, "endpoint": "tcp://*:5600"})"}), 5600U);
  EXPECT_EQ(port({"--kv_events_config=" + on + "}"}), 5557U) << "vLLM's own default";
  EXPECT_EQ(port({"--kv-events-config", R"({"endpoint": "tcp://*:5600"})"}), std::nullopt);
  EXPECT_EQ(port({"--kv-events-config", on + R"(, "endpoint": "ipc://x"})"}), std::nullopt);
  EXPECT_EQ(port({"--kv-events-config", on + R"(, "endpoint": "tcp://*:70000"})"}), std::nullopt);
  EXPECT_EQ(port({"--kv-events-config", on + R"(, "endpoint": 5})"}), std::nullopt);
  EXPECT_EQ(port({"--kv-events-config", "{"}), std::nullopt);
  EXPECT_EQ(port({"--kv-events-config"}), std::nullopt);
  EXPECT_EQ(port({"--seed", "7"}), std::nullopt);
}

TEST(EngineFlags, AReplicaOfVllmThatHandsCachesOverIsToldWhere) {
  for (const EnginePart part : {EnginePart::kPrompts, EnginePart::kAnswers}) {
    EngineLaunch launch = replica(EngineName::kVllm);
    launch.part = part;
    launch.own_host = "10.0.0.7";
    launch.own_port = 5600;
    const Result<EngineCommand> command = engine_launch(launch);
    EXPECT_EQ(text_of(command),
              "vllm serve /m --served-model-name lab/m --host 10.0.0.7 --port 20001 "
              "--kv-transfer-config {\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"} "
              "--seed 7");
    EXPECT_EQ(command->environment, (std::vector<std::pair<std::string, std::string>>{
                                        {"VLLM_NIXL_SIDE_CHANNEL_HOST", "10.0.0.7"},
                                        {"VLLM_NIXL_SIDE_CHANNEL_PORT", "5600"}}));
  }
}

TEST(EngineFlags, AProgramAndAnAddressOfVersion6AreTakenAsTheyAre) {
  EngineLaunch launch = replica(EngineName::kVllm);
  launch.program = "/opt/vllm";
  launch.host = "[fd00::7]";
  EXPECT_EQ(text_of(engine_launch(launch)),
            "/opt/vllm serve /m --served-model-name lab/m --host fd00::7 --port 20001 --seed 7");
}

TEST(EngineFlags, TensorRtLlmReadsTheRestFromAFileUnlessTheUserBringsOne) {
  EngineLaunch launch = replica(EngineName::kTrtllm);
  launch.shape.cache = NumberFormat::kFp8;
  launch.shape.data = 2;
  EXPECT_EQ(engine_launch(launch)->config,
            "return_perf_metrics: true\nenable_iter_perf_stats: true\nenable_attention_dp: true\n"
            "kv_cache_config:\n  dtype: fp8\n");
  for (const char* own : {"--config=mine.yaml", "--extra_llm_api_options"}) {
    launch.arguments = {own};
    EXPECT_EQ(engine_launch(launch)->config, "") << own;
    EXPECT_EQ(text_of(engine_launch(launch)).find(kEngineConfigFile), std::string::npos) << own;
  }
}

TEST(EngineFlags, AShapeBecomesOptions) {
  EngineLaunch launch{.artifact = "m",
                      .shape = {.tensor = 4,
                                .pipeline = 2,
                                .data = 2,
                                .expert = 8,
                                .context = 4096,
                                .sequences = 64,
                                .weights = NumberFormat::kFp8,
                                .cache = NumberFormat::kFp8}};
  EXPECT_EQ(text_of(engine_launch(launch)),
            "vllm serve m --tensor-parallel-size 4 --pipeline-parallel-size 2 --data-parallel-size "
            "2 --enable-expert-parallel --max-model-len 4096 --max-num-seqs 64 --quantization fp8 "
            "--kv-cache-dtype fp8");
  launch.engine = EngineName::kSglang;
  EXPECT_EQ(text_of(engine_launch(launch)),
            "python3 -m sglang.launch_server --model-path m --enable-metrics "
            "--tensor-parallel-size 8 --pipeline-parallel-size 2 --data-parallel-size 2 "
            "--enable-dp-attention --expert-parallel-size 8 --context-length 4096 "
            "--max-running-requests 128 --quantization fp8 --kv-cache-dtype fp8_e4m3");
  launch.engine = EngineName::kLlamacpp;
  EXPECT_EQ(text_of(engine_launch(launch)),
            "llama-server cannot be told to compute attention in groups or to deal out experts");
  launch.shape = {.tensor = 2,
                  .context = 1000,
                  .sequences = 4,
                  .weights = NumberFormat::kInt4,
                  .cache = NumberFormat::kInt8};
  EXPECT_EQ(text_of(engine_launch(launch)),
            "llama-server --model m --metrics --split-mode row --parallel 4 --ctx-size 4000 "
            "--cache-type-k q8_0 --cache-type-v q8_0");
  EXPECT_EQ(engine_launch(launch)->notes.size(), 1u);
}

TEST(EngineFlags, WhatAnEngineHasNoOptionForIsRefused) {
  EngineLaunch launch{.artifact = "m", .shape = {.tensor = 4, .expert = 2}};
  EXPECT_EQ(text_of(engine_launch(launch)),
            "vllm serve cannot be told to deal the experts to 2 of 4 devices");
  launch.shape = {.cache = NumberFormat::kInt4};
  for (const EngineName engine :
       {EngineName::kVllm, EngineName::kSglang, EngineName::kTrtllm, EngineName::kLlamacpp}) {
    launch.engine = engine;
    EXPECT_NE(text_of(engine_launch(launch)).find("cannot be told a KV cache in int4"),
              std::string::npos);
  }
  launch.shape = {.tensor = 2, .pipeline = 2};
  EXPECT_NE(text_of(engine_launch(launch)).find("at once"), std::string::npos);
}

TEST(EngineFlags, SlotsAreReadFromTheArguments) {
  const auto slots = [](EngineName engine, std::vector<std::string> arguments) {
    return slots_in(engine, arguments);
  };
  EXPECT_EQ(slots(EngineName::kVllm, {"--max-num-seqs", "8"}), 8u);
  EXPECT_EQ(slots(EngineName::kVllm, {"--max_num_seqs=8", "--max-num-seqs", "16"}), 16u);
  EXPECT_EQ(slots(EngineName::kTrtllm, {"--max_batch_size", "4"}), 4u);
  EXPECT_EQ(slots(EngineName::kLlamacpp, {"-np", "2"}), 2u);
  EXPECT_EQ(slots(EngineName::kSglang, {"--max-running-requests", "none"}), std::nullopt);
  EXPECT_EQ(slots(EngineName::kSglang, {"--max-running-requests"}), std::nullopt);
  EXPECT_EQ(slots(EngineName::kVllm, {"-np", "2"}), std::nullopt);
}

}  // namespace
}  // namespace orrery

#include "perf/runs/run_text.hpp"

#include <gtest/gtest.h>

#include <string>

namespace orrery {
namespace {

struct PrecisionCase {
  std::string_view text;
  NumberFormat format;
  Scaling scaling = Scaling::kNone;
  Execution execution = Execution::kUnknown;
};

TEST(RunText, ReadsPrecisionsAsBaseWordAndQualifiers) {
  for (const PrecisionCase& each : std::initializer_list<PrecisionCase>{
           {"bf16", NumberFormat::kBf16},
           {"amp_bf16", NumberFormat::kBf16},
           {"fp16", NumberFormat::kFp16},
           {"tf32", NumberFormat::kTf32},
           {"bf16+fp32 opt", NumberFormat::kBf16},
           {"fp32 master weights, bf16", NumberFormat::kBf16},
           {"bf16 (fp32 grad accumulation)", NumberFormat::kBf16},
           {"bf16 compile", NumberFormat::kBf16, Scaling::kNone, Execution::kCompiled},
           {"bf16 eager", NumberFormat::kBf16, Scaling::kNone, Execution::kEager},
           {"FP8", NumberFormat::kFp8, Scaling::kTensor},
           {"fp8_full", NumberFormat::kFp8, Scaling::kTensor},
           {"amp_fp8", NumberFormat::kFp8, Scaling::kTensor},
           {"FP8-CS", NumberFormat::kFp8, Scaling::kTensor},
           {"FP8-MX", NumberFormat::kFp8, Scaling::kBlock},
           {"MXFP8", NumberFormat::kFp8, Scaling::kBlock},
           {"fp8 blockwise", NumberFormat::kFp8, Scaling::kBlock},
           {"fp8 rowwise", NumberFormat::kFp8, Scaling::kRow},
           {"fp8 tensorwise", NumberFormat::kFp8, Scaling::kTensor},
           {"NVFP4", NumberFormat::kFp4, Scaling::kBlock},
           {"mxfp4", NumberFormat::kFp4, Scaling::kBlock},
           {"int8 (AQT)", NumberFormat::kInt8, Scaling::kRow}}) {
    Warnings warnings;
    const TrainingPrecision read = read_precision_text(each.text, warnings);
    EXPECT_EQ(read, (TrainingPrecision{each.format, each.scaling, each.execution})) << each.text;
    EXPECT_TRUE(warnings.empty()) << each.text << ": " << warnings.front();
  }
}

TEST(RunText, TakesTheFirstOfTwoFormatsAndSaysSo) {
  Warnings warnings;
  EXPECT_EQ(read_precision_text("nvfp4+mxfp8", warnings),
            (TrainingPrecision{NumberFormat::kFp4, Scaling::kBlock}));
  EXPECT_EQ(warnings.size(), 1U);
  EXPECT_EQ(read_precision_text("FP8-CS (FP8-MX)", warnings),
            (TrainingPrecision{NumberFormat::kFp8, Scaling::kTensor}));
  EXPECT_EQ(warnings.size(), 2U);
  EXPECT_EQ(read_precision_text("per submission (likely int8/bf16)", warnings).format,
            NumberFormat::kInt8);
  EXPECT_EQ(warnings.size(), 4U);
}

TEST(RunText, WarnsOfUnknownPrecisionWords) {
  Warnings warnings;
  EXPECT_EQ(read_precision_text("bf16 quantumwise", warnings).format, NumberFormat::kBf16);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("quantumwise"), std::string::npos);
  EXPECT_EQ(read_precision_text("", warnings), TrainingPrecision{});
  EXPECT_EQ(warnings.size(), 2U);
}

struct RecomputeCase {
  std::string_view text;
  StatedRecompute stated;
};

TEST(RunText, ReadsRecomputation) {
  const double layer = 12.75;
  for (const RecomputeCase& each : std::initializer_list<RecomputeCase>{
           {"none", {.mode = Recompute::kNone}},
           {"full", {.mode = Recompute::kFull}},
           {"full (8 layers)", {.mode = Recompute::kFull, .layers = 8}},
           {"12", {.mode = Recompute::kFull, .layers = 12}},
           {"0", {.mode = Recompute::kNone}},
           {"false", {.mode = Recompute::kNone}},
           {"selective", {.mode = Recompute::kSelective}},
           {"selective(attention)+sequence-parallel", {.mode = Recompute::kSelective}},
           {"minimal", {.mode = Recompute::kFull, .kept = 1}},
           {"save_out_proj", {.mode = Recompute::kFull, .kept = 1 / layer}},
           {"qkv_proj_offloaded",
            {.mode = Recompute::kFull, .offload = Offload::kActivations, .kept = 1.25 / layer}},
           {"full + cpu offload", {.mode = Recompute::kFull, .offload = Offload::kActivations}},
           {"", {}},
           {"?", {}},
           {"not stated", {}},
           {"see recipe", {}},
           {"per recipe (src/megatron)", {}}}) {
    Warnings warnings;
    EXPECT_EQ(read_recompute_text(each.text, warnings), each.stated) << each.text;
    EXPECT_TRUE(warnings.empty()) << each.text << ": " << warnings.front();
  }
}

TEST(RunText, WarnsOfUnknownRecomputation) {
  Warnings warnings;
  EXPECT_EQ(read_recompute_text("telepathic", warnings).mode, std::nullopt);
  EXPECT_EQ(warnings.size(), 1U);
  EXPECT_EQ(read_recompute_text("full telepathic", warnings).mode, Recompute::kFull);
  EXPECT_EQ(warnings.size(), 2U);
  for (const std::string_view number : {"-1", "1.5", "1e999", "nan"}) {
    warnings.clear();
    EXPECT_EQ(read_recompute_text(number, warnings).mode, std::nullopt) << number;
    EXPECT_EQ(warnings.size(), 1U) << number;
  }
}

TEST(RunText, DatesReleasesInYearsSince2020) {
  Warnings warnings;
  EXPECT_EQ(read_release_text("26.04 NeMo Container", warnings), 6.25);
  EXPECT_EQ(read_release_text("nvcr nemo:25.12", warnings), 5 + 11 / 12.0);
  EXPECT_EQ(read_release_text("2024.01", warnings), 4.0);
  EXPECT_GT(read_release_text("26.04.01 NeMo Container", warnings), 6.25);
  EXPECT_LT(read_release_text("26.04.01 NeMo Container", warnings),
            read_release_text("26.05", warnings));
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(read_release_text("v0.17", warnings), std::nullopt);
  EXPECT_EQ(read_release_text("99.04", warnings), std::nullopt);
  EXPECT_EQ(warnings.size(), 2U);
}

TEST(RunText, ReadsTasks) {
  Warnings warnings;
  EXPECT_EQ(read_task_text("pretrain", warnings), TrainingTask::kPretrain);
  EXPECT_EQ(read_task_text("LoRA", warnings), TrainingTask::kLora);
  EXPECT_EQ(read_task_text("SFT", warnings), TrainingTask::kFineTune);
  EXPECT_EQ(read_task_text("fine-tune", warnings), TrainingTask::kFineTune);
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(read_task_text("dreaming", warnings), TrainingTask::kPretrain);
  EXPECT_EQ(warnings.size(), 1U);
}

TEST(RunText, NamesEnginesByFamilyAndComparesVersionsWithinOne) {
  Warnings warnings;
  const auto engine = [&](std::string_view text, std::string_view version) {
    return read_engine_text(text, version, warnings);
  };
  EXPECT_EQ(engine("TensorRT-LLM (PyTorch backend)", "1.2").family, "tensorrt-llm");
  EXPECT_EQ(engine("sglang", "v0.5.12-cu130").family, "sglang");
  EXPECT_EQ(engine("Optimum Habana / SynapseAI", "1.18.0").family, "optimum-habana");
  EXPECT_EQ(engine("PyTorch", "").family, "pytorch");
  EXPECT_EQ(engine("vLLM (ROCm)", "0.10.0").version, 0.10);
  EXPECT_LT(engine("vLLM", "0.9.2").version, engine("vLLM", "0.10.0").version);
  EXPECT_LT(engine("TensorRT-LLM", "1.2.0rc6.post2").version,
            engine("TensorRT-LLM", "1.2.0").version);
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(engine("SGLang", "nightly-dev").version, std::nullopt);
  EXPECT_EQ(warnings.size(), 1U);
}

TEST(RunText, PlacesRoundsOfABenchmarkAmongVersions) {
  Warnings warnings;
  const ServingEngine own = read_engine_text("vLLM 0.6.5.dev964+mlperf50", "MLPerf v5.1", warnings);
  EXPECT_NEAR(own.version.value_or(0), 0.0605, 1e-12);
  // TensorRT's own 10.11 is no version of TensorRT-LLM.
  EXPECT_EQ(read_engine_text("TensorRT 10.11", "MLPerf v5.1", warnings).version, 1.0);
  EXPECT_LT(read_engine_text("TensorRT 10.2", "MLPerf v4.1", warnings).version, 1.0);
  EXPECT_TRUE(warnings.empty());
}

TEST(RunText, ReadsFormatsOfWeightsAndCache) {
  Warnings warnings;
  EXPECT_EQ(read_format_text("mxfp4", warnings), NumberFormat::kFp4);
  EXPECT_EQ(read_format_text("int4", warnings), NumberFormat::kInt4);
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(read_format_text("magic", warnings), std::nullopt);
  EXPECT_EQ(warnings.size(), 1U);
}

}  // namespace
}  // namespace orrery

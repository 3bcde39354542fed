#include "perf/runs/run_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "perf/runs/run_file_test.hpp"

namespace orrery {
namespace {

using Warnings = std::vector<std::string>;

Result<Model> read(const std::string& json, Warnings* warnings = nullptr) {
  const Result<Document> document = Document::parse(json, "runs.json");
  if (!document) return tl::unexpected<Error>(document.error());
  Warnings ignored;
  return read_run_model(document->root(), built_in().models, 2048,
                        warnings != nullptr ? *warnings : ignored);
}

Transformer shape_of(const std::string& json) {
  const Result<Model> model = read(json);
  if (!model) ADD_FAILURE() << model.error().text();
  const auto* shape = model ? std::get_if<Transformer>(&model->architecture) : nullptr;
  return shape != nullptr ? *shape : Transformer{};
}

std::string error_text(const std::string& json) {
  const Result<Model> model = read(json);
  return model ? "" : model.error().text();
}

double billions(const std::string& json) {
  const Result<Model> model = read(json);
  return model ? count_parameters(*model).total / 1e9 : 0;
}

constexpr std::string_view kLlama70 =
    R"("hidden":8192,"heads":64,"kv_heads":8,"head_dim":128,"ffn":28672,"gated_mlp":true,
    "vocab":128256)";

std::string with_llama70(std::string_view more) {
  return "{" + std::string(more) + "," + std::string(kLlama70) + "}";
}

TEST(RunModel, FindsNamesWhateverTheirPunctuationAndDecoration) {
  for (const std::string_view name :
       {"Llama3.1 405B", "llama_3.1_405b", "Llama-3.1-405B-MaxText", "Llama3.1 405B (truncated)",
        "Llama3.1 405B pad (truncated)", "Llama 3.1 405B LoRA", "meta-llama/Llama-3.1-405B"}) {
    const CatalogModel* found = find_run_model(name, built_in().models);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->model.name, "llama-3.1-405b") << name;
  }
  EXPECT_EQ(find_run_model("Llama 9 1B", built_in().models), nullptr);
  EXPECT_EQ(find_run_model("", built_in().models), nullptr);
}

TEST(RunModel, TakesTheCatalogsArchitectureForANameAlone) {
  EXPECT_NEAR(billions(R"({"name": "Mixtral 8x7B", "seq": 4096})"), 46.7, 0.05);
  EXPECT_NEAR(billions(R"("Mixtral 8x7B")"), 46.7, 0.05);
  EXPECT_EQ(read(R"({"name": "wan2.1-14b"})")->name, "wan2.1-14b");
}

TEST(RunModel, RefusesAnUnknownNameWithoutAShapeAndNamesTheNearest) {
  const std::string error = error_text("{\n \"name\": \"Mixtrel 8x7B\"}");
  EXPECT_NE(error.find("runs.json:1:1: \"model\""), std::string::npos) << error;
  EXPECT_NE(error.find("did you mean \"Mixtral 8x7B\""), std::string::npos) << error;
  EXPECT_NE(error_text(R"({"name": "DeepSeekV4 Flash"})").find("DeepSeekV3"), std::string::npos);
}

TEST(RunModel, LetsTheShapeOverrideTheCatalog) {
  const Transformer cut =
      shape_of(with_llama70(R"j("name":"Llama3 70B (truncated)","layers":12)j"));
  EXPECT_EQ(cut.layers.size(), 12U);
  EXPECT_EQ(cut.hidden, 8192);
  EXPECT_NEAR(billions(with_llama70(R"("name":"Llama3 70B","layers":80)")), 70.55, 0.01);
  const Transformer padded = shape_of(
      R"({"name":"Llama3.1 405B pad","layers":4,"hidden":16384,"heads":128,"kv_heads":16,
      "head_dim":128,"ffn":53248,"gated_mlp":true,"vocab":128256})");
  EXPECT_EQ(padded.attention.kv_heads, 16);
  EXPECT_EQ(padded.full_attention.kv_heads, 16);
}

TEST(RunModel, TakesWindowsAndLatentSizesFromTheCatalog) {
  const Transformer oss = shape_of(
      R"({"name":"gpt-oss-120b","layers":36,"hidden":2880,"heads":64,"kv_heads":8,"head_dim":64,
      "ffn":2880,"gated_mlp":true,"vocab":201088,
      "moe":{"experts":128,"topk":4,"expert_ffn":2880,"shared_ffn":0,"dense_layers":0}})");
  EXPECT_EQ(oss.window, 128);
  EXPECT_EQ(oss.layers[0].mixer, Mixer::kSlidingAttention);
  EXPECT_EQ(oss.layers[1].mixer, Mixer::kFullAttention);
  const Transformer cut = shape_of(
      R"j({"name":"DeepSeek-V2 (truncated)","layers":4,"hidden":5120,"heads":128,"kv_heads":128,
      "head_dim":40,"ffn":12288,"gated_mlp":true,"vocab":102400,"attention":"MLA",
      "moe":{"experts":160,"topk":6,"expert_ffn":1536,"shared_ffn":3072,"dense_layers":1}})j");
  ASSERT_TRUE(cut.latent);
  EXPECT_EQ(cut.latent->kv_rank, 512);
  EXPECT_EQ(cut.layers[0].feed_forward, FeedForward::kDense);
  EXPECT_EQ(cut.layers[1].feed_forward, FeedForward::kExperts);
  EXPECT_EQ(cut.prediction_layers, 0);
}

constexpr std::string_view kUnknownLatent =
    R"({"name":"Novel-1","layers":6,"hidden":1024,"heads":16,"ffn":4096,"vocab":9000,
    "attention":"MLA","moe":{"experts":16,"top_k":2,"moe_ffn":512,"shared":2,"dense_layers":2}})";

TEST(RunModel, FallsBackToDeepSeekV2sLatentSizesWithAWarning) {
  Warnings warnings;
  const Result<Model> model = read(std::string(kUnknownLatent), &warnings);
  ASSERT_TRUE(model) << model.error().text();
  const auto& shape = std::get<Transformer>(model->architecture);
  ASSERT_TRUE(shape.latent);
  EXPECT_EQ(shape.latent->query_rank, 1536);
  EXPECT_EQ(shape.latent->heads, 16);
  ASSERT_TRUE(shape.experts);
  EXPECT_EQ(shape.experts->shared_ffn, 2 * 512);
  EXPECT_EQ(shape.layers[1].feed_forward, FeedForward::kDense);
  EXPECT_EQ(shape.layers[2].feed_forward, FeedForward::kExperts);
  EXPECT_EQ(warnings.size(), 1U);
}

TEST(RunModel, CountsAnUnknownShapeWithTheRulesOfItsFamily) {
  // By hand: 12 h^2 + 13 h a layer, tied embedding, position table and final norm.
  EXPECT_EQ(billions(R"({"name":"GPT tiny","layers":2,"hidden":64,"heads":8,"kv_heads":8,
      "head_dim":8,"ffn":256,"gated_mlp":false,"vocab":100})") *
                1e9,
            2 * (12 * 64 * 64 + 13 * 64) + 100 * 64 + 2048 * 64 + 2 * 64);
  const Transformer gated = shape_of(
      R"({"name":"MaxText tiny","layers":2,"hidden":64,"heads":8,"ffn":256,"gated_mlp":true,
      "vocab":100})");
  EXPECT_FALSE(gated.attention.qkv_bias);
  EXPECT_EQ(gated.attention.head_dim, 8);
  EXPECT_EQ(gated.attention.kv_heads, 8);
  EXPECT_EQ(shape_of(R"({"name":"BLOOM-like 1B","layers":2,"hidden":64,"heads":8,"ffn":256,
      "gated_mlp":false,"vocab":100})")
                .embedding_norms,
            1);
}

TEST(RunModel, ReadsWindowsAndLinearLayersOfUnknownModels) {
  const Transformer windowed = shape_of(
      R"({"name":"Novel-2","layers":4,"hidden":64,"heads":8,"ffn":256,"vocab":100,
      "sliding_window":128,"sliding_every":2})");
  EXPECT_EQ(windowed.window, 128);
  EXPECT_EQ(std::count_if(windowed.layers.begin(), windowed.layers.end(),
                          [](const Layer& l) { return l.mixer == Mixer::kSlidingAttention; }),
            2);
  const Transformer linear = shape_of(
      R"({"name":"Novel-3","layers":8,"hidden":64,"heads":8,"ffn":256,"vocab":100,
      "full_attention_interval":4,
      "linear_attention":{"value_heads":8,"key_heads":4,"head_dim":16}})");
  EXPECT_EQ(std::count_if(linear.layers.begin(), linear.layers.end(),
                          [](const Layer& l) { return l.mixer == Mixer::kDeltaNet; }),
            6);
}

TEST(RunModel, ReadsWhatAVariantSaysOfPredictionModules) {
  EXPECT_EQ(shape_of(R"j({"name":"DeepSeek-V3","variant":"(w/o MTP)"})j").prediction_layers, 0);
  EXPECT_EQ(shape_of(R"j({"name":"DeepSeek-V3","variant":"(w/ MTP)"})j").prediction_layers, 1);
  Warnings warnings;
  EXPECT_TRUE(read(R"({"name":"DeepSeek-V3","variant":"tokendrop"})", &warnings));
  EXPECT_EQ(warnings.size(), 1U);
}

struct Refusal {
  std::string_view more;
  std::string_view says;
};

TEST(RunModel, RefusesWrongSizesWithFieldAndRule) {
  for (const Refusal& each : std::initializer_list<Refusal>{
           {R"("layers":0)", "\"layers\": 0 is out of range"},
           {R"("layers":-4)", "\"layers\""},
           {R"("layers":"80")", "\"layers\": expected a whole number"},
           {R"("layers":2.5)", "\"layers\""},
           {R"("layers":NaN)", "\"layers\""},
           {R"("layers":4,"moe":{"experts":4,"topk":8,"expert_ffn":64})", "\"topk\""},
           {R"("layers":4,"moe":{"experts":4,"topk":2,"expert_ffn":64,"dense_layers":9})",
            "\"dense_layers\""},
           {R"("layers":4,"moe":{"experts":4})", "\"topk\""},
           {R"("layers":4,"moe":7)", "\"moe\""}}) {
    const std::string error = error_text(with_llama70(each.more));
    EXPECT_NE(error.find("\"model\""), std::string::npos) << each.more << " " << error;
    EXPECT_NE(error.find(each.says), std::string::npos) << each.more << " " << error;
  }
  EXPECT_NE(error_text(R"({"layers":2,"hidden":64,"heads":8,"kv_heads":3,"ffn":9,"vocab":9})")
                .find("not a multiple of 3"),
            std::string::npos);
  EXPECT_NE(error_text(R"({"layers":2,"hidden":65,"heads":8,"ffn":9,"vocab":9})").find("head_dim"),
            std::string::npos);
  EXPECT_NE(error_text(R"({"layers":2,"hidden":64,"heads":8,"ffn":9})").find("\"vocab\""),
            std::string::npos);
  EXPECT_NE(error_text(R"({"layers":9999,"hidden":9999999,"heads":9999999,"ffn":9999999,
      "vocab":9})")
                .find("parameters"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery

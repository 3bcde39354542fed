#include "workload/models/model_config.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "workload/models/model_catalog_test.hpp"

namespace orrery {
namespace {

Result<Model> read(std::string_view json) {
  const Result<Document> document = Document::parse(json, "config.json");
  if (!document) return tl::unexpected<Error>(document.error());
  return read_model_config(document->root());
}

Model read_well(std::string_view json) {
  Result<Model> model = read(json);
  if (model) return *std::move(model);
  ADD_FAILURE() << model.error().text() << "\n" << json;
  return {};
}

Transformer transformer(std::string_view json) {
  const Model model = read_well(json);
  const auto* shape = std::get_if<Transformer>(&model.architecture);
  return shape != nullptr ? *shape : Transformer{};
}

Model model_of(const Transformer& shape) {
  Model model;
  model.architecture = shape;
  return model;
}

double total(std::string_view json) { return count_parameters(read_well(json)).total; }

// A small Llama with more keys, comma first.
std::string llama(std::string_view more) {
  return std::string(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4,
    "num_attention_heads": 8, "vocab_size": 100)") +
         std::string(more) + "}";
}

constexpr std::string_view kFfn = R"(, "intermediate_size": 96)";

std::string plain_llama(std::string_view more) {
  return llama(std::string(kFfn) + std::string(more));
}

// By hand: per layer 4 x 64^2 attention, 3 x 64 x 96 feed-forward, 2 norms; embedding, head, norm.
TEST(ModelConfig, ReadsASmallLlamaAndCountsItByHand) {
  EXPECT_EQ(total(plain_llama("")), 4 * (4 * 64 * 64 + 3 * 64 * 96 + 2 * 64) + 2 * 6400 + 64);
  EXPECT_EQ(total(plain_llama(R"(, "tie_word_embeddings": true)")), total(plain_llama("")) - 6400);
}

TEST(ModelConfig, ReadsTheNamesOfGpt2) {
  // GPT-2 small as published: 124,439,808 parameters, four times the width inside.
  const Transformer gpt2 = transformer(R"({"architectures": ["GPT2LMHeadModel"],
      "model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768, "n_ctx": 1024,
      "n_positions": 1024, "n_inner": null, "vocab_size": 50257, "layer_norm_epsilon": 1e-05})");
  EXPECT_EQ(gpt2.ffn, 3072);
  EXPECT_EQ(gpt2.attention.head_dim, 64);
  EXPECT_EQ(gpt2.learned_positions, 1024);
  EXPECT_TRUE(gpt2.tied);
  EXPECT_EQ(count_parameters(model_of(gpt2)).total, 124'439'808);
}

TEST(ModelConfig, ReadsWhatALauncherIsTold) {
  const Transformer plain = transformer(plain_llama(""));
  EXPECT_FALSE(plain.rotary.base || plain.norm_epsilon);
  EXPECT_EQ(plain.rotary.stretch, Rotary::Stretch::kNone);
  const Transformer llama3 =
      transformer(plain_llama(R"(, "rope_theta": 500000.0, "rms_norm_eps": 1e-05, "rope_scaling": {
        "factor": 8.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192,
        "rope_type": "llama3"})"));
  EXPECT_EQ(llama3.rotary.base, 500000);
  EXPECT_EQ(llama3.norm_epsilon, 1e-5);
  EXPECT_EQ(llama3.rotary.stretch, Rotary::Stretch::kLlama3);
  EXPECT_EQ(llama3.rotary.factor, 8);
  // Newer libraries keep the base inside.
  const Transformer newer = transformer(plain_llama(
      R"(, "rope_parameters": {"rope_type": "yarn", "rope_theta": 150000, "factor": 32,
        "beta_fast": 16, "truncate": false})"));
  EXPECT_EQ(newer.rotary.base, 150000);
  EXPECT_EQ(newer.rotary.stretch, Rotary::Stretch::kYarn);
  EXPECT_EQ(newer.rotary.beta_fast, 16);
  EXPECT_FALSE(newer.rotary.whole_bounds);
  EXPECT_EQ(transformer(plain_llama(R"(, "rope_scaling": {"type": "dynamic", "factor": 2})"))
                .rotary.stretch,
            Rotary::Stretch::kOther);
  EXPECT_EQ(transformer(plain_llama(R"(, "rope_scaling": null)")).rotary.stretch,
            Rotary::Stretch::kNone);
  const Router router =
      transformer(plain_llama(R"(, "num_experts": 8, "num_experts_per_tok": 2, "n_group": 4,
        "topk_group": 2, "scoring_func": "sigmoid", "routed_scaling_factor": 2.5)"))
          .experts->router;
  EXPECT_EQ(router.score, Router::Score::kSigmoid);
  EXPECT_EQ(router.groups, 4);
  EXPECT_EQ(router.groups_active, 2);
  EXPECT_EQ(router.scale, 2.5);
  EXPECT_FALSE(read(plain_llama(R"(, "rope_theta": "much")")));
}

TEST(ModelConfig, AMissingHeadDimIsTheHiddenSizeByHeads) {
  EXPECT_EQ(transformer(plain_llama("")).attention.head_dim, 8);
  EXPECT_EQ(transformer(plain_llama(R"(, "head_dim": 32)")).attention.head_dim, 32);
}

TEST(ModelConfig, MissingKeyValueHeadsAreTheHeadsOrOneOfMultiQuery) {
  EXPECT_EQ(transformer(plain_llama("")).attention.kv_heads, 8);
  EXPECT_EQ(transformer(plain_llama(R"(, "num_key_value_heads": 2)")).attention.kv_heads, 2);
  EXPECT_EQ(transformer(plain_llama(R"(, "multi_query": true)")).attention.kv_heads, 1);
}

TEST(ModelConfig, ExpertsGoByThreeNames) {
  const std::string rest = R"(, "moe_intermediate_size": 32)";
  const double expected =
      total(plain_llama(R"(, "num_experts": 6, "num_experts_per_tok": 2)" + rest));
  EXPECT_EQ(total(plain_llama(R"(, "num_local_experts": 6, "experts_per_token": 2)" + rest)),
            expected);
  EXPECT_EQ(total(plain_llama(R"(, "n_routed_experts": 6, "top_k_experts": 2)" + rest)), expected);
  EXPECT_EQ(expected, total(plain_llama("")) + 4 * (64 * 6 + 6 * 3 * 64 * 32 - 3 * 64 * 96));
}

TEST(ModelConfig, ActiveParametersLeaveTheIdleExpertsOut) {
  const Model model = read_well(
      plain_llama(R"(, "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 32)"));
  const ParameterCount count = count_parameters(model);
  EXPECT_EQ(count.total - count.active, 4 * 4 * 3 * 64 * 32);
}

TEST(ModelConfig, SharedExpertsAreAWidthOrACount) {
  const std::string experts =
      R"(, "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 32)";
  const Transformer counted = transformer(plain_llama(experts + R"(, "n_shared_experts": 2)"));
  EXPECT_EQ(counted.experts->shared_ffn, 64);
  const Transformer wide =
      transformer(plain_llama(experts + R"(, "shared_expert_intermediate_size": 48)"));
  EXPECT_EQ(wide.experts->shared_ffn, 48);
}

TEST(ModelConfig, DenseLayersAmongExpertsComeByFourKeys) {
  const std::string experts =
      R"(, "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 32)";
  const auto kinds = [&](std::string_view more) {
    std::string letters;
    for (const Layer& layer : transformer(plain_llama(experts + std::string(more))).layers) {
      letters += layer.feed_forward == FeedForward::kExperts ? 'E' : 'd';
    }
    return letters;
  };
  EXPECT_EQ(kinds(""), "EEEE");
  EXPECT_EQ(kinds(R"(, "first_k_dense_replace": 1)"), "dEEE");
  EXPECT_EQ(kinds(R"(, "moe_layer_freq": 2)"), "EdEd");
  EXPECT_EQ(kinds(R"(, "decoder_sparse_step": 2)"), "dEdE");
  EXPECT_EQ(kinds(R"(, "mlp_only_layers": [0, 3])"), "dEEd");
  EXPECT_EQ(kinds(R"(, "interleave_moe_layer_step": 4)"), "dddE");
}

constexpr std::string_view kLatent = R"(, "kv_lora_rank": 16, "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4, "v_head_dim": 8)";

TEST(ModelConfig, ReadsTheRanksOfLatentAttention) {
  const Transformer with =
      transformer(plain_llama(std::string(kLatent) + R"(, "q_lora_rank": 24)"));
  ASSERT_TRUE(with.latent);
  EXPECT_EQ(with.latent->query_rank, 24);
  EXPECT_EQ(with.layers.front().mixer, Mixer::kLatentAttention);
  // Keys and values: down to 16 + 4, up from 16; queries down to 24 and up; the output.
  const double attention = 64 * 20 + 16 * 8 * 16 + 8 * 8 * 64 + 64 * 24 + 24 * 8 * 12 + 16 + 24;
  EXPECT_EQ(count_parameters(model_of(with)).groups.front().parameters,
            attention + 3 * 64 * 96 + 2 * 64);
}

TEST(ModelConfig, LatentAttentionMayProjectQueriesDirectly) {
  const Transformer without =
      transformer(plain_llama(std::string(kLatent) + R"(, "q_lora_rank": null)"));
  const double attention = 64 * 20 + 16 * 8 * 16 + 8 * 8 * 64 + 64 * 8 * 12 + 16;
  EXPECT_EQ(count_parameters(model_of(without)).groups.front().parameters,
            attention + 3 * 64 * 96 + 2 * 64);
}

TEST(ModelConfig, AnExplicitNullBeatsTheClassDefault) {
  const std::string mistral = R"({"model_type": "mistral", "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 8, "vocab_size": 100, "intermediate_size": 96)";
  const Transformer absent = transformer(mistral + "}");
  EXPECT_EQ(absent.window, 4096);
  EXPECT_EQ(absent.layers.front().mixer, Mixer::kSlidingAttention);
  const Transformer null = transformer(mistral + R"(, "sliding_window": null})");
  EXPECT_EQ(null.layers.front().mixer, Mixer::kFullAttention);
  EXPECT_TRUE(read_well(mistral + R"(, "sliding_window": null})").assumptions.empty());
  EXPECT_EQ(
      read_well(mistral + "}").assumptions,
      std::vector<std::string>{"sliding_window is not given; 4096 is the default of mistral"});
}

TEST(ModelConfig, LayerTypesNameEachMixer) {
  const Transformer mixed = transformer(plain_llama(R"(, "sliding_window": 32, "layer_types":
      ["sliding_attention", "full_attention", "sliding_attention", "full_attention"])"));
  EXPECT_EQ(mixed.layers[0].mixer, Mixer::kSlidingAttention);
  EXPECT_EQ(mixed.layers[1].mixer, Mixer::kFullAttention);
  EXPECT_EQ(mixed.window, 32);
}

TEST(ModelConfig, TheWeightsFormatMayBeMissing) {
  EXPECT_EQ(read_well(plain_llama("")).weight_format, std::nullopt);
  EXPECT_EQ(read_well(plain_llama(R"(, "torch_dtype": null)")).weight_format, std::nullopt);
  EXPECT_EQ(read_well(plain_llama(R"(, "torch_dtype": "auto")")).weight_format, std::nullopt);
  EXPECT_EQ(read_well(plain_llama(R"(, "torch_dtype": "bfloat16")")).weight_format,
            NumberFormat::kBf16);
  EXPECT_EQ(read_well(plain_llama(R"(, "dtype": "float16")")).weight_format, NumberFormat::kFp16);
}

TEST(ModelConfig, QuantisationNamesTheFormatOfTheMatrices) {
  const auto format = [](std::string_view inner) {
    return read_well(plain_llama(", \"torch_dtype\": \"bfloat16\", \"quantization_config\": " +
                                 std::string(inner)))
        .quantized_format;
  };
  EXPECT_EQ(format("null"), std::nullopt);
  EXPECT_EQ(format(R"({"quant_method": "fp8", "weight_block_size": [128, 128]})"),
            NumberFormat::kFp8);
  EXPECT_EQ(format(R"({"quant_method": "mxfp4"})"), NumberFormat::kFp4);
  EXPECT_EQ(format(R"({"quant_method": "gptq", "bits": 8})"), NumberFormat::kInt8);
  EXPECT_EQ(format(R"({"quant_method": "awq", "bits": 4})"), NumberFormat::kInt4);
  EXPECT_EQ(format(R"({"quant_method": "bitsandbytes", "load_in_8bit": true})"),
            NumberFormat::kInt8);
  EXPECT_EQ(format(R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})"), NumberFormat::kFp4);
  EXPECT_EQ(format(R"({"quant_method": "compressed-tensors", "config_groups":
               {"group_0": {"weights": {"num_bits": 8, "type": "float"}}}})"),
            NumberFormat::kFp8);
}

TEST(ModelConfig, AnUnknownQuantisationIsAnAssumption) {
  const Model model = read_well(plain_llama(R"(, "quantization_config": {"quant_method": "new"})"));
  EXPECT_EQ(model.quantized_format, std::nullopt);
  ASSERT_EQ(model.assumptions.size(), 1u);
  EXPECT_NE(model.assumptions[0].find("\"new\" is not known"), std::string::npos);
}

constexpr std::string_view kVision = R"("vision_config": {"model_type": "clip_vision_model",
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "image_size": 28, "patch_size": 14})";

std::string wrapped(std::string_view type, std::string_view text, std::string_view more) {
  return "{\"model_type\": \"" + std::string(type) + "\", \"text_config\": " + std::string(text) +
         ", " + std::string(kVision) + std::string(more) + "}";
}

TEST(ModelConfig, ReadsALanguageModelInsideAMultimodalOne) {
  const std::string text = plain_llama("");
  const Model model = read_well(wrapped("llava", text, ""));
  const ParameterCount count = count_parameters(model);
  EXPECT_EQ(model.type, "llama");
  // Two blocks; patch embedding and class token; 5 positions, 2 norms; a projector of two layers.
  const double block = 4 * (32 * 32 + 32) + 2 * 32 * 48 + 48 + 32 + 4 * 32;
  const double tower = 2 * block + 3 * 14 * 14 * 32 + 32 + 5 * 32 + 4 * 32;
  EXPECT_EQ(count.vision, tower + 32 * 64 + 64 + 64 * 64 + 64);
  EXPECT_EQ(count.total, total(text) + count.vision);
  EXPECT_EQ(count.active, total(text));
  EXPECT_EQ(count_parameters(read_well(wrapped("other", text, ""))).vision, tower);
}

TEST(ModelConfig, TheTextPartInheritsTyingOnlyWhenItSaysNothing) {
  const auto tied = [](std::string_view inner, std::string_view outer) {
    const Model model = read_well(wrapped("llava", plain_llama(inner), outer));
    return std::get<Transformer>(model.architecture).tied;
  };
  EXPECT_FALSE(tied("", ""));
  EXPECT_TRUE(tied("", R"(, "tie_word_embeddings": true)"));
  EXPECT_FALSE(tied(R"(, "tie_word_embeddings": false)", R"(, "tie_word_embeddings": true)"));
  EXPECT_FALSE(tied(R"(, "tie_word_embeddings": null)", R"(, "tie_word_embeddings": true)"));
}

TEST(ModelConfig, ASparseTextPartTakesClassDefaultsAndSaysSo) {
  const Model model = read_well(wrapped("llava", R"({"vocab_size": 32064})", ""));
  const auto& shape = std::get<Transformer>(model.architecture);
  EXPECT_EQ(shape.hidden, 4096);
  EXPECT_EQ(shape.layers.size(), 32u);
  EXPECT_EQ(model.assumptions.size(), 4u);
}

TEST(ModelConfig, AnUnknownImageTowerIsNotCountedAndSaysSo) {
  const Model model = read_well(R"({"model_type": "new_vl", "text_config": )" + plain_llama("") +
                                R"(, "vision_config": {"model_type": "new_tower"}})");
  EXPECT_EQ(count_parameters(model).vision, 0);
  ASSERT_EQ(model.assumptions.size(), 1u);
  EXPECT_NE(model.assumptions[0].find("new_tower"), std::string::npos);
}

TEST(ModelConfig, AnUnknownTypeIsCountedAsLlamaAndSaysSo) {
  std::string json = plain_llama("");
  json.replace(json.find("llama"), 5, "novel");
  const Model model = read_well(json);
  EXPECT_EQ(count_parameters(model).total, total(plain_llama("")));
  ASSERT_EQ(model.assumptions.size(), 1u);
  EXPECT_NE(model.assumptions[0].find("\"novel\" is not known"), std::string::npos);
}

TEST(ModelConfig, OlderFamiliesDifferByTheirOwnKeys) {
  const std::string mpt = R"({"model_type": "mpt", "d_model": 64, "n_layers": 2, "n_heads": 4,
      "vocab_size": 100, "max_seq_len": 128)";
  const double plain = total(mpt + "}");
  EXPECT_EQ(total(mpt + R"(, "expansion_ratio": 2})"), plain - 2 * 2 * 64 * 128);
  EXPECT_EQ(total(mpt + R"(, "attn_config": {"alibi": false}})"), plain + 128 * 64);
  // Shifts of 5 norms; biases of queries, keys, values, output and two matrices, in 2 layers.
  EXPECT_EQ(total(mpt + R"(, "no_bias": false})"), plain + 5 * 64 + 2 * (4 * 64 + 256 + 64));

  const std::string falcon = R"({"model_type": "falcon", "hidden_size": 64, "n_layer": 2,
      "n_head": 8, "vocab_size": 100)";
  EXPECT_EQ(total(falcon + R"(, "new_decoder_architecture": true})"),
            total(falcon + "}") + 2 * 2 * 64);
  EXPECT_EQ(total(falcon + R"(, "bias": true})"), total(falcon + "}") + 2 * (4 * 64 + 256 + 64));
}

TEST(ModelConfig, ClassesOfAnImageModelMayBeListed) {
  const std::string vit = R"({"model_type": "vit", "hidden_size": 32, "num_hidden_layers": 2,
      "intermediate_size": 64, "image_size": 28, "patch_size": 14)";
  EXPECT_EQ(total(vit + R"(, "id2label": {"0": "cat", "1": "dog"}})"),
            total(vit + "}") + 2 * 32 + 2);
  EXPECT_EQ(total(vit + R"(, "num_labels": 2})"), total(vit + "}") + 2 * 32 + 2);
}

struct Hostile {
  std::string json;
  std::string_view error;  ///< how the error begins
};

void expect_errors(const std::vector<Hostile>& table) {
  for (const Hostile& hostile : table) {
    const Result<Model> model = read(hostile.json);
    ASSERT_FALSE(model) << hostile.json;
    EXPECT_TRUE(model.error().text().starts_with(hostile.error))
        << model.error().text() << "\nexpected " << hostile.error << "\n"
        << hostile.json;
    EXPECT_EQ(model.error().kind, ErrorKind::kInput);
  }
}

TEST(ModelConfig, AConfigurationThatIsNoneIsAnErrorAtItsPlace) {
  expect_errors({
      {"[]", "config.json:1:1: expected a mapping"},
      {"7", "config.json:1:1: expected a mapping"},
      {"", "config.json:1:1: "},
      {"{", "config.json:"},
      {"{}", "config.json:1:1: the key \"model_type\" is missing"},
      {R"({"model_type": null})", "config.json:1:1: the key \"model_type\" is missing"},
      {R"({"model_type": ["llama"]})", "config.json:1:16: \"model_type\": expected text"},
      {R"({"model_type": "llama"})", "config.json:1:1: the key \"hidden_size\" is missing"},
      {R"({"model_type": "novel", "hidden_size": 64})",
       "config.json:1:1: the key \"vocab_size\" is missing (model_type \"novel\")"},
      {R"({"model_type": "t5", "is_encoder_decoder": true})",
       "config.json:1:44: \"is_encoder_decoder\": encoder-decoder models are not supported"},
      {R"({"model_type": "llava", "text_config": []})", "config.json:1:40: expected a mapping"},
      {R"({"model_type": "llava", "text_config": {"model_type": 1.5, "hidden_size": "x"}})",
       "config.json:1:75: \"hidden_size\": expected a whole number, found \"x\""},
  });
}

// The value of one key of the small Llama is replaced; it stands at line 2, column 30.
TEST(ModelConfig, AWrongSizeIsAnErrorAtItsPlace) {
  const auto with = [](std::string_view value) {
    return "{\"model_type\": \"llama\", \"hidden_size\": 64, \"vocab_size\": 100,\n"
           " \"num_attention_heads\": 8, \"num_hidden_layers\": " +
           std::string(value) + ", \"intermediate_size\": 96}";
  };
  const std::string_view place = "config.json:2:49: \"num_hidden_layers\": ";
  for (const std::string_view value : {"0", "-4", "1e9", "4.5", "\"4\"", "true", "[4]", "{}",
                                       ".nan", ".inf", "1e400", "99999999999999999999"}) {
    const Result<Model> model = read(with(value));
    ASSERT_FALSE(model) << value;
    EXPECT_TRUE(model.error().text().starts_with(place)) << model.error().text();
  }
  EXPECT_TRUE(read(with("4.0")));
  const Result<Model> null = read(with("null"));
  ASSERT_FALSE(null);
  EXPECT_EQ(null.error().text(),
            "config.json:1:1: the key \"num_hidden_layers\" is missing; other names for it: "
            "\"n_layer\", \"n_layers\"");
}

TEST(ModelConfig, ContradictingSizesAreAnErrorAtOneOfThem) {
  const std::string experts = R"(, "num_experts": 6,
 "num_experts_per_tok": )";
  expect_errors({
      {plain_llama(R"(,
 "num_key_value_heads": 3)"),
       "config.json:3:25: 8 attention heads are not a multiple of 3 key-value heads"},
      {R"({"model_type": "llama", "hidden_size": 65, "num_hidden_layers": 4, "vocab_size": 9,
 "num_attention_heads": 8})",
       "config.json:2:25: the hidden size 65 is not a multiple of 8 attention heads"},
      {plain_llama(experts + "7"), "config.json:3:25: 7 experts a token of 6 experts in all"},
      {plain_llama(experts + "0"), "config.json:3:25: \"num_experts_per_tok\": 0 is out of range"},
      {plain_llama(experts + "null"),
       "config.json:1:1: the key \"num_experts_per_tok\" is missing"},
      {llama(""), "config.json:1:1: the key \"intermediate_size\" is missing"},
      {plain_llama(R"(,
 "layer_types": ["full_attention"])"),
       "config.json:3:17: \"layer_types\" has 1 entries for 4 layers"},
      {plain_llama(R"(,
 "layer_types": "full_attention")"),
       "config.json:3:17: \"layer_types\" has 0 entries for 4 layers"},
      {plain_llama(R"(, "layer_types": ["full_attention", "full_attention",
 "ful_attention", "full_attention"])"),
       "config.json:3:2: unknown value \"ful_attention\", did you mean \"full_attention\"?"},
      {plain_llama(R"(, "layer_types": ["full_attention", "full_attention", "full_attention",
 "sliding_attention"])"),
       "config.json:1:1: the key \"sliding_window\" is missing"},
      {plain_llama(R"(, "kv_lora_rank": 16)"),
       "config.json:1:1: the key \"qk_nope_head_dim\" is missing"},
      {plain_llama(R"(, "full_attention_interval": 4)"),
       "config.json:1:1: the key \"linear_num_key_heads\" is missing"},
      {plain_llama(R"(,
 "mlp_only_layers": [1, -2])" +
                   experts + "2"),
       "config.json:3:25: \"mlp_only_layers\": -2 is out of range"},
      {plain_llama(R"(,
 "tie_word_embeddings": "false")"),
       "config.json:3:25: \"tie_word_embeddings\": expected true or false"},
      {plain_llama(R"(,
 "torch_dtype": "bfloat17")"),
       "config.json:3:17: \"torch_dtype\": unknown format \"bfloat17\""},
      {plain_llama(R"(,
 "quantization_config": "fp8")"),
       "config.json:3:25: expected a mapping, found \"fp8\""},
      {plain_llama(R"(,
 "hidden_size": 64)"),
       "config.json:3:2: the key \"hidden_size\" stands twice"},
  });
}

TEST(ModelConfig, WhatOneFamilyNeedsIsAnErrorAtItsPlace) {
  const std::string nemotron = R"({"model_type": "nemotron_h", "hidden_size": 64, "vocab_size": 9,
 "num_attention_heads": 8, "num_hidden_layers": 2, )";
  const std::string dlrm = R"({"model_type": "dlrm", "embedding_dim": 8, "num_dense_features": 2,
 "top_mlp": [4, 1], "interaction": "dot", )";
  expect_errors({
      {R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 9})",
       "config.json:1:1: the key \"n_positions\" is missing"},
      {nemotron + "}", "config.json:1:1: the key \"hybrid_override_pattern\" is missing"},
      {nemotron + "\"hybrid_override_pattern\": \"M\"}",
       "config.json:2:79: \"hybrid_override_pattern\" has 1 entries for 2 layers"},
      {nemotron + "\"hybrid_override_pattern\": \"**X\"}",
       "config.json:2:79: \"hybrid_override_pattern\" has 3 entries for 2 layers"},
      {nemotron + "\"hybrid_override_pattern\": \"*X\"}",
       "config.json:2:79: \"hybrid_override_pattern\": expected the letters M, *, - and E"},
      {nemotron + "\"hybrid_override_pattern\": \"*E\"}",
       "config.json:1:1: the key \"num_experts\" is missing"},
      {nemotron + "\"hybrid_override_pattern\": \"*M\"}",
       "config.json:1:1: the key \"mamba_num_heads\" is missing"},
      {dlrm + "\"bottom_mlp\": [8]}", "config.json:1:1: the key \"embedding_tables\" is missing"},
      {dlrm + "\"bottom_mlp\": [4], \"embedding_tables\": [5]}",
       "config.json:2:57: \"bottom_mlp\" ends in 4, not in the width 8"},
      {dlrm + "\"bottom_mlp\": [], \"embedding_tables\": [5]}",
       "config.json:2:57: \"bottom_mlp\": expected at least one width"},
      {dlrm + "\"bottom_mlp\": [8], \"embedding_tables\": [5, 0]}",
       "config.json:2:86: \"embedding_tables\": 0 is out of range"},
      {dlrm + "\"bottom_mlp\": [8], \"embedding_tables\": [5], \"multi_hot_sizes\": [1, 1]}",
       "config.json:2:106: \"multi_hot_sizes\" has 2 entries for 1 tables"},
      {R"({"model_type": "vit", "hidden_size": 32, "num_hidden_layers": 2,
 "intermediate_size": 64, "image_size": 28, "patch_size": 29})",
       "config.json:2:59: \"patch_size\": 29 is more than the 28 pixels of \"image_size\""},
      {R"({"model_type": "llama", "hidden_size": 16000000, "num_hidden_layers": 10000,
 "num_attention_heads": 8, "vocab_size": 9, "intermediate_size": 16000000})",
       "config.json:1:1: the sizes given here make 1.79e+19 parameters, more than the 1e+15"},
  });
}

// Where the values of a catalog file's configuration stand: "key: value" lines after "config:".
std::vector<std::pair<std::size_t, std::size_t>> config_values(std::string_view text) {
  std::vector<std::pair<std::size_t, std::size_t>> values;
  std::size_t line = text.find("\nconfig:\n");
  while (line != std::string_view::npos) {
    const std::size_t end = text.find('\n', line + 1);
    const std::size_t value = text.find(": ", line + 1);
    if (value < end && end != std::string_view::npos) values.push_back({value + 2, end});
    line = end;
  }
  return values;
}

// Every value of every configuration of the catalog in turn is replaced by nonsense: the reader
// accepts it, with a positive finite count, or refuses it with a position in the file.
TEST(ModelConfig, NoSingleWrongValueBreaksTheReader) {
  int refused = 0;
  std::size_t places = 0;
  for (const auto& [file, text] : repository_model_files()) {
    for (const auto& [begin, end] : config_values(text)) {
      // Half of the values at a place, the other half at the next.
      std::size_t turn = places++;
      for (const std::string_view value : {"0", "-1", "1e300", "3", "null", "true", "[]", "{}"}) {
        if (turn++ % 2 != 0) continue;
        std::string changed = text;
        changed.replace(begin, end - begin, value);
        const EmbeddedFile source{file, changed};
        const auto catalog = ModelCatalog::load({&source, 1}, {});
        if (!catalog) {
          EXPECT_GT(catalog.error().where.line, 0) << catalog.error().text() << "\n" << changed;
          ++refused;
          continue;
        }
        const double parameters = count_parameters(catalog->all().front().model).total;
        EXPECT_TRUE(parameters > 0 && parameters <= kParametersMax) << changed;
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

// Configurations as published, when the data beside the repository is there.
TEST(ModelConfig, ReadsThePublishedConfigurationsOfTheSharedData) {
  const char* given = std::getenv("ORRERY_SHARED_DATA");
  const std::filesystem::path directory =
      std::filesystem::path(given != nullptr ? given
                                             : std::string(ORRERY_SOURCE_DIR) + "/../shared/data") /
      "traces/models";
  if (!std::filesystem::is_directory(directory)) {
    GTEST_SKIP() << "NOT CHECKED: no published configurations in " << directory
                 << "; set ORRERY_SHARED_DATA to the directory that has traces/models";
  }
  ASSERT_TRUE(repository_models()) << repository_models().error().text();
  int checked = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".json") continue;
    const Result<Model> model = load_model(entry.path().string(), *repository_models());
    ASSERT_TRUE(model) << model.error().text();
    // "owner--name.config.json" is in the catalog as "owner/name", or by the name alone.
    std::string name = entry.path().stem().stem().string();
    const std::size_t dashes = name.find("--");
    ASSERT_NE(dashes, std::string::npos) << name;
    const CatalogModel* known =
        repository_models()->find(name.substr(0, dashes) + "/" + name.substr(dashes + 2));
    if (known == nullptr) known = repository_models()->find(name.substr(dashes + 2));
    ASSERT_NE(known, nullptr) << name;
    const ParameterCount read_count = count_parameters(*model);
    const ParameterCount known_count = count_parameters(known->model);
    EXPECT_EQ(read_count.total, known_count.total) << name;
    EXPECT_EQ(read_count.active, known_count.active) << name;
    ++checked;
  }
  EXPECT_GT(checked, 0);
}

}  // namespace
}  // namespace orrery

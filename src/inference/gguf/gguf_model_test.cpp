#include "inference/gguf/gguf_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "inference/engine/model_files.hpp"
#include "inference/formats/model_writer_test.hpp"
#include "runtime/checkpoint/saved_state_test.hpp"

namespace orrery {
namespace {

bool is_turned(const std::string& name) {
  return name.ends_with("q_proj.weight") || name.ends_with("k_proj.weight");
}

std::vector<std::uint64_t> shape_of(const ParameterTensor& tensor) {
  return {tensor.shape.begin(), tensor.shape.end()};
}

/// Adds the tensors of a model as llama.cpp's converter does.
void add_tensors(const ParameterLayout& layout, std::span<const float> parameters,
                 TensorEncoding encoding, GgufForTest& file) {
  for (const ParameterTensor& tensor : layout.tensors()) {
    const auto weights = parameters.subspan(tensor.begin, tensor.size);
    std::vector<float> stored(weights.begin(), weights.end());
    if (is_turned(tensor.name)) {
      stored = interleaved(weights, static_cast<std::size_t>(tensor.shape.back()),
                           static_cast<std::size_t>(layout.config().head_width()));
    }
    file.tensor(gguf_name(tensor.name),
                {encoding, shape_of(tensor), float_bytes(encoding, stored)});
  }
}

class GgufModelTest : public CheckpointTest {
 protected:
  [[nodiscard]] static TransformerConfig tiny() {
    TransformerConfig config = ServedModelForTest::tiny(TransformerFamily::kLlama);
    config.vocab = kByteTokens;
    return config;
  }
  [[nodiscard]] std::string path() const { return directory_ + "/tiny.gguf"; }
  [[nodiscard]] Result<ServedModel> load(const std::string& bytes) const {
    write_file(path(), bytes);
    return load_served_model({.checkpoint = path()});
  }
  [[nodiscard]] std::string refusal(const std::string& bytes) const {
    const Result<ServedModel> model = load(bytes);
    return model ? "" : model.error().text();
  }
};

TEST_F(GgufModelTest, ALlamaInEachFloatTypeGeneratesTheTokensOfItsTrainer) {
  for (const bool tied : {false, true}) {
    TransformerConfig config = tiny();
    config.tied_embedding = tied;
    const ParameterLayout layout(config);
    const AlignedFloats parameters = coarse(lively_parameters(layout, 0.3));
    TrainableTransformer trainer(config, 1);
    const std::vector<std::int32_t> prompt = random_tokens(20, config.vocab, 3);
    const auto expected = generate(trainer, parameters, prompt, {.tokens = 30, .temperature = 0});
    for (const TensorEncoding encoding :
         {TensorEncoding::kF32, TensorEncoding::kF16, TensorEncoding::kBf16}) {
      GgufForTest file = gguf_head(config);
      add_tensors(layout, parameters, encoding, file);
      const Result<ServedModel> model = load(file.bytes());
      ASSERT_TRUE(model) << model.error().text();
      EXPECT_EQ(model->name, "tiny");
      EXPECT_EQ(model->origin, "GGUF 3, " + std::string(block_of(encoding).name));
      EXPECT_EQ(model->ends, std::vector<std::int32_t>{kEndToken});
      EXPECT_EQ(greedy_tokens(*model, prompt, 30), expected);
    }
  }
}

TEST_F(GgufModelTest, AModelOfEachQuantisedTypeIsThatOfItsValues) {
  TransformerConfig config{.family = TransformerFamily::kLlama, .layers = 1, .width = 256};
  config.heads = 4;
  config.kv_heads = 2;
  config.ffn = 512;
  config.vocab = kByteTokens;
  config.sequence = 64;
  config.tied_embedding = false;
  const ParameterLayout layout(config);
  for (const TensorEncoding encoding :
       {TensorEncoding::kQ8_0, TensorEncoding::kQ4_0, TensorEncoding::kQ4_1, TensorEncoding::kQ5_0,
        TensorEncoding::kQ5_1, TensorEncoding::kQ4_K, TensorEncoding::kQ5_K,
        TensorEncoding::kQ6_K}) {
    GgufForTest quantised = gguf_head(config);
    GgufForTest floats = gguf_head(config);
    Rng rng(5);
    for (const ParameterTensor& tensor : layout.tensors()) {
      const TensorEncoding stored = tensor.decays ? encoding : TensorEncoding::kF32;
      std::vector<float> weights(tensor.size, 1.0F);
      const std::string bytes =
          tensor.decays ? random_blocks(encoding, tensor.size, rng) : float_bytes(stored, weights);
      decode_weights(stored, bytes, weights);
      const std::string name = gguf_name(tensor.name);
      quantised.tensor(name, {stored, shape_of(tensor), bytes});
      floats.tensor(name, {TensorEncoding::kF32, shape_of(tensor),
                           float_bytes(TensorEncoding::kF32, weights)});
    }
    const std::vector<std::int32_t> prompt = random_tokens(20, config.vocab, 3);
    const Result<ServedModel> model = load(quantised.bytes());
    ASSERT_TRUE(model) << model.error().text();
    EXPECT_EQ(model->origin, "GGUF 3, " + std::string(block_of(encoding).name));
    const Result<ServedModel> same = load(floats.bytes());
    ASSERT_TRUE(same) << same.error().text();
    EXPECT_EQ(greedy_tokens(*model, prompt, 10), greedy_tokens(*same, prompt, 10));
  }
}

TEST_F(GgufModelTest, ChatTemplateAndTokensAreRead) {
  const ParameterLayout layout(tiny());
  GgufForTest file = gguf_head(tiny());
  file.text("tokenizer.chat_template", "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}")
      .flag("tokenizer.ggml.add_bos_token");
  add_tensors(layout, lively_parameters(layout, 0.3), TensorEncoding::kF32, file);
  const Result<ServedModel> model = load(file.bytes());
  ASSERT_TRUE(model) << model.error().text();
  ASSERT_TRUE(model->chat);
  EXPECT_EQ(model->chat->bos, "<|begin|>");
  EXPECT_EQ(model->chat->eos, "<|end|>");
  std::vector<std::int32_t> tokens;
  model->tokenizer->encode_whole("a<|end|>", tokens);
  EXPECT_EQ(tokens, (std::vector<std::int32_t>{kBeginToken, 'a', kEndToken}));
}

TEST_F(GgufModelTest, RotaryFactorsOfLlama3AreRead) {
  const ParameterLayout layout(tiny());
  const AlignedFloats parameters = lively_parameters(layout, 0.3);
  const auto tokens_with = [&](const std::string& factors) {
    GgufForTest file = gguf_head(tiny());
    file.tensor("rope_freqs.weight", {TensorEncoding::kF32, {4}, factors});
    add_tensors(layout, parameters, TensorEncoding::kF32, file);
    const Result<ServedModel> model = load(file.bytes());
    EXPECT_TRUE(model) << model.error().text();
    return greedy_tokens(*model, random_tokens(40, kByteTokens, 3), 40);
  };
  const auto floats = [](const std::vector<float>& values) {
    return float_bytes(TensorEncoding::kF32, values);
  };
  EXPECT_NE(tokens_with(floats({1, 1, 1, 1})), tokens_with(floats({1, 4, 8, 8})));
  GgufForTest bad = gguf_head(tiny());
  bad.tensor("rope_freqs.weight", {TensorEncoding::kF32, {4}, floats({1, 1, 0, 1})});
  add_tensors(layout, parameters, TensorEncoding::kF32, bad);
  EXPECT_NE(refusal(bad.bytes()).find("\"rope_freqs.weight\": expected 4 floats of 1 or more"),
            std::string::npos);
}

TEST_F(GgufModelTest, WhatIsNotServedIsNamed) {
  const ParameterLayout layout(tiny());
  const auto with = [&](const std::function<void(GgufForTest&)>& change) {
    GgufForTest file = gguf_head(tiny());
    change(file);
    add_tensors(layout, lively_parameters(layout, 0.3), TensorEncoding::kF32, file);
    return refusal(file.bytes());
  };
  EXPECT_NE(with([](GgufForTest& file) {
              file.whole("llama.expert_count", 8);
            }).find("llama.expert_count"),
            std::string::npos);
  EXPECT_NE(with([](GgufForTest& file) {
              file.whole("llama.rope.dimension_count", 4);
            }).find("is 4, expected 8"),
            std::string::npos);
  EXPECT_NE(with([](GgufForTest& file) {
              file.text("llama.rope.scaling.type", "yarn");
            }).find("\"yarn\", expected \"none\" or \"linear\""),
            std::string::npos);
  EXPECT_NE(with([](GgufForTest& file) {
              file.tensor("blk.0.attn_q.bias",
                          {TensorEncoding::kF32, {32}, std::string(128, '\0')});
            }).find("tensor \"blk.0.attn_q.bias\" is no part of the model"),
            std::string::npos);
  const std::string other = GgufForTest().text("general.architecture", "qwen2").bytes();
  EXPECT_EQ(refusal(other), path() +
                                ": general.architecture (byte 24) is \"qwen2\", expected "
                                "\"llama\"");
  EXPECT_NE(refusal(gguf_head(tiny()).bytes()).find("token_embd.weight"), std::string::npos);
}

TEST_F(GgufModelTest, ChangedBytesAreAModelOrARefusalThatNamesTheFile) {
  const ParameterLayout layout(tiny());
  GgufForTest file = gguf_head(tiny());
  add_tensors(layout, lively_parameters(layout, 0.3), TensorEncoding::kBf16, file);
  const std::string good = file.bytes();
  Rng rng(11);
  std::size_t refused = 0;
  for (int round = 0; round < 300; ++round) {
    std::string changed = good;
    for (int i = 0; i < 2; ++i) {
      // The header is changed more often than the weights.
      const std::size_t at = rng.below(i == 0 ? good.size() : 6'000);
      changed[at] = static_cast<char>(rng.below(256));
    }
    const std::string text = refusal(changed);
    if (text.empty()) continue;
    ++refused;
    const bool named = text.find(path()) != std::string::npos;
    EXPECT_TRUE(named) << text;
  }
  EXPECT_GT(refused, 30U);
}

TEST_F(GgufModelTest, WeightsThatAreNotFiniteAreRefused) {
  const ParameterLayout layout(tiny());
  AlignedFloats parameters = lively_parameters(layout, 0.3);
  parameters[layout.tensors()[1].begin + 3] = std::numeric_limits<float>::infinity();
  GgufForTest file = gguf_head(tiny());
  add_tensors(layout, parameters, TensorEncoding::kF32, file);
  EXPECT_NE(refusal(file.bytes()).find("weight 3 is inf, expected a finite number"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery

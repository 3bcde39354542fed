#include "inference/hugging_face/hugging_face_model.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "inference/engine/model_files.hpp"
#include "inference/formats/model_writer_test.hpp"
#include "runtime/checkpoint/saved_state_test.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;
using Prompt = std::vector<std::int32_t>;

/// A tensor's floats under the name that a file has for it.
struct NamedWeights {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::vector<float> weights;
};

std::string safetensors_bytes(const std::vector<NamedWeights>& tensors, ElementType type) {
  std::vector<TensorInfo> infos;
  std::string data;
  const TensorEncoding encoding = type == ElementType::kF32   ? TensorEncoding::kF32
                                  : type == ElementType::kF16 ? TensorEncoding::kF16
                                                              : TensorEncoding::kBf16;
  for (const NamedWeights& tensor : tensors) {
    infos.push_back({tensor.name, type, tensor.shape});
    data += float_bytes(encoding, tensor.weights);
  }
  return safetensors_header(infos, {}).bytes + data;
}

/// A model, and what the trainer generates with it.
class HubModelForTest {
 public:
  explicit HubModelForTest(const TransformerConfig& config)
      : layout_(config), parameters_(coarse(lively_parameters(layout_, 0.3))) {}

  [[nodiscard]] std::vector<NamedWeights> tensors() const {
    std::vector<NamedWeights> tensors;
    for (const ParameterTensor& tensor : layout_.tensors()) {
      const auto weights = std::span(parameters_).subspan(tensor.begin, tensor.size);
      tensors.push_back({tensor.name,
                         {tensor.shape.begin(), tensor.shape.end()},
                         {weights.begin(), weights.end()}});
    }
    return tensors;
  }
  [[nodiscard]] Prompt prompt() const { return random_tokens(20, layout_.config().vocab, 3); }
  [[nodiscard]] Prompt generated() const {
    TrainableTransformer trainer(layout_.config(), 1);
    return generate(trainer, parameters_, prompt(), {.tokens = 30, .temperature = 0});
  }

 private:
  ParameterLayout layout_;
  AlignedFloats parameters_;
};

TransformerConfig tiny(TransformerFamily family) {
  TransformerConfig config = ServedModelForTest::tiny(family);
  config.vocab = kByteTokens;
  return config;
}

Json llama_config() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"hidden_size", 32},
          {"intermediate_size", 48},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"vocab_size", kByteTokens},
          {"max_position_embeddings", 100},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 10000.0},
          {"tie_word_embeddings", false},
          {"hidden_act", "silu"},
          {"eos_token_id", kEndToken}};
}

Json gpt2_config() {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"n_embd", 32},
          {"n_inner", 48},
          {"n_layer", 2},
          {"n_head", 2},
          {"n_positions", 100},
          {"vocab_size", kByteTokens},
          {"activation_function", "gelu_new"}};
}

class HuggingFaceModelTest : public CheckpointTest {
 protected:
  void write(const std::string& name, const std::string& text) const {
    write_file(directory_ + "/hub/" + name, text);
  }
  void write_model(const Json& config, const HubModelForTest& model,
                   ElementType type = ElementType::kF32) const {
    write("config.json", config.dump());
    write("tokenizer.json", byte_tokenizer_json());
    write("model.safetensors", safetensors_bytes(model.tensors(), type));
  }
  [[nodiscard]] Result<ServedModel> load() const {
    return load_served_model({.checkpoint = directory_ + "/hub"});
  }
  [[nodiscard]] std::string refusal() const {
    const Result<ServedModel> model = load();
    return model ? "" : model.error().text();
  }
  [[nodiscard]] std::string refusal(const Json& config) const {
    write("config.json", config.dump());
    return refusal();
  }
};

TEST_F(HuggingFaceModelTest, ALlamaInEachTypeGeneratesTheTokensOfItsTrainer) {
  for (const bool tied : {false, true}) {
    TransformerConfig shape = tiny(TransformerFamily::kLlama);
    shape.tied_embedding = tied;
    const HubModelForTest model(shape);
    Json config = llama_config();
    config["tie_word_embeddings"] = tied;
    for (const ElementType type : {ElementType::kF32, ElementType::kF16, ElementType::kBf16}) {
      write_model(config, model, type);
      const Result<ServedModel> loaded = load();
      ASSERT_TRUE(loaded) << loaded.error().text();
      EXPECT_EQ(loaded->name, "hub");
      EXPECT_EQ(loaded->ends, Prompt{kEndToken});
      EXPECT_EQ(greedy_tokens(*loaded, model.prompt(), 30), model.generated());
    }
    EXPECT_EQ(load()->origin, "Hugging Face, BF16");
  }
}

TEST_F(HuggingFaceModelTest, AGpt2IsReadWithAndWithoutTheOuterName) {
  TransformerConfig shape = tiny(TransformerFamily::kGpt);
  const HubModelForTest model(shape);
  write_model(gpt2_config(), model);
  ASSERT_TRUE(load()) << refusal();
  EXPECT_EQ(greedy_tokens(*load(), model.prompt(), 30), model.generated());
  std::vector<NamedWeights> bare = model.tensors();
  for (NamedWeights& tensor : bare) tensor.name = tensor.name.substr(std::size("transformer.") - 1);
  bare.push_back({"h.0.attn.bias", {1}, {1}});
  write("model.safetensors", safetensors_bytes(bare, ElementType::kF32));
  ASSERT_TRUE(load()) << refusal();
  EXPECT_EQ(greedy_tokens(*load(), model.prompt(), 30), model.generated());
}

TEST_F(HuggingFaceModelTest, WeightsMayBeInSeveralFiles) {
  const HubModelForTest model(tiny(TransformerFamily::kLlama));
  write_model(llama_config(), model);
  std::map<std::string, std::vector<NamedWeights>> files;
  Json index{{"metadata", {{"total_size", 1}}}, {"weight_map", Json::object()}};
  std::size_t number = 0;
  for (const NamedWeights& tensor : model.tensors()) {
    const std::string file = ++number % 2 == 0 ? "model-1.safetensors" : "model-2.safetensors";
    files[file].push_back(tensor);
    index["weight_map"][tensor.name] = file;
  }
  for (const auto& [file, tensors] : files) {
    write(file, safetensors_bytes(tensors, ElementType::kF32));
  }
  const auto refused = [&](const Json& wrong) {
    write("model.safetensors.index.json", wrong.dump());
    return refusal();
  };
  EXPECT_EQ(refused(index), "");
  EXPECT_EQ(greedy_tokens(*load(), model.prompt(), 30), model.generated());
  Json more = index;
  more["weight_map"]["x"] = "model-1.safetensors";
  EXPECT_NE(refused(more).find("tensor \"x\" is not in model-1"), std::string::npos);
  Json moved = index;
  moved["weight_map"]["model.norm.weight"] = "model-9.safetensors";
  EXPECT_NE(refused(moved).find("\"model.norm.weight\" is not here in the index"),
            std::string::npos);
  Json outside = index;
  outside["weight_map"]["model.norm.weight"] = "../model-1.safetensors";
  EXPECT_NE(refused(outside).find("the name of a .safetensors file beside this one"),
            std::string::npos);
  EXPECT_NE(refused(Json{{"weight_map", 3}}).find("expected \"weight_map\""), std::string::npos);
}

TEST_F(HuggingFaceModelTest, AnotherEpsilonAndRotaryScalingChangeTheModel) {
  const HubModelForTest model(tiny(TransformerFamily::kLlama));
  const auto tokens_with = [&](const std::string& key, const Json& value) {
    Json config = llama_config();
    config[key] = value;
    write_model(config, model);
    const Result<ServedModel> loaded = load();
    EXPECT_TRUE(loaded) << loaded.error().text();
    return greedy_tokens(*loaded, random_tokens(60, kByteTokens, 9), 30);
  };
  const Prompt plain = tokens_with("rms_norm_eps", 1e-5);
  EXPECT_NE(tokens_with("rms_norm_eps", 0.5), plain);
  EXPECT_EQ(tokens_with("rope_scaling", {{"rope_type", "default"}}), plain);
  EXPECT_NE(tokens_with("rope_scaling", {{"type", "linear"}, {"factor", 4.0}}), plain);
  const Json llama3{{"rope_type", "llama3"},
                    {"factor", 8.0},
                    {"low_freq_factor", 1.0},
                    {"high_freq_factor", 4.0},
                    {"original_max_position_embeddings", 50}};
  EXPECT_NE(tokens_with("rope_scaling", llama3), plain);
  EXPECT_NE(tokens_with("rope_parameters", {{"rope_type", "default"}, {"rope_theta", 300.0}}),
            plain);
}

TEST_F(HuggingFaceModelTest, TokensAndChatTemplateAreThoseOfTheFiles) {
  write_model(llama_config(), HubModelForTest(tiny(TransformerFamily::kLlama)));
  EXPECT_FALSE(load()->chat);
  write("generation_config.json", R"({"eos_token_id": [10, 13]})");
  const Json tokens{{"bos_token", "<|begin|>"},
                    {"eos_token", {{"content", "<|end|>"}, {"special", true}}},
                    {"chat_template", "of the configuration"}};
  write("tokenizer_config.json", tokens.dump());
  const Result<ServedModel> model = load();
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(model->ends, (Prompt{10, 13, kEndToken}));
  ASSERT_TRUE(model->chat);
  EXPECT_EQ(model->chat->bos, "<|begin|>");
  EXPECT_EQ(model->chat->eos, "<|end|>");
  EXPECT_EQ(model->chat->chat_template.render({.variables = Json::object()}).value(),
            "of the configuration");
  write("chat_template.jinja", "of its own file");
  EXPECT_EQ(load()->chat->chat_template.render({.variables = Json::object()}).value(),
            "of its own file");
  write("chat_template.jinja", "{% if %}");
  EXPECT_NE(refusal().find("chat_template.jinja:1:1"), std::string::npos) << refusal();
}

TEST_F(HuggingFaceModelTest, ConfigurationsThatAreNotServedAreNamedByTheirKey) {
  write_model(llama_config(), HubModelForTest(tiny(TransformerFamily::kLlama)));
  const auto with = [&](const std::string& key, const Json& value) {
    Json config = llama_config();
    config[key] = value;
    return refusal(config);
  };
  const auto names = [&](const std::string& key, const Json& value) {
    const std::string text = with(key, value);
    return text.find("config.json: \"" + key + "\"") != std::string::npos ? "" : "got: " + text;
  };
  EXPECT_EQ(names("architectures", {"Qwen2ForCausalLM"}), "");
  EXPECT_EQ(names("head_dim", 16), "");
  EXPECT_EQ(names("attention_bias", true), "");
  EXPECT_EQ(names("mlp_bias", true), "");
  EXPECT_EQ(names("hidden_act", "gelu"), "");
  EXPECT_EQ(names("hidden_size", nullptr), "");
  EXPECT_EQ(names("hidden_size", -32), "");
  EXPECT_EQ(names("hidden_size", 32.5), "");
  EXPECT_EQ(names("rope_theta", 0.5), "");
  EXPECT_EQ(names("rope_scaling", 4), "");
  EXPECT_EQ(names("quantization_config", Json::object()), "");
  EXPECT_EQ(names("eos_token_id", kByteTokens), "");
  EXPECT_NE(with("rope_scaling", {{"type", "yarn"}}).find("expected default, linear or llama3"),
            std::string::npos);
  EXPECT_NE(with("vocab_size", 200).find("258 tokens, expected at most the 200"),
            std::string::npos);
}

TEST_F(HuggingFaceModelTest, TensorsThatDoNotFitAreNamed) {
  const HubModelForTest model(tiny(TransformerFamily::kLlama));
  write_model(llama_config(), model);
  const auto with = [&](const std::vector<NamedWeights>& tensors) {
    write("model.safetensors", safetensors_bytes(tensors, ElementType::kF32));
    return refusal();
  };
  std::vector<NamedWeights> tensors = model.tensors();
  tensors.push_back({"model.layers.0.self_attn.q_proj.bias", {1}, {1}});
  EXPECT_NE(with(tensors).find("q_proj.bias\" is no part of the model"), std::string::npos);
  tensors = model.tensors();
  tensors[0].shape = {32, kByteTokens};
  EXPECT_NE(with(tensors).find("is 32 x 258, expected 258 x 32"), std::string::npos);
  tensors.erase(tensors.begin());
  EXPECT_NE(with(tensors).find("there is no tensor \"model.embed_tokens.weight\""),
            std::string::npos);
  write("model.safetensors", std::string("\x10\0\0\0\0\0\0\0{}", 10));
  EXPECT_NE(refusal().find("model.safetensors"), std::string::npos);
  std::filesystem::remove(directory_ + "/hub/model.safetensors");
  EXPECT_NE(refusal().find("there is no model.safetensors"), std::string::npos);
}

TEST_F(HuggingFaceModelTest, OptionsOfCheckpointsAreRefused) {
  write_model(llama_config(), HubModelForTest(tiny(TransformerFamily::kLlama)));
  const auto model =
      load_served_model({.checkpoint = directory_ + "/hub", .training = "training.yaml"});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().text(), "--training is for checkpoints of orrery-train: " + directory_ +
                                      "/hub has a tokenizer of its own");
}

}  // namespace
}  // namespace orrery

// inference/formats/model_writer_test.hpp - shared by the tests of formats: writes small models as
// other programs do, and what is damaged.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format/little_endian.hpp"
#include "base/numbers/rng.hpp"
#include "inference/engine/inference_engine.hpp"
#include "inference/engine/served_model.hpp"
#include "inference/engine/served_model_test.hpp"
#include "inference/formats/tensor_encoding.hpp"
#include "inference/gguf/gguf_file.hpp"
#include "inference/gguf/gguf_weights.hpp"
#include "runtime/shards/safetensors.hpp"
#include "tokens/text/byte_alphabet.hpp"

namespace orrery {

template <class Word>
std::string little_endian(Word value) {
  std::string bytes(sizeof(Word), '\0');
  store_little_endian(value, bytes.data());
  return bytes;
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

/// The names of tokens that are bytes (0 to 255), then "<|begin|>" and "<|end|>".
inline std::vector<std::string> byte_token_names() {
  std::vector<std::string> names;
  names.reserve(258);
  for (int byte = 0; byte < 256; ++byte) {
    names.push_back(bytes_as_characters(std::string(1, static_cast<char>(byte))));
  }
  names.insert(names.end(), {"<|begin|>", "<|end|>"});
  return names;
}
constexpr std::int32_t kBeginToken = 256;
constexpr std::int32_t kEndToken = 257;
constexpr std::int64_t kByteTokens = 258;

/// A tokenizer.json of those tokens.
inline std::string byte_tokenizer_json() {
  using Json = nlohmann::ordered_json;
  const std::vector<std::string> names = byte_token_names();
  Json vocab = Json::object();
  for (std::size_t id = 0; id < names.size(); ++id) vocab[names[id]] = id;
  Json added = Json::array();
  for (const std::int32_t id : {kBeginToken, kEndToken}) {
    added.push_back({{"id", id},
                     {"content", names[static_cast<std::size_t>(id)]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const Json bytes{{"type", "ByteLevel"}, {"add_prefix_space", false}};
  return Json{{"version", "1.0"},
              {"added_tokens", added},
              {"pre_tokenizer", bytes},
              {"decoder", bytes},
              {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", Json::array()}}}}
      .dump();
}

/// Weights that every float type holds exactly.
inline AlignedFloats coarse(AlignedFloats weights) {
  for (float& weight : weights) weight = std::round(weight * 32) / 32;
  return weights;
}

inline std::uint16_t half_of(float exact) {
  const auto bits = std::bit_cast<std::uint32_t>(exact);
  if (exact == 0) return static_cast<std::uint16_t>(bits >> 16);
  const std::uint32_t exponent = ((bits >> 23) & 0xFF) - 112;
  return static_cast<std::uint16_t>((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3FF));
}

/// Writes exact floats as a float type.
inline std::string float_bytes(TensorEncoding encoding, std::span<const float> weights) {
  std::string bytes;
  for (const float weight : weights) {
    const auto bits = std::bit_cast<std::uint32_t>(weight);
    if (encoding == TensorEncoding::kF32) {
      bytes += little_endian(bits);
    } else if (encoding == TensorEncoding::kF16) {
      bytes += little_endian(half_of(weight));
    } else {
      bytes += little_endian(static_cast<std::uint16_t>(bits >> 16));
    }
  }
  return bytes;
}

/// Random blocks with small scales.
inline std::string random_blocks(TensorEncoding encoding, std::size_t weights, Rng& rng) {
  const EncodingBlock& block = block_of(encoding);
  const bool second = encoding == TensorEncoding::kQ4_1 || encoding == TensorEncoding::kQ5_1 ||
                      encoding == TensorEncoding::kQ4_K || encoding == TensorEncoding::kQ5_K;
  std::string bytes(weights / block.weights * block.bytes, '\0');
  for (char& byte : bytes) byte = static_cast<char>(rng.below(256));
  for (std::size_t at = 0; at < bytes.size(); at += block.bytes) {
    const std::size_t scale = encoding == TensorEncoding::kQ6_K ? at + 208 : at;
    const auto half = [&] { return static_cast<std::uint16_t>(0x1000 + rng.below(0x400)); };
    store_little_endian(half(), bytes.data() + scale);
    if (second) store_little_endian(half(), bytes.data() + scale + 2);
  }
  return bytes;
}

/// A GGUF file, put together piece by piece.
class GgufForTest {
 public:
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;

  GgufForTest& entry(const std::string& key, std::uint32_t type, const std::string& value) {
    entries_.push_back(sized(key) + little_endian(type) + value);
    return *this;
  }
  GgufForTest& text(const std::string& key, const std::string& value) {
    return entry(key, 8, sized(value));
  }
  GgufForTest& whole(const std::string& key, std::uint32_t value) {
    return entry(key, 4, little_endian(value));
  }
  GgufForTest& number(const std::string& key, float value) {
    return entry(key, 6, little_endian(std::bit_cast<std::uint32_t>(value)));
  }
  /// Sets a flag.
  GgufForTest& flag(const std::string& key) { return entry(key, 7, "\1"); }
  GgufForTest& texts(const std::string& key, const std::vector<std::string>& values) {
    std::string bytes =
        little_endian(std::uint32_t{8}) + little_endian<std::uint64_t>(values.size());
    for (const std::string& value : values) bytes += sized(value);
    return entry(key, 9, bytes);
  }
  GgufForTest& numbers(const std::string& key, const std::vector<float>& values) {
    std::string bytes =
        little_endian(std::uint32_t{6}) + little_endian<std::uint64_t>(values.size());
    for (const float value : values) bytes += little_endian(std::bit_cast<std::uint32_t>(value));
    return entry(key, 9, bytes);
  }
  struct Tensor {
    TensorEncoding encoding = TensorEncoding::kF32;
    std::vector<std::uint64_t> shape;  ///< in row-major order
    std::string bytes;
    std::optional<std::uint64_t> offset = {};  ///< nothing: behind those before it
  };
  GgufForTest& tensor(const std::string& name, const Tensor& tensor) {
    constexpr std::array<std::uint32_t, 11> kNumbers{0, 1, 30, 8, 2, 3, 6, 7, 12, 13, 14};
    std::string info = sized(name) + little_endian(static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto extent = tensor.shape.rbegin(); extent != tensor.shape.rend(); ++extent) {
      info += little_endian(*extent);
    }
    info += little_endian(kNumbers[static_cast<std::size_t>(tensor.encoding)]) +
            little_endian<std::uint64_t>(tensor.offset.value_or(data_.size()));
    tensors_.push_back(info);
    data_ += padded(tensor.bytes);
    return *this;
  }
  [[nodiscard]] std::string bytes() const {
    std::string file = "GGUF" + little_endian(version) +
                       little_endian<std::uint64_t>(tensors_.size()) +
                       little_endian<std::uint64_t>(entries_.size());
    for (const std::string& each : entries_) file += each;
    for (const std::string& each : tensors_) file += each;
    return (tensors_.empty() ? file : padded(file)) + data_;
  }

  static std::string sized(const std::string& text) {
    return little_endian<std::uint64_t>(text.size()) + text;
  }

 private:
  [[nodiscard]] std::string padded(std::string bytes) const {
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    return bytes;
  }

  std::vector<std::string> entries_;
  std::vector<std::string> tensors_;
  std::string data_;
};

/// The shape and the tokens of a Llama, without its tensors.
inline GgufForTest gguf_head(const TransformerConfig& config) {
  const auto small = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  GgufForTest file;
  file.text("general.architecture", "llama")
      .whole("llama.block_count", small(config.layers))
      .whole("llama.context_length", small(config.sequence))
      .whole("llama.embedding_length", small(config.width))
      .whole("llama.feed_forward_length", small(config.inner_width()))
      .whole("llama.attention.head_count", small(config.heads))
      .whole("llama.attention.head_count_kv", small(config.key_value_heads()))
      .number("llama.attention.layer_norm_rms_epsilon", 1e-5F)
      .number("llama.rope.freq_base", static_cast<float>(config.rope_base))
      .text("tokenizer.ggml.model", "gpt2")
      .text("tokenizer.ggml.pre", "gpt-2")
      .texts("tokenizer.ggml.tokens", byte_token_names())
      .texts("tokenizer.ggml.merges", {})
      .whole("tokenizer.ggml.bos_token_id", kBeginToken)
      .whole("tokenizer.ggml.eos_token_id", kEndToken);
  std::vector<float> kinds(256, 1);
  kinds.insert(kinds.end(), {3, 3});
  return file.numbers("tokenizer.ggml.token_type", kinds);
}

/// Interleaves the halves of heads, as llama.cpp stores them.
inline std::vector<float> interleaved(std::span<const float> weights, std::size_t width,
                                      std::size_t head_width) {
  std::vector<float> turned(weights.size());
  for (std::size_t row = 0; row < weights.size() / width; ++row) {
    const std::size_t head = row / head_width * head_width;
    const std::size_t half = row % head_width / (head_width / 2);
    const std::size_t pair = row % (head_width / 2);
    const std::size_t to = head + 2 * pair + half;
    std::copy_n(weights.begin() + static_cast<std::ptrdiff_t>(row * width), width,
                turned.begin() + static_cast<std::ptrdiff_t>(to * width));
  }
  return turned;
}

/// Returns the tokens that a loaded model generates greedily behind a prompt.
inline std::vector<std::int32_t> greedy_tokens(const ServedModel& model,
                                               const std::vector<std::int32_t>& prompt,
                                               std::int64_t tokens) {
  InferenceEngine engine(model.model, *model.tokenizer, {});
  engine.submit({.prompt = prompt, .sampling = {.tokens = tokens, .temperature = 0}});
  std::vector<std::int32_t> generated;
  while (!engine.idle()) {
    for (const GenerationDelta& delta : engine.step().deltas) generated.push_back(delta.token);
  }
  return generated;
}

}  // namespace orrery

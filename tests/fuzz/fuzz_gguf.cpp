// tests/fuzz/fuzz_gguf.cpp - any bytes as a GGUF file: its tensors lie within it and are decoded;
// shape, tokens and weights of a model are read from it.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.hpp"
#include "inference/gguf/gguf_config.hpp"
#include "inference/gguf/gguf_tokenizer.hpp"
#include "inference/gguf/gguf_weights.hpp"

namespace orrery {
namespace {

void check_tensor(std::string_view bytes, const GgufTensor& tensor) {
  ORRERY_ASSERT(tensor.bytes.data() >= bytes.data() &&
                    tensor.bytes.data() + tensor.bytes.size() <= bytes.data() + bytes.size(),
                "the data lie in the file");
  const EncodingBlock& block = block_of(tensor.encoding);
  ORRERY_ASSERT(tensor.bytes.size() % block.bytes == 0, "the data are whole blocks");
  std::vector<float> weights(tensor.bytes.size() / block.bytes * block.weights);
  decode_weights(tensor.encoding, tensor.bytes, weights);
}

void check_entry(const GgufEntry& entry) {
  const auto* array = std::get_if<GgufArray>(&entry.value);
  if (array == nullptr) return;
  if (array->type == GgufType::kString) {
    ORRERY_ASSERT(strings_of(*array).size() == array->count, "each text is there");
  } else if (is_number(array->type)) {
    ORRERY_ASSERT(numbers_of(*array).size() == array->count, "each number is there");
  }
}

void check_text(GgufFields& fields) {
  const Result<GgufText> text = read_gguf_text(fields);
  if (!text) {
    ORRERY_ASSERT(!text.error().message.empty(), "a refusal says why");
    return;
  }
  std::vector<std::int32_t> tokens;
  text->tokenizer.encode_whole("ab a<|end|>", tokens);
  (void)text->tokenizer.decode(tokens);
}

void check_model(const GgufFile& file) {
  GgufFields of_shape(file);
  const Result<DescribedModel> described = read_gguf_config(of_shape);
  if (!described) {
    ORRERY_ASSERT(described.error().text().starts_with("any"), "a refusal names the file");
    return;
  }
  GgufWeights weights(file, described->config);
  const Result<AlignedFloats> parameters = read_parameters(
      ParameterLayout(described->config), weights,
      {.stored = [](const std::string& name) { return gguf_name(name); },
       .ignored = [](std::string_view name) { return name == "rope_freqs.weight"; }});
  if (parameters) return;
  ORRERY_ASSERT(parameters.error().text().starts_with("any"), "a refusal names the file");
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Result<GgufFile> file = GgufFile::parse(bytes, "any");
  if (!file) {
    ORRERY_ASSERT(file.error().text().starts_with("any: byte "), "a refusal says where");
    return 0;
  }
  std::ranges::for_each(file->entries(), check_entry);
  for (const GgufTensor& tensor : file->tensors()) check_tensor(bytes, tensor);
  GgufFields of_text(*file);
  check_text(of_text);
  check_model(*file);
  return 0;
}

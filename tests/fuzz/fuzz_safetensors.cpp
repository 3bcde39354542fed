// tests/fuzz/fuzz_safetensors.cpp - any bytes as a file of tensors, all of which are read as floats
// where they are weights; text that begins as an object is a config.json instead, and what it
// describes has a layout.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.hpp"
#include "base/system/file_descriptor.hpp"
#include "inference/hugging_face/hugging_face_config.hpp"
#include "inference/hugging_face/hugging_face_weights.hpp"
#include "inference/hugging_face/json_fields.hpp"
#include "runtime/trainer/parameter_layout.hpp"

namespace orrery {
namespace {

void check_config(std::string_view text) {
  const Result<nlohmann::json> json = parse_json_object(text, "any");
  if (!json) {
    ORRERY_ASSERT(json.error().text().starts_with("any: "), "a refusal names the file");
    return;
  }
  const Result<DescribedModel> model = read_hugging_face_config(*json, "any");
  if (!model) {
    ORRERY_ASSERT(model.error().text().starts_with("any"), "a refusal names the file");
    return;
  }
  const std::size_t pairs = model->variant.rotary_factors.size();
  ORRERY_ASSERT(pairs == 0 || pairs == static_cast<std::size_t>(model->config.head_width() / 2),
                "each pair has a factor");
  ORRERY_ASSERT(ParameterLayout(model->config).trained() > 0, "what is described has a layout");
}

void check_file(std::string_view bytes) {
  const FileDescriptor memory(::memfd_create("fuzz", MFD_CLOEXEC));
  ORRERY_ASSERT(
      ::write(memory.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
      "memory takes the bytes");
  const std::string path = "/proc/self/fd/" + std::to_string(memory.get());
  const auto weights = HuggingFaceWeights::of_file(path);
  if (!weights) {
    ORRERY_ASSERT(weights.error().text().starts_with(path), "a refusal names the file");
    return;
  }
  for (std::size_t i = 0; i < (*weights)->tensors().size(); ++i) {
    const StoredTensor& tensor = (*weights)->tensors()[i];
    if (!tensor.encoding) continue;
    std::uint64_t count = 1;
    for (const std::uint64_t extent : tensor.shape) count *= extent;
    std::vector<float> floats(count);
    ORRERY_ASSERT((*weights)->read(i, floats).has_value(), "what the header has can be read");
  }
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.starts_with('{')) {
    orrery::check_config(bytes);
  } else {
    orrery::check_file(bytes);
  }
  return 0;
}

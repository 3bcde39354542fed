// tests/fuzz/fuzz_model_config.cpp - any text as a model's config.json; the parameters of what is
// read can be counted.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/assert.hpp"
#include "workload/models/model_config.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<Document> document = Document::parse(text, "config.json");
  if (!document) return 0;
  const Result<Model> model = read_model_config(document->root());
  if (!model) {
    ORRERY_ASSERT(!model.error().message.empty(), "a refusal says why");
    return 0;
  }
  const ParameterCount count = count_parameters(*model);
  ORRERY_ASSERT(std::isfinite(count.total) && count.total >= 0, "there is a number of parameters");
  ORRERY_ASSERT(count.total <= kParametersMax, "absurd sizes are refused");
  const Flops flops = forward_flops(*model, Tokens(2048));
  ORRERY_ASSERT(std::isfinite(flops.value()) && flops.value() >= 0, "and of operations");
  return 0;
}

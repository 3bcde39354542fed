// tests/fuzz/fuzz_engine_metrics.cpp - any bytes as what an inference engine answers to questions
// for its metrics: figures are numbers that are not negative, and lines mean the same alone.
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "adapter/engine_metrics.hpp"
#include "adapter/engine_slots.hpp"
#include "adapter/prometheus_text.hpp"
#include "base/assert.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& entry : enum_words(EngineName())) {
    const EngineLoad load = engine_load(entry.value, text);
    for (const std::optional<double>& figure : {load.running, load.waiting, load.kv_usage,
                                                load.block_tokens, load.blocks, load.generated}) {
      ORRERY_ASSERT(!figure || *figure >= 0, "a figure is a number that is not negative");
    }
    const std::optional<std::uint32_t> slots = slots_answered(entry.value, text);
    ORRERY_ASSERT(!slots || *slots > 0, "an engine computes at least one request");
  }
  std::uint64_t whole = 0;
  std::uint64_t alone = 0;
  std::uint64_t bad = read_prometheus(text, [&](const MetricSample& sample) {
    ORRERY_ASSERT(!sample.name.empty() && !std::isnan(sample.value), "a sample has both");
    ++whole;
  });
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    bad -= read_prometheus(rest.substr(0, end), [&](const MetricSample&) { ++alone; });
    rest.remove_prefix(end);
  }
  ORRERY_ASSERT(whole == alone && bad == 0, "a line means the same alone");
  return 0;
}

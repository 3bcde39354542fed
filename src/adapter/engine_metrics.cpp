#include "adapter/engine_metrics.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <string>

#include "adapter/prometheus_text.hpp"

namespace orrery {
namespace {

enum class Sum : std::uint8_t { kTotal, kMean };

/// Where a release has a figure: the value of a metric, or of a label of it.
struct MetricName {
  std::optional<double> EngineLoad::* figure;
  std::string_view metric;
  std::string_view label;  ///< its value is the figure; "": the metric's own is
  Sum sum = Sum::kTotal;
};

using Load = EngineLoad;

constexpr std::array kOrreryNames = {
    MetricName{&Load::running, "orrery_serve_requests_running"},
    MetricName{&Load::waiting, "orrery_serve_requests_waiting"},
    MetricName{&Load::kv_usage, "orrery_serve_kv_usage_ratio", "", Sum::kMean},
    MetricName{&Load::blocks, "orrery_serve_kv_blocks"},
    MetricName{&Load::generated, "orrery_serve_generation_tokens_total"},
    MetricName{&Load::steps, "orrery_serve_generation_tokens_total"}};

// Until 0.9 the share was called gpu_cache_usage_perc, from 0.10 to 0.12 it had both names. A few
// releases of the first engine wrote counters without "_total".
constexpr std::array kVllmNames = {
    MetricName{&Load::running, "vllm:num_requests_running"},
    MetricName{&Load::waiting, "vllm:num_requests_waiting"},
    MetricName{&Load::kv_usage, "vllm:kv_cache_usage_perc", "", Sum::kMean},
    MetricName{&Load::kv_usage, "vllm:gpu_cache_usage_perc", "", Sum::kMean},
    MetricName{&Load::block_tokens, "vllm:cache_config_info", "block_size", Sum::kMean},
    MetricName{&Load::blocks, "vllm:cache_config_info", "num_gpu_blocks"},
    MetricName{&Load::generated, "vllm:generation_tokens_total"},
    MetricName{&Load::generated, "vllm:generation_tokens"},
    MetricName{&Load::steps, "vllm:generation_tokens_total"},
    MetricName{&Load::steps, "vllm:generation_tokens"}};

// From 0.5.11 on the pages have metrics of their own. Tokens are counted as their request ends, the
// times between them as they come.
constexpr std::array kSglangNames = {
    MetricName{&Load::running, "sglang:num_running_reqs"},
    MetricName{&Load::waiting, "sglang:num_queue_reqs"},
    MetricName{&Load::kv_usage, "sglang:token_usage", "", Sum::kMean},
    MetricName{&Load::block_tokens, "sglang:page_size", "", Sum::kMean},
    MetricName{&Load::block_tokens, "sglang:cache_config_info", "page_size", Sum::kMean},
    MetricName{&Load::blocks, "sglang:num_pages"},
    MetricName{&Load::blocks, "sglang:cache_config_info", "num_pages"},
    MetricName{&Load::generated, "sglang:generation_tokens_total"},
    MetricName{&Load::steps, "sglang:inter_token_latency_seconds_count"}};

// It counts tokens as their request ends, and no steps.
constexpr std::array kTrtllmNames = {
    MetricName{&Load::running, "trtllm_num_requests_running"},
    MetricName{&Load::waiting, "trtllm_num_requests_waiting"},
    MetricName{&Load::kv_usage, "trtllm_kv_cache_utilization", "", Sum::kMean},
    MetricName{&Load::block_tokens, "trtllm_kv_cache_tokens_per_block", "", Sum::kMean},
    MetricName{&Load::blocks, "trtllm_kv_cache_max_blocks"},
    MetricName{&Load::generated, "trtllm_generation_tokens_total"}};

// It counts tokens as their request ends.
constexpr std::array kLlamacppNames = {
    MetricName{&Load::running, "llamacpp:requests_processing"},
    MetricName{&Load::waiting, "llamacpp:requests_deferred"},
    MetricName{&Load::kv_usage, "llamacpp:kv_cache_usage_ratio", "", Sum::kMean},
    MetricName{&Load::generated, "llamacpp:tokens_predicted_total"},
    MetricName{&Load::steps, "llamacpp:n_decode_total"}};

std::span<const MetricName> names_of(EngineName engine) {
  switch (engine) {
    case EngineName::kOrrery:
      return kOrreryNames;
    case EngineName::kVllm:
      return kVllmNames;
    case EngineName::kSglang:
      return kSglangNames;
    case EngineName::kTrtllm:
      return kTrtllmNames;
    case EngineName::kLlamacpp:
      return kLlamacppNames;
  }
  return {};
}

std::optional<double> number_of(const MetricSample& sample, const MetricName& name) {
  if (name.label.empty()) return sample.value;
  const std::string_view text = sample.label(name.label);
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || failed != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;  // "None" until the cache has its size
  }
  return value;
}

/// Whether a sample is a part of another one: SGLang writes the requests of each priority beside
/// those of all, and each rank of a group, when asked, the metrics of the group.
bool is_part(const MetricSample& sample) {
  const std::string_view rank = sample.label("tp_rank");
  return !sample.label("priority").empty() || (!rank.empty() && rank != "0");
}

struct Found {
  double total = 0;
  double count = 0;
};

}  // namespace

std::optional<std::uint64_t> EngineLoad::kv_tokens() const {
  constexpr double kTokensMax = 1e15;
  const double tokens = blocks.value_or(0) * block_tokens.value_or(0);
  if (!(tokens >= 1 && tokens <= kTokensMax)) return std::nullopt;
  return static_cast<std::uint64_t>(tokens);
}

std::optional<bool> EngineLoad::busy() const {
  if (!running && !waiting) return std::nullopt;
  return running.value_or(0) + waiting.value_or(0) > 0;
}

bool EngineLoad::stands_since(const EngineLoad& earlier) const {
  return busy().value_or(false) && steps && steps == earlier.steps &&
         generated == earlier.generated && kv_usage == earlier.kv_usage &&
         running == earlier.running;
}

EngineLoad engine_load(EngineName engine, std::string_view metrics) {
  constexpr std::size_t kNamesMax = 10;
  const std::span<const MetricName> names = names_of(engine);
  std::array<Found, kNamesMax> found{};
  read_prometheus(metrics, [&](const MetricSample& sample) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (sample.name != names[i].metric || is_part(sample)) continue;
      const std::optional<double> value = number_of(sample, names[i]);
      if (!value || !std::isfinite(*value) || *value < 0) continue;
      found.at(i).total += *value;
      found.at(i).count += 1;
    }
  });
  EngineLoad load;
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::optional<double>& figure = load.*names[i].figure;
    if (figure || found.at(i).count == 0) continue;
    figure = found.at(i).total / (names[i].sum == Sum::kMean ? found.at(i).count : 1);
  }
  return load;
}

std::string_view metrics_path(EngineName engine) {
  // Its /metrics is JSON, and empties a queue.
  return engine == EngineName::kTrtllm ? "/prometheus/metrics" : "/metrics";
}

}  // namespace orrery

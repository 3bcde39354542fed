#include "inference/server/completion_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace orrery {
namespace {

struct Metric {
  std::string_view name;
  std::string_view type;
  std::string_view help;
  double value = 0;
};

void add(const Metric& metric, std::string& to) {
  to += fmt::format(
      "# HELP orrery_serve_{0} {2}\n# TYPE orrery_serve_{0} {1}\norrery_serve_{0} {3}\n",
      metric.name, metric.type, metric.help, metric.value);
}

double number(std::uint64_t count) { return static_cast<double>(count); }

}  // namespace

void SecondsHistogram::add(Duration duration) {
  const double seconds = duration.count_seconds();
  const auto limit = std::ranges::lower_bound(kLimits, seconds);
  ++counts_.at(static_cast<std::size_t>(limit - kLimits.begin()));
  sum_ += seconds;
}

void SecondsHistogram::print(const std::string& name, const std::string& help,
                             std::string& to) const {
  const std::string full = "orrery_serve_" + name;
  to += fmt::format("# HELP {0} {1}\n# TYPE {0} histogram\n", full, help);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < kLimits.size(); ++i) {
    below += counts_.at(i);
    to += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", full, kLimits.at(i), below);
  }
  below += counts_.back();
  to +=
      fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", full, below, sum_);
}

std::string prometheus_text(const CompletionMetrics& metrics) {
  const EngineStatus& engine = metrics.engine;
  const EngineCounters& counters = engine.counters;
  const double blocks = static_cast<double>(std::max<std::size_t>(engine.blocks, 1));
  const std::size_t waiting = metrics.active - std::min(metrics.active, engine.running);
  std::string text;
  for (const Metric& metric :
       {Metric{"requests_running", "gauge", "Requests that are generating.",
               number(engine.running)},
        Metric{"requests_waiting", "gauge", "Requests that wait for a slot.", number(waiting)},
        Metric{"kv_usage_ratio", "gauge", "Share of the KV cache that running requests use.",
               number(engine.blocks_used) / blocks},
        Metric{"kv_blocks", "gauge", "Blocks of 16 tokens of the KV cache.", number(engine.blocks)},
        Metric{"prefix_query_tokens_total", "counter", "Tokens of prompts looked up in the cache.",
               number(counters.prompt_tokens)},
        Metric{"prefix_hit_tokens_total", "counter", "Tokens of prompts found in the cache.",
               number(counters.cached_tokens)},
        Metric{"prompt_tokens_total", "counter", "Tokens of prompts that began to run.",
               number(counters.prompt_tokens)},
        Metric{"generation_tokens_total", "counter", "Tokens generated.",
               number(counters.generated_tokens)},
        Metric{"preemptions_total", "counter", "Requests that lost their blocks for a while.",
               number(counters.preemptions)}}) {
    add(metric, text);
  }
  text +=
      "# HELP orrery_serve_requests_total Requests that have ended.\n"
      "# TYPE orrery_serve_requests_total counter\n";
  for (const auto& [outcome, count] :
       {std::pair{"completed", metrics.completed}, std::pair{"cancelled", metrics.cancelled},
        std::pair{"refused", metrics.refused}}) {
    text += fmt::format("orrery_serve_requests_total{{outcome=\"{}\"}} {}\n", outcome, count);
  }
  metrics.first_token.print("ttft_seconds", "Seconds from a request to its first token.", text);
  metrics.each_token.print("tpot_seconds", "Mean seconds of a token after the first.", text);
  metrics.whole.print("e2e_seconds", "Seconds from a request to its last token.", text);
  return text;
}

}  // namespace orrery

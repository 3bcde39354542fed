// inference/server/completion_metrics.hpp - the counts and latencies of a server, as the text that
// Prometheus reads.
//
// Owned by a CompletionServer, used on its loop. Cost: O(buckets) an observation.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/time.hpp"
#include "inference/server/engine_thread.hpp"

namespace orrery {

/// A histogram of seconds with fixed limits, which Prometheus adds up over servers.
class SecondsHistogram {
 public:
  static constexpr std::array<double, 15> kLimits{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,
                                                  0.5,   1,     2,     5,    10,   30,   120};

  void add(Duration duration);
  /// Appends the lines of the metric.
  void print(const std::string& name, const std::string& help, std::string& to) const;

 private:
  std::array<std::uint64_t, kLimits.size() + 1> counts_{};
  double sum_ = 0;
};

struct CompletionMetrics {
  EngineStatus engine;
  std::size_t active = 0;  ///< requests that the engine has not ended
  std::uint64_t completed = 0;
  std::uint64_t cancelled = 0;  ///< their clients left
  std::uint64_t refused = 0;    ///< answered with 4xx or 5xx
  SecondsHistogram first_token;
  SecondsHistogram each_token;  ///< mean after the first, by request
  SecondsHistogram whole;
};

/// Returns the metrics in Prometheus' text format 0.0.4; all names begin with orrery_serve_.
[[nodiscard]] std::string prometheus_text(const CompletionMetrics& metrics);

}  // namespace orrery

// adapter/prometheus_text.hpp - reads metrics in Prometheus' text form, as inference engines answer
// them.
//
// Pure. Comments, types, times and exemplars are passed over; lines that are none are counted and
// have no effect, so that one bad line costs no other. A value that is no number (NaN) is such a
// line: a metric that is unknown is absent. Views live as long as the text. Cost: O(bytes).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery {

/// A line: `name{label="value",..} number`.
struct MetricSample {
  std::string_view name;
  std::vector<std::pair<std::string_view, std::string>> labels;  ///< values without escapes
  double value = 0;                                              ///< infinite at most

  /// Returns the value of a label; "": there is none.
  [[nodiscard]] std::string_view label(std::string_view name) const;
};

/// Passes each sample to `take`, in their order. Returns the number of lines that are none.
std::uint64_t read_prometheus(std::string_view text,
                              const std::function<void(const MetricSample&)>& take);

}  // namespace orrery

// perf/serving/serving_engine.hpp - which software constants an engine's name and version select.
//
// A documented table of families and of the releases at which their schedulers or kernels changed;
// an unlisted name gets the constants of "any". Pure. Cost: a few text searches.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

struct EngineText {
  std::string_view name;     ///< "TensorRT-LLM (PyTorch backend)", "vLLM"
  std::string_view version;  ///< "0.17", "v0.5.12-rocm700", "" when not stated
  std::string_view vendor;   ///< of the accelerator
  bool served = false;       ///< behind an HTTP server under load, not a library call
};

struct EngineProfile {
  std::vector<std::string> keys;   ///< of its constants, the most special first; ends in "any"
  bool queued = true;              ///< a finished sequence makes room for the next
  bool mlperf = false;             ///< under the MLPerf load generator
  std::optional<double> requests;  ///< of its documented benchmark, all together
};

[[nodiscard]] EngineProfile engine_profile(const EngineText& text);

/// First number with a dot or of digits in `text`: "v0.5.12-rocm700" is 0.0512, "1.2.0rc6" 1.02:
/// major + minor / 100 + patch / 10000, so that releases order as numbers. None without digits.
[[nodiscard]] std::optional<double> release_number(std::string_view text);

}  // namespace orrery

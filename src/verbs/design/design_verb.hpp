// verbs/design/design_verb.hpp - the verb `design`: a fleet for given power, budget and mix of
// work, played in the twin.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "verbs/command_options.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

/// The options as typed; empty: not given.
struct DesignOptions {
  std::string file;
  std::string candidates;
  std::string precision;  ///< number format of the services
  std::string span = "7 days";
  std::string out;
  std::uint64_t seed = 1;
  enum class Twin : std::uint8_t { kPlays, kSkipped } twin = Twin::kPlays;
};

/// Shows what is being done; an empty text clears it.
using DesignSay = std::function<void(const std::string&)>;

/// Designs the fleet, plays it unless that is skipped, and writes the files of `out`. The verdict
/// is an error where the twin does not confirm the goodput. Errors: those of the spec, with their
/// line; anything wrong in an option, naming it; no fleet does the work within its limits.
[[nodiscard]] Result<JudgedAnswer> design(const CommandOptions& options, const DesignOptions& asked,
                                          const DesignSay& say);

}  // namespace orrery

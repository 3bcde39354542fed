// verbs/simulate/run_notes.hpp - what a simulation tells its reader beside the figures.
#pragma once

#include <string>
#include <vector>

namespace orrery {

/// Plain values; loading the input of a simulation adds to them, in its order.
struct RunNotes {
  std::vector<std::string> notes;
  /// Values assumed for prices and power that were not given or published.
  std::vector<std::string> assumptions;
};

}  // namespace orrery

// twin/information.hpp - what a policy knows of the run time of jobs; results are compared only
// within one class.
#pragma once

#include <array>
#include <cstdint>

#include "base/format/field_reader.hpp"

namespace orrery {

/// What schedulers know of a job's run time.
enum class Information : std::uint8_t {
  kOracle,    ///< the true run time: a bound on what can be reached
  kEstimate,  ///< an estimate with a lognormal error
  kBlind,     ///< nothing
};

inline std::array<EnumWord<Information>, 3> enum_words(Information) {
  return {{{"oracle", Information::kOracle},
           {"estimate", Information::kEstimate},
           {"blind", Information::kBlind}}};
}

}  // namespace orrery

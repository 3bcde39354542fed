// twin/information.hpp - what a policy is told of how long jobs run; results are compared within
// one class alone.
#pragma once

#include <array>
#include <cstdint>

#include "base/field_reader.hpp"

namespace orrery {

/// What schedulers know of a job's run time.
enum class Information : std::uint8_t {
  kOracle,    ///< the true one: a bound on what can be reached
  kEstimate,  ///< one with an error, lognormal
  kBlind,     ///< nothing
};

inline std::array<EnumWord<Information>, 3> enum_words(Information) {
  return {{{"oracle", Information::kOracle},
           {"estimate", Information::kEstimate},
           {"blind", Information::kBlind}}};
}

}  // namespace orrery

// control/any_record_test.hpp - events and inputs of every type with any fields, for tests of the
// codec. Any field: a new one is filled as soon as the codec knows it.
#pragma once

#include <cstddef>

#include "base/rng.hpp"
#include "control/event.hpp"
#include "control/input.hpp"

namespace orrery {

/// Of the type at that position of the variant. Entries of plans stay empty.
[[nodiscard]] Event any_event(std::size_t type, Rng& rng);
[[nodiscard]] InputKind any_input(std::size_t type, Rng& rng);

}  // namespace orrery

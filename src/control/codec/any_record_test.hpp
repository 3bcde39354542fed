// control/codec/any_record_test.hpp - events and inputs of every type with random fields, for tests
// of the codec. A new field is filled as soon as the codec handles it.
#pragma once

#include <cstddef>

#include "base/numbers/rng.hpp"
#include "control/event.hpp"
#include "control/input.hpp"

namespace orrery {

/// Returns a record of the type at that position of the variant. Plan entries stay empty.
[[nodiscard]] Event any_event(std::size_t type, Rng& rng);
[[nodiscard]] InputKind any_input(std::size_t type, Rng& rng);

}  // namespace orrery

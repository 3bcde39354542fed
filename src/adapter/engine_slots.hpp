// adapter/engine_slots.hpp - how many requests an engine computes at a time: by its arguments, or
// by what it answers of itself.
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "workload/revision_spec.hpp"

namespace orrery {

/// Returns the path that answers with the number of slots; "": the engine has none.
[[nodiscard]] std::string_view slots_path(EngineName engine);

/// Returns the number in such an answer; none: it does not say.
[[nodiscard]] std::optional<std::uint32_t> slots_answered(EngineName engine, std::string_view body);

}  // namespace orrery

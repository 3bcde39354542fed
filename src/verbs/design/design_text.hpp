// verbs/design/design_text.hpp - the answer of `design` as text and as JSON.
#pragma once

#include <string>

#include "base/format/field_writer.hpp"
#include "twin/design/design.hpp"
#include "twin/design/design_rehearsal.hpp"

namespace orrery {

[[nodiscard]] std::string design_text(const Design& design, const std::optional<Rehearsal>& played);
[[nodiscard]] Json design_json(const Design& design, const std::optional<Rehearsal>& played);

}  // namespace orrery

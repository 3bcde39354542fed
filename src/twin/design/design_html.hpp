// twin/design/design_html.hpp - a design as one page that needs no other file.
#pragma once

#include <optional>
#include <string>

#include "twin/design/design_rehearsal.hpp"

namespace orrery {

[[nodiscard]] std::string design_html(const Design& design, const std::optional<Rehearsal>& played);

}  // namespace orrery

// verbs/serve/apart_answer.hpp - plans whose prompts are read by instances of their own, beside
// those of joint instances.
#pragma once

#include <string>

#include "base/format/field_writer.hpp"
#include "planner/serving/serving_plan.hpp"

namespace orrery {

[[nodiscard]] Json apart_json(const ApartOffer& offer, const ServingQuestion& question);

/// A table with the best of each machine, and how the first compares with plan 1. Empty: none.
[[nodiscard]] std::string apart_text(const ServingAnswer& answer, const ServingQuestion& question);

}  // namespace orrery

// verbs/plan/plan_text.hpp - plans for people: a table, and the best one explained.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/sensitivity.hpp"
#include "verbs/plan/plan_request.hpp"

namespace orrery {

/// Returns what a term of the step spends time on.
[[nodiscard]] std::string_view meaning_of(Term term);

/// Returns "llama-3.1-8b, 512 sequences of 8,192 tokens, bf16".
[[nodiscard]] std::string job_text(const PlanQuestion& question);

/// Returns seconds in a suitable unit.
[[nodiscard]] std::string duration_text(double seconds);

/// Returns tokens or samples a second: whole numbers from 100 on.
[[nodiscard]] std::string rate_number(double rate);

/// Returns "1.3 s longer: pipeline_bubble +900 ms, tensor_parallel +600 ms, matmul -200 ms".
[[nodiscard]] std::string loss_text(const PlanOffer& winner, const PlanOffer& loser);

[[nodiscard]] std::string answer_text(const PlanAnswer& answer, const PlanRequest& request);

[[nodiscard]] std::string sensitivity_text(const std::vector<Sensitivity>& sensitivities);

}  // namespace orrery

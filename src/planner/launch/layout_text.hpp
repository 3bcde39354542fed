// planner/launch/layout_text.hpp - parallel layouts as people write them:
// "tp=8,pp=16,dp=128,zero=1".
#pragma once

#include <string>
#include <string_view>

#include "base/format/field_writer.hpp"
#include "planner/plan_space.hpp"

namespace orrery {

/// Fixes what the text names: tp, pp, vpp, dp, cp, ep, zero, micro_batch (or mbs), shard,
/// recompute_layers, sequence_parallel (or sp), recompute, offload, context_exchange. Errors: an
/// unknown key with the nearest known one, a key given twice, a value that is not one.
[[nodiscard]] Status read_layout(std::string_view text, PlanSpace& space);

/// What differs from doing nothing; tp, pp, dp and micro_batch always. read_layout reads it back.
[[nodiscard]] std::string print_layout(const ParallelPlan& plan);

/// Every dimension of a plan, and `layout`, its text.
[[nodiscard]] Json layout_json(const ParallelPlan& plan);

}  // namespace orrery

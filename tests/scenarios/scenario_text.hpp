// scenarios/scenario_text.hpp - decisions in words, for the log of a scenario.
#pragma once

#include <span>
#include <string>

#include "control/state/state.hpp"
#include "tests/scenarios/scenario_spec.hpp"

namespace orrery {

/// "64 x h100 in east/hall/su-1 (8 nodes)"; gangs of unlike roles joined by " + ".
[[nodiscard]] std::string where_text(const State& state, const JobRequest& job,
                                     std::span<const PlacedGang> gangs);

/// ", tp8 pp2 dp4, 1.02 of its best step, clock 0.85"; empty where no terms are known.
[[nodiscard]] std::string terms_text(const State& state, const JobRequest& job,
                                     std::span<const PlacedGang> gangs,
                                     std::span<const GangTerms> terms);

/// "busy, 16 short in every pod"
[[nodiscard]] std::string shown_refusal(const Refusal& refusal);

/// "$412 = hire 300 + time 100 + ..."
[[nodiscard]] std::string price_text(const Price& price, Shown shown);

/// "llama-3.1-70b on 64 x h100: tp=8,pp=1,dp=8, 1.2 s a step"
[[nodiscard]] std::string plan_text(const Topology& topology, const Work& work, const PlanKey& key,
                                    const PlanEntry& entry);

}  // namespace orrery

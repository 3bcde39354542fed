#include "twin/holds/manager_rules.hpp"

namespace orrery {
namespace {

Duration draw_minutes(Rng& rng, std::uint64_t least, std::uint64_t most) {
  return Duration::minutes(static_cast<std::int64_t>(least + rng.below(most - least + 1)));
}

/// Draws a share below `most`; in a third of the cases it is none at all.
double draw_share(Rng& rng, double most) { return rng.below(3) == 0 ? 0 : most * rng.uniform(); }

AnswerFaults draw_answers(Rng& rng) {
  return {.slow = draw_share(rng, 0.1),
          .lost = draw_share(rng, 0.4),
          .doubled = draw_share(rng, 0.3),
          .refused = draw_share(rng, 0.3),
          .empty = draw_share(rng, 0.2),
          .half = draw_share(rng, 0.3)};
}

HoldFaults draw_holds(Rng& rng) {
  return {.evicted = draw_share(rng, 0.01),
          .cancelled = draw_share(rng, 0.02),
          .requeued = rng.uniform(),
          .dirty = draw_share(rng, 0.008),
          .shrunk = draw_share(rng, 0.005),
          .suspended = draw_share(rng, 0.005),
          .retimed = draw_share(rng, 0.005),
          .no_agent = draw_share(rng, 0.1),
          .not_singular = draw_share(rng, 0.5)};
}

}  // namespace

ManagerRules draw_manager(Rng& rng, std::uint32_t nodes) {
  ManagerRules rules;
  rules.nodes = nodes / 2 + static_cast<std::uint32_t>(rng.below(nodes - nodes / 2));
  rules.pilot_nodes = 1 + static_cast<std::uint32_t>(rng.below(rules.nodes));
  rules.keep = rng.below(4) == 0 ? 1 : 0;
  rules.time = draw_minutes(rng, 12, 40);
  rules.idle = draw_minutes(rng, 1, 3);
  if (rng.below(3) == 0) rules.holds_for = HoldsFor::kOneJob;
  if (rules.holds_for == HoldsFor::kOneJob) rules.keep = 0;
  rules.faults.answers = draw_answers(rng);
  rules.faults.holds = draw_holds(rng);
  rules.faults.crash = draw_share(rng, 0.03);
  rules.faults.foreign = draw_share(rng, 0.06);
  rules.faults.drained = draw_share(rng, 0.01);
  return rules;
}

}  // namespace orrery

#include "tests/scenarios/scenario.hpp"

#include "tests/scenarios/scenario_checks.hpp"
#include "tests/scenarios/scenario_log.hpp"
#include "tests/scenarios/scenario_parts.hpp"

namespace orrery {

Result<ScenarioOutcome> play(const ScenarioSpec& spec, const std::string& root) {
  const auto made = ScenarioParts::make(spec, root);
  if (!made) return tl::unexpected(made.error());
  const ScenarioParts& parts = **made;
  ScenarioChecks checks(parts.setup(), parts.quiet_from());
  ScenarioLog log(parts, checks.state());
  const Simulation* running = nullptr;
  SimulationHooks hooks;
  hooks.input = [&](const Input& input) {
    if (input.at > checks.state().now()) checks.instant_ends();
    log.tell_refused(input.at);
  };
  hooks.events = [&](Instant at, std::span<const Event> events) {
    for (const Event& event : events) {
      log.tell(at, event, running->core().decisions());
      checks.take(at, event);
    }
  };
  hooks.tick = [&](Instant at, const State&) { log.tell_waiting(at, running->core()); };
  Simulation simulation(
      {parts.setup(), parts.world(), parts.jobs(), std::move(hooks), parts.commands()});
  running = &simulation;
  simulation.run(parts.until());
  checks.ends(simulation.state());
  log.tell_refused(Instant::max());
  log.tell_end(simulation.now());
  return ScenarioOutcome{log.text(), checks.broken()};
}

}  // namespace orrery

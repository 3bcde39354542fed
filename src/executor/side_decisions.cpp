#include "executor/side_decisions.hpp"

#include <memory>
#include <utility>

#include "control/core/held_situation.hpp"

namespace orrery {

SideDecisions::SideDecisions(const Env& env, const Options& options)
    : env_(env), options_(options), reads_(env, options_.host) {
  passes_.emplace(*options_.host.state().setup().tree);
}

void SideDecisions::run_full_pass(Core& core, Instant now) {
  pass_thread_.run([this, held = std::shared_ptr<const HeldSituation>(core.hold(now))] {
    const Instant began = env_.clock.now_monotonic();
    Proposal proposal = full_pass(*held, *passes_);
    const Duration took = env_.clock.now_monotonic() - began;
    env_.post([this, took, proposal = std::move(proposal)] {
      options_.counts.full_pass.observe(took);
      options_.host.handle(proposal);
      options_.host.changed();
    });
  });
}

void SideDecisions::search_plan(const PlanKey& key) {
  search_thread_.run([this, key, fleet = fleets_, search = options_.setup.facts().search(key)] {
    env_.post([this, key, fleet, found = search()] {
      if (fleet != fleets_) return;  // its types have other ids now; it is requested again
      options_.setup.facts().keep(key, found);
      options_.host.handle(PlanReady{key, found});
      options_.host.changed();
    });
  });
}

void SideDecisions::use_next_fleet() {
  ++fleets_;
  pass_thread_.run([this, tree = options_.host.state().setup().tree] { passes_.emplace(*tree); });
  // Behind the searches, passes and reads on the fleet of before, which need its facts.
  search_thread_.run([this, change = fleets_] {
    pass_thread_.run([this, change] {
      reads_.after_running(
          [this, change] { env_.post([this, change] { options_.setup.forget_left(change); }); });
    });
  });
}

}  // namespace orrery

#include "node/health/node_fitness.hpp"

#include <utility>

namespace orrery {

NodeFitness::NodeFitness(RealEnv& real, const Log& log, Setup setup, Events events)
    : real_(real),
      log_(log),
      spec_(std::move(setup.check)),
      events_(std::move(events)),
      burn_in_(real, log, std::move(setup.burn_in), [this] { note_burn_in_end(); }) {}

void NodeFitness::begin() {
  if (!spec_) return;
  check_ = std::make_unique<HealthCheck>(
      real_, *spec_,
      HealthCheck::Events{.passed =
                              [this] {
                                mend_if_well();
                                events_.changed();
                              },
                          .failed = [this](const std::string& why) { refuse_work(why); }});
}

void NodeFitness::end() {
  check_.reset();
  burn_in_.end();
}

// --- Hooks and claims ---------------------------------------------------------------------------

void NodeFitness::note_prologue_passed() {
  hook_complaint_.clear();
  mend_if_well();  // The hook works again, and the controller may still wait for that.
}

void NodeFitness::note_hook_failed(const std::string& evidence) {
  hook_complaint_ = evidence;
  refuse_work(evidence);
}

/// The controller decides whether the node goes out of service; then a burn-in has to pass.
void NodeFitness::note_claim(const AttemptId& id, const std::string& evidence) {
  burn_in_.claim(evidence);
  log_.warning(wall(), "a job says that the node computes wrong results", {{"why", evidence}});
  events_.fault({.layer = FaultLayer::kAccelerator,
                 .evidence = evidence,
                 .repair = true,
                 .stops_jobs = false,
                 .claimed_by = id});
}

void NodeFitness::refuse_work(const std::string& evidence) {
  log_.error(wall(), "the node is unwell", {{"why", evidence}});
  events_.changed();
  events_.fault(
      {.layer = FaultLayer::kHost, .evidence = evidence, .repair = true, .stops_jobs = false});
}

// --- Burn-in ------------------------------------------------------------------------------------

void NodeFitness::run_burn_in() {
  if (burn_in_.running()) return;
  if (events_.idle()) {
    burn_in_.run();
  } else {
    burn_in_.decline("work is here");
  }
  events_.changed();
}

void NodeFitness::leave_burn_in() {
  if (burn_in_.stop()) events_.changed();
}

void NodeFitness::note_burn_in_end() {
  if (burn_in_.failed()) return refuse_work(burn_in_.complaint());
  events_.changed();
  // No fault of any layer: it is reported as a finding of the node's checks.
  events_.fault({.layer = FaultLayer::kNone,
                 .evidence = "the burn-in " + burn_in_.state(),
                 .stops_jobs = false});
  mend_if_well();
}

/// Starts a burn-in for a claim of ranks once no attempt runs that it would disturb.
void NodeFitness::try_burn_in() {
  const bool due = !burn_in_.complaint().empty() && !burn_in_.failed();
  if (mending_ && due && events_.idle()) run_burn_in();
}

// --- Mending ------------------------------------------------------------------------------------

void NodeFitness::begin_mending() {
  mending_ = true;
  try_burn_in();
  if (check_) return check_->run();
  mend_if_well();
}

void NodeFitness::mend_if_well() {
  if (!mending_ || (!check_ && !hook_complaint_.empty()) || !burn_in_.complaint().empty()) return;
  mending_ = false;
  hook_complaint_.clear();
  events_.mended();
}

std::string NodeFitness::complaint() const {
  const bool believed = mending_ || burn_in_.failed();
  if (believed && !burn_in_.complaint().empty()) return burn_in_.complaint();
  const std::string checked = check_ ? check_->complaint() : "";
  return checked.empty() ? hook_complaint_ : checked;
}

}  // namespace orrery

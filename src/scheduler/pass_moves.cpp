// Running jobs that would be better off elsewhere.
#include <algorithm>

#include "scheduler/pass.hpp"
#include "scheduler/queue_order.hpp"

namespace orrery {
namespace {

/// Moves a pass proposes: each stops a job for a while.
constexpr std::uint32_t kMovesMax = 4;
/// Steps over the canonical ones from which another place is looked for.
constexpr double kRatioWorthALook = 1.02;

}  // namespace

// A job whose network got worse moves when what it gains over the rest of its run exceeds the work
// it loses: since its last checkpoint, the checkpoint itself, the restart.
void Pass::move_jobs() {
  std::uint32_t moves = 0;
  for (std::uint32_t i = 0; i < s_.running.size() && moves < kMovesMax; ++i) {
    const RunningJob& job = s_.running[i];
    const bool may = stopped_[i] == 0 && !job.stopping && job.gangs.size() == 1 &&
                     job.gangs.front().allocation.ranks.size() > 1 &&
                     s_.now - job.started >= Duration::from_seconds(policy_.min_run.value());
    if (may && move(i)) ++moves;
  }
}

bool Pass::move(std::uint32_t running) {
  const RunningJob& job = s_.running[running];
  const PlacedGang& old = job.gangs.front();
  const GangRequest& gang = job.request->roles[old.role].options[old.option].gang;
  WaitingJob left = as_waiting(job);
  FleetOverlay without(m_.now_->view());
  give_back(without, std::span<const PlacedGang>(job.gangs));
  const auto here = terms_of({s_, policy_, without.view(), nullptr}, left, old);
  if (!here || !here->length || here->ratio <= kRatioWorthALook) return false;
  PlaceOptions options;
  options.most = policy_.offers;
  const double devices = old.allocation.devices();
  const double cost = lost_device_seconds(job);
  std::optional<PlacedGang> best;
  GangTerms best_terms;
  for (Allocation& offer : m_.placer_.placer().offers(without.view(), gang, options)) {
    PlacedGang there{old.role, old.option, std::move(offer), gang.host};
    const auto terms = terms_of({s_, policy_, without.view(), nullptr}, left, there);
    if (!terms || !terms->length || terms->ratio >= here->ratio) continue;
    if (best && terms->ratio >= best_terms.ratio) continue;
    best = std::move(there);
    best_terms = *terms;
  }
  if (!best) return false;
  const double gained = (*here->length - *best_terms.length).count_seconds() * devices;
  if (gained <= cost) return false;
  // What is free of its new place is taken; its old one it has until it has left.
  keep_from_others(*best);
  stopped_[running] = 1;
  result_.decisions.emplace_back(
      ResizeJob{job.id, {*std::move(best)}, {best_terms}, std::nullopt, gained, cost});
  return true;
}

}  // namespace orrery

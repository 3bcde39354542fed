#include "scheduler/moves/migration.hpp"

#include <optional>
#include <utility>

#include "scheduler/moves/movable.hpp"
#include "scheduler/pass/closures.hpp"
#include "scheduler/pass/running_gang.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {
namespace {

/// The most moves that a pass proposes: each stops a job for a while.
constexpr std::uint32_t kMovesMax = 4;
/// The ratio of a step to its canonical one above which another place is sought.
constexpr double kRatioWorthALook = 1.02;

}  // namespace

Migration::Migration(PassContext& pass, StartSearch& search)
    : pass_(pass), s_(pass.situation), policy_(pass.policy), search_(search) {}

void Migration::move_jobs() {
  std::uint32_t moves = 0;
  for (std::uint32_t i = 0; i < s_.running.size() && moves < kMovesMax; ++i) {
    const bool may =
        is_movable(pass_, i) && s_.running[i].gangs.front().allocation.ranks.size() > 1;
    if (may && move(i)) ++moves;
  }
}

bool Migration::move(std::uint32_t running) {
  const RunningJob& job = s_.running[running];
  const PlacedGang& old = job.gangs.front();
  const GangOption& option = job.request->roles[old.role].options[old.option];
  if (!option.plan) return false;  // without a plan all places are alike
  const GangRequest& gang = option.gang;
  const WaitingJob left = as_waiting(job, s_.now);
  // The terms at a given place depend on links alone, not on the jobs there.
  const auto here = terms_of({s_, policy_, pass_.fleet.now(), nullptr}, left, old);
  if (!here || !here->length || here->ratio <= kRatioWorthALook) return false;
  FleetOverlay without(pass_.fleet.now());
  give_back(without, std::span<const PlacedGang>(job.gangs));
  hide_closed(without, s_, job, s_.now + *here->length);
  pass_.power.leave(job);
  PlaceOptions options;
  options.most = policy_.offers;
  const double devices = old.allocation.devices();
  const double cost = lost_device_seconds(job, s_.now);
  std::optional<PlacedGang> best;
  GangTerms best_terms;
  for (Allocation& offer : search_.gangs().offers(without.view(), gang, options)) {
    PlacedGang there{old.role, old.option, std::move(offer), gang.host};
    const auto terms = terms_of(search_.context_of(without.view()), left, there);
    if (!terms || !terms->length || terms->ratio >= here->ratio) continue;
    if (best && terms->ratio >= best_terms.ratio) continue;
    best = std::move(there);
    best_terms = *terms;
  }
  const double gained = best ? (*here->length - *best_terms.length).count_seconds() * devices : 0;
  if (!best || gained <= cost) {
    pass_.power.enter(job);
    return false;
  }
  pass_.power.enter(*best, best_terms);
  // The free part of its new place is taken; the job holds its old place until it has left.
  pass_.fleet.keep_from_others(*best);
  pass_.set_decided(running);
  pass_.result.decisions.emplace_back(
      ResizeJob{job.id, {*std::move(best)}, {best_terms}, std::nullopt, gained, cost});
  return true;
}

}  // namespace orrery

#include "scheduler/preempt/preemption.hpp"

#include <algorithm>
#include <bit>

#include "base/assert.hpp"

namespace orrery {
namespace {

/// What is taken in one step: a part of a job, or the rest that belongs to no part. The rest comes
/// after all parts of its job, so a job is taken whole when its rest is.
struct Unit {
  static constexpr std::uint32_t kRest = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t victim = 0;
  std::uint32_t part = kRest;
  double density = 0;     ///< cost a device
  std::int64_t cost = 0;  ///< for a rest: of the whole job

  [[nodiscard]] bool rest() const { return part == kRest; }
};

bool cheaper(const Unit& a, const Unit& b) {
  if (a.density != b.density) return a.density < b.density;
  return a.victim != b.victim ? a.victim < b.victim : a.part < b.part;
}

std::uint64_t devices_at(const Allocation& allocation, NodeId node) {
  const std::vector<NodeDevices>& ranks = allocation.ranks;
  const auto at =
      std::lower_bound(ranks.begin(), ranks.end(), node,
                       [](const NodeDevices& entry, NodeId id) { return entry.node < id; });
  ORRERY_ASSERT(at != ranks.end() && at->node == node, "a part is on a node of its gang");
  return at->devices;
}

/// Calls edit(allocation, host) for what a unit holds.
template <class Edit>
void for_each_piece(const Victim& victim, std::uint32_t part, Edit&& edit) {
  if (part != Unit::kRest) {
    const VictimPart& given = victim.parts[part];
    const HeldGang& gang = victim.gangs[given.gang];
    const std::uint64_t devices = devices_at(*gang.allocation, given.node);
    edit(Allocation{{{given.node, devices}}, {}, gang.allocation->share}, gang.host);
    return;
  }
  for (std::uint32_t g = 0; g < victim.gangs.size(); ++g) {
    const HeldGang& gang = victim.gangs[g];
    if (victim.parts.empty()) {
      edit(*gang.allocation, gang.host);
      continue;
    }
    Allocation left = *gang.allocation;
    std::erase_if(left.ranks, [&](const NodeDevices& entry) {
      return std::any_of(victim.parts.begin(), victim.parts.end(), [&](const VictimPart& given) {
        return given.gang == g && given.node == entry.node;
      });
    });
    edit(left, gang.host);
  }
}

double devices_of(const Allocation& allocation) {
  std::uint32_t devices = allocation.devices();
  for (const NodeDevices& entry : allocation.idle) {
    devices += static_cast<std::uint32_t>(std::popcount(entry.devices));
  }
  return devices * (static_cast<double>(allocation.share) / kWholeDevice);
}

FleetOverlay& shown_in(std::optional<FleetOverlay>& overlay, const FleetView& view) {
  if (!overlay) return overlay.emplace(view);
  overlay->reset(view);
  return *overlay;
}

class Search {
 public:
  Search(const FleetView& view, std::span<const Victim> victims, const PreemptionAsk& ask)
      : view_(view),
        victims_(victims),
        ask_(ask),
        cost_max_(ask.cost_max),
        prefix_(shown_in(scratch().prefix, view)),
        trial_(shown_in(scratch().trial, view)) {
    for (std::uint32_t v = 0; v < victims.size(); ++v) add_units(v);
    std::sort(units_.begin(), units_.end(), cheaper);
  }

  std::optional<PreemptionPlan> run();

 private:
  void add_units(std::uint32_t victim);
  [[nodiscard]] PreemptionScratch& scratch() {
    return ask_.scratch != nullptr ? *ask_.scratch : own_scratch_;
  }

  [[nodiscard]] bool fits(const FleetView& view) {
    if (tries_ == 0) return false;
    --tries_;
    return ask_.place.fits(view);
  }
  /// Where it fits.
  void settle_on(const FleetView& view) {
    auto gangs = ask_.place.place(view);
    ORRERY_ASSERT(gangs, "what fits is placed");
    gangs_ = *std::move(gangs);
  }
  void remove(FleetOverlay& overlay, const Unit& unit) const {
    for_each_piece(
        victims_[unit.victim], unit.part,
        [&](const Allocation& held, const HostNeeds& host) { give_back(overlay, held, host); });
  }
  void put_back(FleetOverlay& overlay, const Unit& unit) const {
    for_each_piece(
        victims_[unit.victim], unit.part,
        [&](const Allocation& held, const HostNeeds& host) { take(overlay, held, host); });
  }

  void move_to(std::size_t length);
  bool fits_with(std::size_t length);
  bool grow();
  template <class Out>
  void strike(Out&& out);
  /// The part of a prefix that matters to the job at its placement.
  struct Touched {
    std::vector<Unit> units;
    std::int64_t cost = 0;  ///< of those that hold devices the job takes
  };
  [[nodiscard]] Touched touched() const;
  [[nodiscard]] std::optional<PreemptionPlan> refine();
  void leave_out(std::vector<Unit>& kept);
  [[nodiscard]] PreemptionPlan plan_of(std::vector<Unit> kept) const;

  const FleetView& view_;
  std::span<const Victim> victims_;
  const PreemptionAsk& ask_;
  std::int64_t cost_max_;  ///< limit for a plan to be better than the best so far
  std::uint32_t tries_ = kPreemptionTries;
  std::vector<Unit> units_;  ///< that may still be taken, cheapest first
  std::size_t failed_ = 0;   ///< with the first failed_ units removed, the job does not fit
  std::size_t length_ = 0;   ///< units gone in prefix_
  PreemptionScratch own_scratch_;
  FleetOverlay& prefix_;
  FleetOverlay& trial_;
  std::vector<PlacedGang> gangs_;  ///< where the job was last settled
};

void Search::add_units(std::uint32_t v) {
  const Victim& victim = victims_[v];
  const auto unit_of = [&](std::uint32_t part, std::int64_t cost) {
    double devices = 0;
    for_each_piece(victim, part,
                   [&](const Allocation& held, const HostNeeds&) { devices += devices_of(held); });
    const double useful = std::clamp(devices, 1.0 / kWholeDevice, double(ask_.devices));
    return Unit{v, part, static_cast<double>(cost) / useful, cost};
  };
  double dearest = 0;
  std::int64_t parts_cost = 0;
  for (std::uint32_t part = 0; part < victim.parts.size(); ++part) {
    parts_cost += victim.parts[part].cost;
    units_.push_back(unit_of(part, victim.parts[part].cost));
    dearest = std::max(dearest, units_.back().density);
  }
  ORRERY_ASSERT(victim.cost >= parts_cost, "a whole job costs at least what its parts do");
  Unit rest = unit_of(Unit::kRest, victim.cost - parts_cost);
  rest.density = std::max(rest.density, dearest);
  rest.cost = victim.cost;
  units_.push_back(rest);
}

void Search::move_to(std::size_t length) {
  for (; length_ < length; ++length_) remove(prefix_, units_[length_]);
  while (length_ > length) put_back(prefix_, units_[--length_]);
}

bool Search::fits_with(std::size_t length) {
  move_to(length);
  return fits(prefix_.view());
}

/// Advances to the shortest prefix with which the job fits.
bool Search::grow() {
  std::size_t step = 1;
  std::size_t fits = failed_;
  do {
    if (fits == units_.size()) return false;
    failed_ = fits;
    fits = std::min(fits + step, units_.size());
    step *= 2;
  } while (!fits_with(fits));
  while (fits - failed_ > 1) {
    const std::size_t middle = failed_ + (fits - failed_) / 2;
    (fits_with(middle) ? fits : failed_) = middle;
  }
  move_to(fits);
  settle_on(prefix_.view());
  return true;
}

/// Excludes the units for which out(unit) holds; if a part of a job is excluded, so is the whole
/// job.
template <class Out>
void Search::strike(Out&& out) {
  std::vector<bool> broken(victims_.size());
  for (const Unit& unit : units_) {
    if (out(unit)) broken[unit.victim] = true;
  }
  move_to(failed_);
  std::size_t kept = 0;
  std::size_t failed = failed_;
  for (std::size_t i = 0; i < units_.size(); ++i) {
    if (out(units_[i]) || (units_[i].rest() && broken[units_[i].victim])) {
      if (i >= failed_) continue;
      put_back(prefix_, units_[i]);
      --failed;
    } else {
      units_[kept++] = units_[i];
    }
  }
  units_.resize(kept);
  failed_ = length_ = failed;
}

/// The units of the prefix that hold something on the nodes where the job is placed; all units of a
/// job whose rest does.
Search::Touched Search::touched() const {
  std::vector<std::uint64_t> wanted(view_.topology().node_count());
  for (const PlacedGang& gang : gangs_) {
    for (const NodeDevices& at : gang.allocation.ranks) wanted[at.node.value()] |= at.devices;
    for (const NodeDevices& at : gang.allocation.idle) wanted[at.node.value()] |= at.devices;
  }
  Touched touched;
  std::vector<bool> whole(victims_.size());
  for (std::size_t i = length_; i-- > 0;) {
    const Unit& unit = units_[i];
    bool near = whole[unit.victim];
    bool in_the_way = false;
    const auto look = [&](const NodeDevices& at) {
      near = near || wanted[at.node.value()] != 0;
      in_the_way = in_the_way || (wanted[at.node.value()] & at.devices) != 0;
    };
    for_each_piece(victims_[unit.victim], unit.part, [&](const Allocation& held, const HostNeeds&) {
      std::for_each(held.ranks.begin(), held.ranks.end(), look);
      std::for_each(held.idle.begin(), held.idle.end(), look);
    });
    if (!near) continue;
    if (in_the_way && !whole[unit.victim]) touched.cost += unit.cost;
    whole[unit.victim] = whole[unit.victim] || unit.rest();
    touched.units.push_back(unit);
  }
  return touched;
}

/// Puts back, the most expensive first, each unit without which the job still fits.
void Search::leave_out(std::vector<Unit>& kept) {
  std::sort(kept.begin(), kept.end(), [](const Unit& a, const Unit& b) {
    if (a.cost != b.cost) return a.cost > b.cost;
    return a.victim != b.victim ? a.victim > b.victim : a.part > b.part;
  });
  std::vector<bool> whole(victims_.size());
  std::erase_if(kept, [&](const Unit& unit) {
    if (!whole[unit.victim]) {
      put_back(trial_, unit);
      if (fits(trial_.view())) return true;
      remove(trial_, unit);
    }
    whole[unit.victim] = whole[unit.victim] || unit.rest();
    return false;
  });
}

/// The plan that results from the present prefix, if it can cost at most `cost_max_`.
std::optional<PreemptionPlan> Search::refine() {
  Touched kept = touched();
  if (kept.cost > cost_max_) return std::nullopt;
  trial_.reset(view_);
  for (const Unit& unit : kept.units) remove(trial_, unit);
  if (fits(trial_.view())) {
    leave_out(kept.units);
    settle_on(trial_.view());
  } else {
    const auto first = units_.begin();
    kept.units.assign(first, first + static_cast<std::ptrdiff_t>(length_));
  }
  PreemptionPlan plan = plan_of(std::move(kept.units));
  if (plan.cost > cost_max_) return std::nullopt;
  return plan;
}

PreemptionPlan Search::plan_of(std::vector<Unit> kept) const {
  PreemptionPlan plan{.gangs = gangs_};
  std::sort(kept.begin(), kept.end(), [](const Unit& a, const Unit& b) {
    return a.victim != b.victim ? a.victim < b.victim : a.part > b.part;
  });
  for (const Unit& unit : kept) {
    const bool same = !plan.yields.empty() && plan.yields.back().victim == unit.victim;
    if (!same) plan.yields.push_back({unit.victim, {}});
    // The rest comes first and stands for all parts.
    const bool whole = unit.rest() || (same && plan.yields.back().parts.empty());
    if (whole && same) continue;
    plan.cost += unit.cost;
    if (!whole) plan.yields.back().parts.insert(plan.yields.back().parts.begin(), unit.part);
  }
  return plan;
}

std::optional<PreemptionPlan> Search::run() {
  if (ask_.as_it_is == AsItIs::kUnknown && fits_with(0)) {
    settle_on(prefix_.view());
    return PreemptionPlan{.gangs = gangs_};
  }
  std::optional<PreemptionPlan> best;
  strike([&](const Unit& unit) { return unit.cost > cost_max_; });
  while (grow()) {
    const Unit last = units_[length_ - 1];
    if (std::optional<PreemptionPlan> plan = refine()) {
      if (const std::optional<std::uint32_t> spared = ask_.object(*plan)) {
        strike([&](const Unit& unit) { return unit.victim == *spared; });
        continue;
      }
      cost_max_ = plan->cost - 1;
      best = std::move(plan);
    }
    strike([&](const Unit& unit) {
      return unit.cost > cost_max_ || (unit.victim == last.victim && unit.part == last.part);
    });
  }
  return best;
}

}  // namespace

std::optional<PreemptionPlan> plan_preemption(const FleetView& view,
                                              std::span<const Victim> victims,
                                              const PreemptionAsk& ask) {
  return Search(view, victims, ask).run();
}

}  // namespace orrery

#include "scheduler/price/gang_pricing.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>

#include "perf/machine/placement.hpp"
#include "scheduler/power/gang_power.hpp"
#include "scheduler/price/data_transfer.hpp"

namespace orrery {
namespace {

/// Rounds a value and clamps it to what fits.
std::int64_t saturated_round(double value) {
  constexpr double kMost = 9e18;
  return static_cast<std::int64_t>(std::llround(std::clamp(value, -kMost, kMost)));
}

/// Millionths of a dollar.
std::int64_t micro(double dollars) { return saturated_round(dollars * 1e6); }

/// Dollars a second of the job's own time: the hire of its first options.
double owners_rate(const PriceContext& context, const JobRequest& job) {
  double rate = 0;
  for (const RoleRequest& role : job.roles) {
    const GangRequest& gang = role.options.front().gang;
    rate +=
        role.gangs * gang.devices * (gang.share / 1000.0) * hire_of(any_costs(context, gang.type));
  }
  return rate;
}

/// Adds up the price of one gang.
class Sum {
 public:
  Sum(const PriceContext& context, const WaitingJob& job)
      : context_(context), job_(job), weights_(context.policy.weights) {}

  void add_use(const DeviceCosts* costs, const DeviceTimeUse& use) {
    const double held = use.devices * use.seconds;
    add(PriceTerm::kHire, weights_.hire * held * hire_of(costs));
    if (costs == nullptr) return;
    const Situation& s = context_.situation;
    const DollarsPerJoule electricity = mean_or(s.electricity, costs->electricity, s, use);
    const GramsCo2PerJoule carbon = mean_or(s.carbon, costs->carbon, s, use);
    const double joules = held * use.draw.value() * costs->pue;
    add(PriceTerm::kEnergy,
        weights_.energy * held * costs->electricity_beside(use.draw, electricity).value());
    add(PriceTerm::kCarbon, weights_.carbon_tonne * joules * carbon.value() * 1e-6);
  }

  /// Adds the owner's time until the job is done and the cost of the gangs beside it, as far as
  /// these have not paid yet. `wait`: time before the start, in which no gang is held.
  void add_time(double seconds, double wait = 0) {
    const GangsBeside& beside = context_.beside;
    const double more = std::max(seconds - beside.timed, 0.0);
    const double rate = owners_rate(context_, *job_.request);
    add(PriceTerm::kHire, beside.hire * more);
    add(PriceTerm::kEnergy, beside.energy * more);
    add(PriceTerm::kCarbon, beside.carbon * more);
    add(PriceTerm::kTime, time_weight() * rate * (more + wait));
    if (!job_.request->deadline) return;
    const double left = (*job_.request->deadline - context_.situation.now).count_seconds();
    const double late = std::max(seconds + wait - left, 0.0) - std::max(beside.timed - left, 0.0);
    if (late > 0) add(PriceTerm::kLateness, weights_.lateness * rate * late);
  }

  /// Adds the data that lie elsewhere: egress, and the time of devices and owner that wait for
  /// them.
  void add_data(const PlacedGang& gang, double hire) {
    const Topology& topology = context_.view.topology();
    const DataTransfer data =
        transfer_to(site_ordinal(topology, gang.allocation.ranks.front().node), topology,
                    *job_.request, job_.data_at | context_.beside.data_at);
    const double rate =
        gang.allocation.devices() * hire + time_weight() * owners_rate(context_, *job_.request);
    add(PriceTerm::kData, weights_.data * (data.dollars + data.seconds * rate));
  }

  /// Adds failures: each costs half an interval between checkpoints and a restart, on all devices.
  void add_failure(const PlacedGang& gang, double seconds, double hire) {
    const Situation& s = context_.situation;
    double rate = 0;
    for (const NodeDevices& at : gang.allocation.ranks) {
      rate += s.node_risk.empty() ? 1.0 : static_cast<double>(s.node_risk[at.node.value()]);
    }
    const JobRequest& job = *job_.request;
    const bool writes = job.checkpoint_interval != Duration::max();
    const double between = writes ? job.checkpoint_interval.count_seconds() : seconds;
    const double each = between / 2 + job.restart.count_seconds();
    const double failures = rate * s.failures_per_node_second * seconds;
    add(PriceTerm::kFailure, weights_.failure * failures * each * gang.allocation.devices() * hire);
  }

  void add_stranded(const PlacedGang& gang, double hire) {
    add(PriceTerm::kFragmentation, weights_.fragmentation * hire * context_.policy.horizon.value() *
                                       stranded_devices(context_.view, gang.allocation.ranks));
  }

  /// Adds the part of the tightest limit's room that the gang takes.
  void add_headroom(const PlacedGang& gang, const DeviceTimeUse& use, double hire) {
    const Situation& s = context_.situation;
    if (s.power == nullptr || use.draw <= Watts()) return;
    double taken = 0;
    for (const NodeDevices& at : gang.allocation.ranks) {
      const DomainId rack = context_.view.topology().place(at.node).rack;
      const Watts room = watts_of(s.power->headroom(*s.caps, rack).free);
      const double devices = std::popcount(at.devices);
      taken = std::max(taken, room > Watts() ? use.draw * devices / room : 1.0);
    }
    add_room_taken(std::min(taken, 1.0), use, hire);
  }
  void add_room_taken(double part, const DeviceTimeUse& use, double hire) {
    add(PriceTerm::kHeadroom, weights_.headroom * part * use.devices * use.seconds * hire);
  }

  [[nodiscard]] const Price& price() const { return price_; }

 private:
  void add(PriceTerm term, double dollars) { price_[term] += micro(dollars); }

  [[nodiscard]] double time_weight() const {
    return job_.request->goal == JobGoal::kTime ? weights_.time
                                                : weights_.time * weights_.time_cost_goal;
  }
  const PriceContext& context_;
  const WaitingJob& job_;
  const PriceWeights& weights_;
  Price price_;
};

std::optional<GangTerms> by_best_plan(const PriceContext& context, const WaitingJob& job,
                                      const PlacedGang& gang, std::span<const PlannedWork> plans) {
  const RoleRequest& role = job.request->roles[gang.role];
  const GangOption& option = role.options[gang.option];
  const std::span<const NodeDevices> ranks = gang.allocation.ranks;
  const Placement placement = placement_of(ranks, context.view);
  std::optional<GangTerms> best;
  double fastest = 0;
  for (std::uint32_t i = 0; i < plans.size(); ++i) {
    const PlannedTraining* training = plans[i].training();
    if (training != nullptr && !check_ranks(training->plan, ranks, context.view.topology())) {
      continue;
    }
    const std::optional<Repriced> here = reprice(plans[i], placement);
    if (!here || (best && here->step_seconds >= fastest)) continue;
    fastest = here->step_seconds;
    best = GangTerms{.ratio = here->ratio, .plan = i};
    best->length =
        left_of(job, whole_run_time(*job.request, role, option, {&plans[i], here->ratio}));
  }
  return best;
}

/// A gang on its canonical piece.
struct IdealRun {
  const DeviceCosts* costs = nullptr;
  DeviceTimeUse use;
};

IdealRun ideal_run(const PriceContext& context, const WaitingJob& job, const IdealGang& ideal) {
  const RoleRequest& role = job.request->roles[ideal.role];
  const GangOption& option = role.options[ideal.option];
  const PlanTable* plans = context.situation.plans;
  const PlanEntry* entry = plans != nullptr && option.plan ? plans->find(*option.plan) : nullptr;
  const PlannedWork* plan = entry != nullptr && *entry ? &entry->value().front() : nullptr;
  const DeviceCosts* costs = any_costs(context, option.gang.type);
  const auto devices = static_cast<double>(option.gang.devices);
  const double held = ideal_seconds(context, job, ideal, plan);
  return {costs, {devices, held, draw_of(plan, costs), ideal.wait}};
}

ExpectedEnergy metered_energy(const DeviceCosts* costs, const DeviceTimeUse& use) {
  if (costs == nullptr || use.draw <= Watts()) return {.joules = 0, .known = false};
  const double held = use.devices * use.seconds;
  return {.joules = saturated_round(held * costs->metered(use.draw).value()), .known = true};
}

struct GangHere {
  const PlacedGang& gang;
  const GangTerms& terms;
};

struct PricedRun {
  DeviceTimeUse use;
  double hire = 0;  ///< dollars a second of one device
};

/// The terms of a run that do not depend on what else is free: hire, energy, carbon, time,
/// lateness, data and failure.
PricedRun add_running(Sum& sum, const PriceContext& context, const WaitingJob& job,
                      const GangHere& here) {
  const PlacedGang& gang = here.gang;
  const double share = gang.allocation.share / static_cast<double>(kWholeDevice);
  const double seconds = seconds_of(context, job, gang, here.terms);
  const std::array<PricedPart, 2> parts = parts_of(context, gang);
  const double hire = mean_hire(parts);
  for (const PricedPart& part : parts) {
    if (part.devices > 0) sum.add_use(part.costs, {part.devices * share, seconds, here.terms.draw});
  }
  sum.add_time(seconds);
  if (!job.request->data.empty()) sum.add_data(gang, hire);
  if (context.situation.failures_per_node_second > 0) sum.add_failure(gang, seconds, hire);
  return {{gang.allocation.devices() * share, seconds, here.terms.draw}, hire};
}

/// The costs of a gang alone, dollars a second, and how long its devices are held.
struct RunningCosts {
  double seconds = 0;
  double hire = 0;
  double energy = 0;
  double carbon = 0;
};

/// The costs of a gang without what it adds to the cost of the gangs beside it.
RunningCosts own_costs(const PriceContext& context, const WaitingJob& job, const GangPriced& gang) {
  const GangsBeside& beside = context.beside;
  RunningCosts own{.seconds = seconds_of(context, job, gang.gang, gang.terms)};
  if (own.seconds <= 0) return own;
  const double more = std::max(own.seconds - beside.timed, 0.0);
  const auto a_second = [&](PriceTerm term, double others) {
    return (static_cast<double>(gang.price[term]) * 1e-6 - others * more) / own.seconds;
  };
  own.hire = a_second(PriceTerm::kHire, beside.hire);
  own.energy = a_second(PriceTerm::kEnergy, beside.energy);
  own.carbon = a_second(PriceTerm::kCarbon, beside.carbon);
  return own;
}

/// The weight of a rack's stranded devices beside those of its nodes.
constexpr double kRackShare = 0.25;

double stranded(double free, double all) { return free * (1 - free / all); }

}  // namespace

tl::expected<GangTerms, Refusal> terms_of(const PriceContext& context, const WaitingJob& job,
                                          const PlacedGang& gang) {
  const GangOption& option = job.request->roles[gang.role].options[gang.option];
  const DeviceCosts* costs = costs_at(context, gang.allocation.ranks.front().node);
  const PlanTable* plans = context.situation.plans;
  const PlanEntry* entry = plans != nullptr && option.plan ? plans->find(*option.plan) : nullptr;
  GangTerms terms;
  double clock_bound = 1;
  if (entry != nullptr) {
    if (!*entry) {
      return tl::unexpected(Refusal{entry->error().kind, TopologyLevel::kFleet, 0});
    }
    const std::optional<GangTerms> planned = by_best_plan(context, job, gang, entry->value());
    if (!planned) return tl::unexpected(Refusal{RejectionKind::kNever, TopologyLevel::kFleet, 0});
    terms = *planned;
    clock_bound = entry->value()[terms.plan].clock_bound;
    terms.draw = draw_of(&entry->value()[terms.plan], costs);
  } else {
    const RoleRequest& role = job.request->roles[gang.role];
    terms.length = left_of(job, whole_run_time(*job.request, role, option, {}));
    terms.draw = draw_of(nullptr, costs);
  }
  if (context.power == nullptr) return terms;
  const PowerModel* model = costs != nullptr && costs->power ? &*costs->power : nullptr;
  const PowerQuestion question{*context.power, *context.situation.caps, {model, clock_bound}};
  if (settle_power(question, gang, terms)) {
    return tl::unexpected(
        Refusal{RejectionKind::kPower, TopologyLevel::kFleet, gang.allocation.devices()});
  }
  return terms;
}

double least_seconds(const PriceContext& context, const WaitingJob& job) {
  double longest = 0;
  for (std::uint32_t r = 0; r < job.request->roles.size(); ++r) {
    double least = std::numeric_limits<double>::infinity();
    for (std::uint32_t i = 0; i < job.request->roles[r].options.size(); ++i) {
      least = std::min(least, ideal_run(context, job, {r, i, {}}).use.seconds);
    }
    if (std::isfinite(least)) longest = std::max(longest, least);
  }
  return longest;
}

Price price_of_alike(const PriceContext& context, const WaitingJob& job, const GangPriced& gang,
                     std::uint32_t alike) {
  Price price = gang.price;
  if (alike <= 1) return price;
  const RunningCosts own = own_costs(context, job, gang);
  const double others = (alike - 1) * own.seconds;
  price[PriceTerm::kHire] += micro(own.hire * others);
  price[PriceTerm::kEnergy] += micro(own.energy * others);
  price[PriceTerm::kCarbon] += micro(own.carbon * others);
  for (const PriceTerm term :
       {PriceTerm::kFragmentation, PriceTerm::kFailure, PriceTerm::kHeadroom}) {
    price[term] *= alike;
  }
  return price;
}

void add_beside(PriceContext& context, const WaitingJob& job, const GangPriced& gang) {
  GangsBeside& beside = context.beside;
  const RunningCosts own = own_costs(context, job, gang);
  beside.hire += own.hire;
  beside.energy += own.energy;
  beside.carbon += own.carbon;
  beside.timed = std::max(beside.timed, own.seconds);
  beside.until = std::max(beside.until, own.seconds);
  const NodeId first = gang.gang.allocation.ranks.front().node;
  beside.data_at |= site_bit(site_ordinal(context.view.topology(), first));
}

Price ideal_price(const PriceContext& context, const WaitingJob& job, const IdealGang& ideal) {
  const IdealRun run = ideal_run(context, job, ideal);
  Sum sum(context, job);
  sum.add_use(run.costs, run.use);
  sum.add_time(run.use.seconds, ideal.wait.count_seconds());
  return sum.price();
}

Price price_of(const PriceContext& context, const WaitingJob& job, const PlacedGang& gang,
               const GangTerms& terms) {
  Sum sum(context, job);
  const PricedRun running = add_running(sum, context, job, {gang, terms});
  sum.add_stranded(gang, running.hire);
  sum.add_headroom(gang, running.use, running.hire);
  return sum.price();
}

Price price_of_wait(const PriceContext& context, const WaitingJob& job, const GangPriced& gang,
                    Duration wait) {
  const double share = gang.gang.allocation.share / static_cast<double>(kWholeDevice);
  const double seconds = seconds_of(context, job, gang.gang, gang.terms);
  Sum sum(context, job);
  for (const PricedPart& part : parts_of(context, gang.gang)) {
    if (part.devices == 0) continue;
    sum.add_use(part.costs, {part.devices * share, seconds, gang.terms.draw, wait});
  }
  sum.add_time(0, wait.count_seconds());
  Price price;
  for (const PriceTerm term : {PriceTerm::kEnergy, PriceTerm::kCarbon, PriceTerm::kTime}) {
    price[term] = sum.price()[term];
  }
  return price;
}

ExpectedEnergy energy_of(const PriceContext& context, const WaitingJob& job, const PlacedGang& gang,
                         const GangTerms& terms) {
  const double share = gang.allocation.share / static_cast<double>(kWholeDevice);
  const double seconds = seconds_of(context, job, gang, terms);
  ExpectedEnergy energy;
  for (const PricedPart& part : parts_of(context, gang)) {
    if (part.devices == 0) continue;
    energy += metered_energy(part.costs, {part.devices * share, seconds, terms.draw});
  }
  return energy;
}

ExpectedEnergy ideal_energy(const PriceContext& context, const WaitingJob& job,
                            const IdealGang& ideal) {
  const IdealRun run = ideal_run(context, job, ideal);
  return metered_energy(run.costs, run.use);
}

bool better_for(JobGoal goal, const PricedWay& a, const PricedWay& b) {
  if (goal != JobGoal::kEnergy) return a.price.total() < b.price.total();
  const auto order = [](const PricedWay& way) {
    return std::tuple(way.price[PriceTerm::kLateness] > 0, !way.energy.known,
                      way.energy.known ? way.energy.joules : 0, way.price.total());
  };
  return order(a) < order(b);
}

// Under power limits the gang may run at a lower clock: longer, but with less energy.
Price least_price(const PriceContext& context, const WaitingJob& job, const IdealGang& ideal) {
  Price least = ideal_price(context, job, ideal);
  if (context.power != nullptr) least[PriceTerm::kEnergy] = least[PriceTerm::kCarbon] = 0;
  return least;
}

Price most_price(const PriceContext& context, const WaitingJob& job, const PlacedGang& gang,
                 const GangTerms& terms) {
  Sum sum(context, job);
  const PricedRun running = add_running(sum, context, job, {gang, terms});
  sum.add_room_taken(1, running.use, running.hire);
  return sum.price();
}

Price price_of_stranded(const PriceContext& context, FleetTypeId type, double devices) {
  const double each = hire_of(any_costs(context, type)) * context.policy.horizon.value();
  Price price;
  price[PriceTerm::kFragmentation] = micro(context.policy.weights.fragmentation * each * devices);
  return price;
}

Price price_of_lost_work(const PriceContext& context, const WaitingJob& job,
                         double device_seconds) {
  const FleetTypeId type = job.request->roles.front().options.front().gang.type;
  const double hire = hire_of(any_costs(context, type));
  Price price;
  price[PriceTerm::kLostWork] = micro(context.policy.weights.lost_work * device_seconds * hire);
  return price;
}

double stranded_devices(const FleetView& view, std::span<const NodeDevices> gang,
                        GangDevices devices) {
  const Topology& topology = view.topology();
  double sum = 0;
  for (std::size_t i = 0; i < gang.size();) {
    const NodeGroup& group = topology.group(gang[i].node);
    const DomainId rack = topology.place(gang[i].node).rack;
    double rack_free = view.free(rack, group.type).devices;
    const double rack_all = topology.device_count(rack, group.type);
    double taken = 0;
    for (; i < gang.size() && topology.place(gang[i].node).rack == rack; ++i) {
      const double all = topology.group(gang[i].node).devices;
      const double mine = std::popcount(gang[i].devices);
      double free = view.node(gang[i].node).available();
      if (devices == GangDevices::kOwn && view.node(gang[i].node).health == NodeHealth::kReady) {
        free += mine;
        rack_free += mine;
      }
      const double takes = std::min(mine, free);
      sum += stranded(free - takes, all) - stranded(free, all);
      taken += takes;
    }
    const double left = std::max(rack_free - taken, 0.0);
    sum += kRackShare * (stranded(left, rack_all) - stranded(rack_free, rack_all));
  }
  return sum;
}

// f (1 - f/d) changes by at most one for each device, and a node that is taken whole strands none
// before or after.
double stranded_most(const Topology& topology, const GangRequest& gang) {
  const bool whole = gang.node_devices == topology.node_devices_max(gang.type) &&
                     gang.devices % gang.node_devices == 0;
  return gang.devices * (kRackShare + (whole ? 0 : 1));
}

}  // namespace orrery

#include "scheduler/price/priced_placer.hpp"

#include <algorithm>

#include "scheduler/price/expected_bill.hpp"
#include "scheduler/price/time_shift.hpp"

namespace orrery {
namespace {

std::uint32_t held_of(const JobRequest& job, std::span<const PlacedGang> placed, FleetTypeId type) {
  std::uint32_t devices = 0;
  for (const PlacedGang& gang : placed) {
    const GangRequest& request = job.roles[gang.role].options[gang.option].gang;
    if (request.type == type) devices += request.devices;
  }
  return devices;
}

/// Expected costs of a job's gangs, as decisions count them.
Dollars expected_cost(const PriceContext& context, const WaitingJob& job,
                      std::span<const PlacedGang> gangs, std::span<const GangTerms> terms) {
  const ExpectedBill bill = expected_bill(context, job, gangs, terms);
  return Dollars(bill.dollars() + bill.assumed_hire);
}

}  // namespace

PricedPlacer::PricedPlacer(const PlaceTree& tree) : placer_(tree) {
  for (const Place& place : tree.places()) {
    if (place.is(TopologyLevel::kSite)) sites_.push_back(tree.id_of(place));
  }
  if (sites_.size() == 1) sites_.clear();
}

void PricedPlacer::begin() {
  for (FreedOfType& type : freed_) {
    type.starts.clear();
    type.list.clear();
    type.claimed = 0;
  }
  lemons_.reset();
  forget_offers();
  holds_until_ = Instant::max();
  wake_ = Instant::max();
}

PricedPlacer::FreedOfType& PricedPlacer::freed(FleetTypeId type) {
  if (freed_.size() <= type.value()) freed_.resize(type.value() + 1);
  return freed_[type.value()];
}

void PricedPlacer::add_start(const JobRequest& job, std::span<const PlacedGang> gangs,
                             Instant end) {
  for (const PlacedGang& placed : gangs) {
    const GangRequest& gang = job.roles[placed.role].options[placed.option].gang;
    FreedOfType& type = freed(gang.type);
    type.starts.push_back({end, gang.devices});
    if (type.list.empty()) continue;
    auto at = std::ranges::upper_bound(type.list, end, {}, &Freed::at);
    const std::uint32_t before = at == type.list.begin() ? 0 : std::prev(at)->devices;
    at = type.list.insert(at, {end, before});
    for (; at != type.list.end(); ++at) at->devices += gang.devices;
  }
}

// A gang whose plan is not there yet waits for it for a while, and then starts without it.
bool PricedPlacer::planned(const PriceContext& context, const Next& next, const GangOption& option,
                           Refusal& closest) {
  if (!option.plan || context.situation.plans == nullptr) return true;
  const PlanEntry* entry = context.situation.plans->find(*option.plan);
  if (entry != nullptr && *entry) return true;
  if (entry != nullptr) {
    closest = {entry->error().kind, TopologyLevel::kFleet, 0};
    return false;
  }
  missing_.push_back(*option.plan);
  const Duration waited = context.situation.now - next.job->submitted;
  const Duration wait = Duration::from_seconds(context.policy.plan_wait.value());
  if (waited >= wait) return true;
  closest = {RejectionKind::kLater, TopologyLevel::kFleet, 0};
  return false;
}

// The narrowest places that fit best may all be at one site.
void PricedPlacer::add_offer_of_each_site(const FleetView& view, const GangRequest& gang,
                                          PlaceOptions options, std::vector<Allocation>& offers) {
  const std::size_t found = offers.size();
  options.most = 1;
  for (const PlaceId site : sites_) {
    const NodeRun& nodes = placer_.tree()[site].nodes;
    const auto is_here = [&nodes](const Allocation& offer) {
      return offer.ranks.front().node.value() - nodes.first.value() < nodes.count;
    };
    if (std::any_of(offers.begin(), offers.begin() + static_cast<std::ptrdiff_t>(found), is_here)) {
      continue;
    }
    options.within = site;
    AllocationOrRefusal here = placer_.place(view, gang, options);
    if (here) offers.push_back(*std::move(here));
  }
}

// Placement ignores risk: if an offer has a node that fails often, an offer without such nodes is
// added.
void PricedPlacer::add_safer_offer(const PriceContext& context, const Next& next,
                                   const GangRequest& gang, std::vector<Allocation>& offers) {
  constexpr float kOften = 2;
  const std::span<const float> risk = context.situation.node_risk;
  const auto often = [&](const NodeDevices& at) { return risk[at.node.value()] >= kOften; };
  const bool risky = !risk.empty() && std::any_of(offers.begin(), offers.end(), [&](const auto& o) {
    return std::any_of(o.ranks.begin(), o.ranks.end(), often);
  });
  if (!risky) return;
  if (!lemons_) {
    lemons_.emplace();
    for (std::uint32_t i = 0; i < risk.size(); ++i) {
      if (risk[i] >= kOften) lemons_->push_back({NodeId(i), 1});
    }
  }
  std::vector<NodeRun> avoid(next.avoid.begin(), next.avoid.end());
  avoid.insert(avoid.end(), lemons_->begin(), lemons_->end());
  PlaceOptions options;
  options.avoid = avoid;
  AllocationOrRefusal safer = placer_.place(context.view, gang, options);
  if (safer) offers.push_back(*std::move(safer));
}

// Whole devices near no other gang: nothing but the gang and the view decides.
const PricedPlacer::Offers& PricedPlacer::offers_of(const PriceContext& context, const Next& next,
                                                    const GangRequest& gang,
                                                    const JobPlaceRules& rules) {
  const bool alike = lasts_ == ViewLasts::kYes && next.placed.empty() && next.avoid.empty() &&
                     gang.share == kWholeDevice;
  if (alike) {
    const auto known = lasting_offers_.find({context.view.pages().nodes, gang});
    if (known != lasting_offers_.end()) return known->second;
  }
  PlaceOptions options;
  options.fit = rules.fit;
  options.share_max = rules.share_max;
  options.avoid = next.avoid;
  options.most = context.policy.offers;
  Offers offers{placer_.offers(context.view, gang, options), std::nullopt};
  if (offers.places.empty()) {
    offers.refusal = placer_.refusal_of(context.view, gang, next.avoid);
  } else {
    add_offer_of_each_site(context.view, gang, options, offers.places);
    add_safer_offer(context, next, gang, offers.places);
  }
  Offers& kept = alike ? lasting_offers_[{context.view.pages().nodes, gang}] : passing_offers_;
  kept = std::move(offers);
  return kept;
}

// Counts the placed gangs, and the others of the role as if alike, so that an expensive type for
// the first gang does not leave too little for the last.
Dollars PricedPlacer::cost_with(const PriceContext& context, const Next& next,
                                const PlacedGang& gang, const GangTerms& terms) {
  std::vector<PlacedGang> gangs(next.placed.begin(), next.placed.end());
  std::vector<GangTerms> all(next.terms.begin(), next.terms.end());
  gangs.insert(gangs.end(), next.alike, gang);
  all.insert(all.end(), next.alike, terms);
  return expected_cost(context, *next.job, gangs, all);
}

std::optional<Refusal> PricedPlacer::price_offers(const PriceContext& context, const Next& next,
                                                  std::uint32_t option,
                                                  const JobPlaceRules& rules) {
  const RoleRequest& role = next.job->request->roles[next.role];
  const GangRequest& gang = role.options[option].gang;
  const Offers& offers = offers_of(context, next, gang, rules);
  if (offers.refusal) return offers.refusal;
  lacks_room_ = false;
  std::optional<Refusal> refused;
  for (const Allocation& offer : offers.places) {
    Candidate candidate{{next.role, option, offer, gang.host}, {}, {}, {}};
    const auto terms = terms_of(context, *next.job, candidate.gang);
    if (!terms) {
      refused = terms.error();
      continue;
    }
    const std::optional<Dollars>& budget = next.job->request->budget;
    if (budget && cost_with(context, next, candidate.gang, *terms) > *budget) {
      refused = Refusal{RejectionKind::kBudget, TopologyLevel::kFleet, 0};
      continue;
    }
    candidate.terms = *terms;
    candidate.price = price_of(context, *next.job, candidate.gang, *terms);
    candidate.compared = price_of_alike(
        context, *next.job, {candidate.gang, candidate.terms, candidate.price}, next.alike);
    if (next.job->request->goal == JobGoal::kEnergy) {
      candidate.energy = energy_of(context, *next.job, candidate.gang, *terms);
    }
    candidates_.push_back(std::move(candidate));
  }
  return refused;
}

tl::expected<Candidate, Refusal> PricedPlacer::place_gang(const PriceContext& context,
                                                          const Next& next,
                                                          const JobPlaceRules& rules) {
  const RoleRequest& role = next.job->request->roles[next.role];
  candidates_.clear();
  Refusal closest{RejectionKind::kNever, TopologyLevel::kFleet, 0};
  bool first = true;
  for (std::uint32_t i = 0; i < role.options.size(); ++i) {
    const GangOption& option = role.options[i];
    const GangRequest& gang = option.gang;
    const std::uint32_t wanted = held_of(*next.job->request, next.placed, gang.type) + gang.devices;
    if (rules.may_take && !rules.may_take(gang.type, wanted)) {
      if (first) closest = {RejectionKind::kQuota, TopologyLevel::kFleet, gang.devices};
      lacks_room_ = false;
      continue;
    }
    if (!planned(context, next, option, closest)) {
      lacks_room_ = false;
      continue;
    }
    const std::optional<Refusal> refusal = price_offers(context, next, i, rules);
    if (!refusal) continue;
    const bool closer =
        first || closest.kind != RejectionKind::kBusy || refusal->missing < closest.missing;
    if (closer) closest = *refusal;
    first = false;
  }
  if (candidates_.empty()) return tl::unexpected(closest);
  const JobGoal goal = next.job->request->goal;
  const auto best = std::min_element(
      candidates_.begin(), candidates_.end(), [goal](const Candidate& a, const Candidate& b) {
        return better_for(goal, {a.compared, a.energy}, {b.compared, b.energy});
      });
  if (cheaper_later(context, next, *best)) {
    return tl::unexpected(Refusal{RejectionKind::kLater, TopologyLevel::kFleet, 0});
  }
  return *best;
}

std::optional<Duration> PricedPlacer::wait_for(const PriceContext& context,
                                               const GangRequest& gang) {
  const Situation& s = context.situation;
  const std::uint32_t free = context.view.free(Topology::root(), gang.type).devices;
  if (free >= gang.devices) return Duration();
  FreedOfType& type = freed(gang.type);
  std::vector<Freed>& list = type.list;
  const std::uint32_t wanted = type.claimed + gang.devices;
  if (list.empty()) {
    list = type.starts;
    for (const RunningJob& job : s.running) {
      for (const PlacedGang& placed : job.gangs) {
        const GangRequest& request = job.request->roles[placed.role].options[placed.option].gang;
        if (request.type == gang.type) list.push_back({job.expected_end, request.devices});
      }
    }
    std::sort(list.begin(), list.end(), [](const Freed& a, const Freed& b) { return a.at < b.at; });
    for (std::size_t i = 1; i < list.size(); ++i) list[i].devices += list[i - 1].devices;
  }
  const auto enough = std::partition_point(
      list.begin(), list.end(), [&](const Freed& freed) { return free + freed.devices < wanted; });
  if (enough == list.end() || enough->at == Instant::max()) return std::nullopt;
  return std::max(Duration(), enough->at - s.now);
}

// A job whose goal is time and that can move to a better place later starts where it can. A job
// that waits does so for a limited time: not for devices that come free after it, and wrong
// estimates cannot keep it waiting forever. The devices it waits for are not available to the jobs
// behind it.
bool PricedPlacer::cheaper_later(const PriceContext& context, const Next& next,
                                 const Candidate& now) {
  const Situation& s = context.situation;
  const JobRequest& job = *next.job->request;
  const RoleRequest& role = job.roles[next.role];
  if (role.options.size() < 2 || job.kind == JobKind::kServe) return false;
  const bool moves = job.preemptible || job.checkpoint_interval != Duration::max();
  if (moves && job.goal == JobGoal::kTime) return false;
  if (job.goal == JobGoal::kEnergy && !now.energy.known) return false;
  const Instant until =
      next.job->submitted + Duration::from_seconds(context.policy.patience.value());
  if (s.now > until) return false;
  Price present;
  for (const PriceTerm term : {PriceTerm::kHire, PriceTerm::kEnergy, PriceTerm::kCarbon,
                               PriceTerm::kTime, PriceTerm::kLateness}) {
    present[term] = now.price[term];
  }
  for (std::uint32_t i = 0; i < role.options.size(); ++i) {
    const GangOption& option = role.options[i];
    if (option.gang.type == role.options[now.gang.option].gang.type) continue;
    const std::optional<Duration> wait = wait_for(context, option.gang);
    if (!wait || *wait == Duration() || s.now + *wait > until) continue;
    const IdealGang ideal{next.role, i, *wait};
    const Price later = ideal_price(context, *next.job, ideal);
    // A wait that is worth it stays so: it only gets shorter. Another may become so at any time.
    const bool worth = better_for(job.goal, {later, ideal_energy(context, *next.job, ideal)},
                                  {present, now.energy});
    holds_until_ = std::min(holds_until_, worth ? s.now + *wait : s.now);
    if (!worth) continue;
    freed(option.gang.type).claimed += option.gang.devices;
    return true;
  }
  return false;
}

PricedOrRefusal PricedPlacer::place(const WaitingJob& job, const PriceContext& context,
                                    const JobPlaceRules& rules, ViewLasts lasts) {
  lasts_ = lasts;
  PricedJob priced;
  priced.length = Duration();
  missing_.clear();
  PriceContext here = context;
  if (gangs_of(*job.request) > 1) here.beside.until = least_seconds(context, job);
  trial_.begin(context.view, gangs_of(*job.request));
  // Where the first of several gangs is put is a matter of price.
  lacks_room_ = gangs_of(*job.request) == 1;
  for (const std::uint32_t index : JobPlacer::order_of(*job.request)) {
    const RoleRequest& role = job.request->roles[index];
    for (std::uint32_t g = 0; g < role.gangs; ++g) {
      const std::vector<NodeRun> avoid =
          avoided_by_spread(placer_.tree(), role, {index, priced.gangs, rules.siblings});
      here.view = trial_.view();
      auto best =
          place_gang(here, {&job, index, priced.gangs, priced.terms, avoid, role.gangs - g}, rules);
      if (!best) return tl::unexpected(best.error());
      priced.price += best->price;
      add_beside(here, job, {best->gang, best->terms, best->price});
      const std::optional<Duration>& length = best->terms.length;
      priced.length =
          priced.length && length ? std::optional(std::max(*priced.length, *length)) : std::nullopt;
      priced.gangs.push_back(std::move(best->gang));
      priced.terms.push_back(best->terms);
      trial_.add(priced.gangs.back());
    }
  }
  const std::optional<Dollars>& budget = job.request->budget;
  if (budget && expected_cost(context, job, priced.gangs, priced.terms) > *budget) {
    return tl::unexpected(Refusal{RejectionKind::kBudget, TopologyLevel::kFleet, 0});
  }
  if (const auto later = later_start(context, job, {priced.gangs, priced.terms, priced.length})) {
    wake_ = std::min(wake_, later->at);
    return tl::unexpected(Refusal{RejectionKind::kLater, TopologyLevel::kFleet, 0});
  }
  return priced;
}

}  // namespace orrery

#include "twin/traffic/max_min.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"

namespace orrery {
namespace {

/// The step in which the load of a resource is counted: a power of two, so that sums of multiples
/// are exact.
double step_of(double capacity) {
  constexpr int kBits = 49;
  return std::ldexp(1.0, std::ilogb(std::max(capacity, 1e-30)) - kBits);
}

void check_terms(const FlowTerms& terms) {
  ORRERY_ASSERT(terms.weight > 0 && std::isfinite(terms.weight), "a weight is positive");
  ORRERY_ASSERT(terms.demand.value() >= 0, "a demand is not negative");
}

}  // namespace

SharedLinks::SharedLinks(double tolerance) : tolerance_(tolerance) {
  ORRERY_ASSERT(tolerance >= kExact && tolerance <= 0.1, "a small part, no less than rounding");
}

ResourceId SharedLinks::add_resource(BytesPerSecond capacity) {
  const ResourceId id = ResourceId::at(resources_.size());
  resources_.emplace_back();
  set_capacity(id, capacity);
  return id;
}

void SharedLinks::set_capacity(ResourceId id, BytesPerSecond capacity) {
  ORRERY_ASSERT(capacity.value() >= 0 && std::isfinite(capacity.value()),
                "a capacity is finite and not negative");
  Resource& resource = resources_[id.value()];
  if (resource.capacity == capacity.value()) return;
  resource.capacity = capacity.value();
  if (step_of(capacity.value()) > resource.step) coarsen(resource);
  mark(id);
}

void SharedLinks::coarsen(Resource& resource) {
  resource.step = step_of(resource.capacity);
  resource.load = 0;
  for (const Member& member : resource.members) {
    Use& use = flows_[member.flow.value()].uses[member.use];
    use.load = std::nearbyint(use.load / resource.step) * resource.step;
    resource.load += use.load;
  }
}

void SharedLinks::mark(ResourceId id) {
  Resource& resource = resources_[id.value()];
  if (resource.changed) return;
  resource.changed = true;
  changed_resources_.push_back(id);
}

void SharedLinks::mark(FlowId id) {
  Flow& flow = flows_[id.value()];
  if (flow.changed) return;
  flow.changed = true;
  changed_flows_.push_back(id);
}

FlowId SharedLinks::add_flow(const FlowTerms& terms, std::span<const ResourceUse> uses) {
  check_terms(terms);
  ORRERY_ASSERT(!uses.empty() || std::isfinite(terms.demand.value()),
                "something limits every flow");
  if (free_.empty()) {
    free_.push_back(FlowId::at(flows_.size()));
    flows_.emplace_back();
  }
  const FlowId id = free_.back();
  free_.pop_back();
  Flow& flow = flows_[id.value()];
  flow.terms = terms;
  flow.rate = flow.reported = BytesPerSecond();
  flow.bottleneck = ResourceId();
  flow.live = true;
  flow.uses.clear();
  flow.uses.reserve(uses.size());
  for (const ResourceUse& use : uses) {
    ORRERY_ASSERT(use.multiplicity > 0 && std::isfinite(use.multiplicity),
                  "a flow takes something of what it uses");
    ORRERY_ASSERT(flow.uses.empty() || flow.uses.back().resource < use.resource,
                  "uses ascend by resource");
    std::vector<Member>& members = resources_[use.resource.value()].members;
    members.push_back({id, static_cast<std::uint32_t>(flow.uses.size())});
    flow.uses.push_back({.resource = use.resource,
                         .multiplicity = use.multiplicity,
                         .slot = static_cast<std::uint32_t>(members.size() - 1)});
  }
  mark(id);
  return id;
}

void SharedLinks::set_terms(FlowId id, const FlowTerms& terms) {
  check_terms(terms);
  Flow& flow = flows_[id.value()];
  ORRERY_ASSERT(flow.live, "the flow is there");
  ORRERY_ASSERT(!flow.uses.empty() || std::isfinite(terms.demand.value()),
                "something limits every flow");
  flow.terms = terms;
  mark(id);
}

void SharedLinks::leave(const Use& use) {
  std::vector<Member>& members = resources_[use.resource.value()].members;
  const Member last = members.back();
  members[use.slot] = last;
  flows_[last.flow.value()].uses[last.use].slot = use.slot;
  members.pop_back();
}

void SharedLinks::remove_flow(FlowId id) {
  Flow& flow = flows_[id.value()];
  ORRERY_ASSERT(flow.live, "the flow is there");
  if (flow.bottleneck.valid()) --resources_[flow.bottleneck.value()].bound;
  for (const Use& use : flow.uses) {
    Resource& resource = resources_[use.resource.value()];
    resource.load -= use.load;
    leave(use);
    mark(use.resource);
  }
  // The freed capacity may let flows rise that were bound where this flow was; `bound` included
  // this flow.
  flow.uses.clear();
  flow.live = false;
  free_.push_back(id);
}

void SharedLinks::admit(FlowId id) {
  Flow& flow = flows_[id.value()];
  if (!flow.live || flow.filling != kNowhere) return;
  flow.filling = 0;
  filling_.push_back(id);
  if (flow.bottleneck.valid()) --resources_[flow.bottleneck.value()].bound;
  flow.bottleneck = ResourceId();
  for (Use& use : flow.uses) {
    Resource& resource = resources_[use.resource.value()];
    resource.load -= use.load;
    use.load = 0;
    if (resource.touched != kNowhere) continue;
    resource.touched = static_cast<std::uint32_t>(touched_.size());
    touched_.push_back({.resource = use.resource});
  }
}

void SharedLinks::admit_marked() {
  for (const FlowId id : changed_flows_) {
    Flow& flow = flows_[id.value()];
    flow.changed = false;
    if (!flow.live) continue;
    for (const Use& use : flow.uses) {
      // Any change of this flow affects the flows bound there.
      if (resources_[use.resource.value()].bound > 0) mark(use.resource);
    }
  }
  for (const ResourceId id : changed_resources_) {
    Resource& resource = resources_[id.value()];
    resource.changed = false;
    const bool above = resource.load > resource.capacity;
    if (!above && resource.bound == 0) continue;
    for (const Member& member : resource.members) {
      if (above || flows_[member.flow.value()].bottleneck == id) breaches_.push_back(member.flow);
    }
  }
  for (const FlowId id : changed_flows_) admit(id);
  changed_flows_.clear();
  changed_resources_.clear();
}

void SharedLinks::list_crossings() {
  for (const FlowId id : filling_) {
    const Flow& flow = flows_[id.value()];
    for (const Use& use : flow.uses) {
      Touched& touched = touched_[resources_[use.resource.value()].touched];
      touched.weight += use.multiplicity * flow.terms.weight;
      ++touched.rising;
    }
  }
  std::uint32_t first = 0;
  for (Touched& touched : touched_) {
    touched.first = first;
    first += touched.rising;
  }
  crossings_.resize(first);
  for (std::uint32_t at = 0; at < filling_.size(); ++at) {
    for (const Use& use : flows_[filling_[at].value()].uses) {
      Touched& touched = touched_[resources_[use.resource.value()].touched];
      crossings_[touched.first + touched.filled++] = at;
    }
  }
}

void SharedLinks::prepare() {
  std::ranges::sort(filling_);
  for (std::uint32_t at = 0; at < filling_.size(); ++at) flows_[filling_[at].value()].filling = at;
  for (Touched& touched : touched_) {
    const Resource& resource = resources_[touched.resource.value()];
    touched = {.resource = touched.resource,
               .left = std::max(0.0, resource.capacity - resource.load)};
  }
  list_crossings();
  frozen_.assign(filling_.size(), 0);
  satisfied_.clear();
  satisfied_.reserve(filling_.size());
  for (std::uint32_t at = 0; at < filling_.size(); ++at) {
    const FlowTerms& terms = flows_[filling_[at].value()].terms;
    satisfied_.push_back({terms.demand.value() / terms.weight, at});
  }
  std::ranges::sort(satisfied_);
  next_satisfied_ = 0;
  full_.clear();
  full_.reserve(touched_.size());
  for (const Touched& touched : touched_) {
    if (touched.rising > 0) full_.push_back({level_of_full(touched), touched.resource});
  }
  std::ranges::make_heap(full_, std::greater<>());
}

const SharedLinks::Satisfied* SharedLinks::next_satisfied() {
  while (next_satisfied_ < satisfied_.size() && frozen_[satisfied_[next_satisfied_].at] != 0) {
    ++next_satisfied_;
  }
  return next_satisfied_ < satisfied_.size() ? &satisfied_[next_satisfied_] : nullptr;
}

// The level at which a resource is full only grows as flows below it stop, so an entry of the heap
// is a lower bound: one that is out of date goes back with its level of now.
SharedLinks::Full SharedLinks::next_full() {
  while (!full_.empty()) {
    const Full first = full_.front();
    const Touched& touched = touched_[resources_[first.resource.value()].touched];
    const double level = touched.rising > 0 ? level_of_full(touched) : first.level;
    if (touched.rising > 0 && level <= first.level) return first;
    std::ranges::pop_heap(full_, std::greater<>());
    full_.pop_back();
    if (touched.rising == 0) continue;
    full_.push_back({level, first.resource});
    std::ranges::push_heap(full_, std::greater<>());
  }
  return {};
}

void SharedLinks::freeze(std::uint32_t at, double level, ResourceId bottleneck) {
  Flow& flow = flows_[filling_[at].value()];
  frozen_[at] = 1;
  flow.bottleneck = bottleneck;
  flow.rate = bottleneck.valid() ? BytesPerSecond(level * flow.terms.weight) : flow.terms.demand;
  for (const Use& use : flow.uses) {
    Touched& touched = touched_[resources_[use.resource.value()].touched];
    touched.left = std::max(0.0, touched.left - flow.rate.value() * use.multiplicity);
    touched.weight -= use.multiplicity * flow.terms.weight;
    touched.highest = std::max(touched.highest, level);
    --touched.rising;
  }
}

void SharedLinks::freeze_at(std::uint32_t at) {
  const double level = level_of_full(touched_[at]);
  touched_[at].binds = true;
  touched_[at].lowest_bound = level;
  const std::uint32_t first = touched_[at].first;
  for (std::uint32_t i = first; i < first + touched_[at].filled; ++i) {
    if (frozen_[crossings_[i]] == 0) freeze(crossings_[i], level, touched_[at].resource);
  }
}

void SharedLinks::fill() {
  prepare();
  while (const Satisfied* satisfied = next_satisfied()) {
    const Full full = next_full();
    if (!full.resource.valid() || satisfied->level <= full.level) {
      freeze(satisfied->at, satisfied->level, ResourceId());
    } else {
      freeze_at(resources_[full.resource.value()].touched);
    }
  }
}

void SharedLinks::find_breaches_on(const Touched& touched) {
  Resource& resource = resources_[touched.resource.value()];
  if (resource.members.size() == touched.filled) return;
  const bool slack = touched.left > tolerance_ * resource.capacity;
  const auto may_rise = [&](double level) {
    return slack || touched.highest > level * (1 + tolerance_);
  };
  const auto must_yield = [&](double level) {
    return touched.binds && level > touched.lowest_bound * (1 + tolerance_);
  };
  const bool some_may_rise = resource.bound > 0 && may_rise(resource.floor);
  if (!some_may_rise && !must_yield(resource.ceiling)) return;
  resource.floor = std::numeric_limits<double>::infinity();
  resource.ceiling = 0;
  for (const Member& member : resource.members) {
    const Flow& flow = flows_[member.flow.value()];
    if (flow.filling != kNowhere) continue;
    const double level = flow.level();
    const bool bound = flow.bottleneck == touched.resource;
    resource.ceiling = std::max(resource.ceiling, level);
    if (bound) resource.floor = std::min(resource.floor, level);
    if ((bound && may_rise(level)) || must_yield(level)) breaches_.push_back(member.flow);
  }
}

void SharedLinks::find_breaches() {
  for (const Touched& touched : touched_) find_breaches_on(touched);
}

// Must be called before the filled flows are counted in `bound` again.
void SharedLinks::settle(const Touched& touched) {
  Resource& resource = resources_[touched.resource.value()];
  resource.touched = kNowhere;
  const bool others = resource.members.size() > touched.filled;
  const double lowest =
      touched.binds ? touched.lowest_bound : std::numeric_limits<double>::infinity();
  resource.floor = resource.bound > 0 ? std::min(resource.floor, lowest) : lowest;
  resource.ceiling = others ? std::max(resource.ceiling, touched.highest) : touched.highest;
}

void SharedLinks::settle() {
  for (const Touched& touched : touched_) settle(touched);
  reported_.clear();
  for (const FlowId id : filling_) {
    Flow& flow = flows_[id.value()];
    flow.filling = kNowhere;
    if (flow.bottleneck.valid()) ++resources_[flow.bottleneck.value()].bound;
    for (Use& use : flow.uses) {
      Resource& resource = resources_[use.resource.value()];
      use.load =
          std::nearbyint(flow.rate.value() * use.multiplicity / resource.step) * resource.step;
      resource.load += use.load;
    }
    const double change = std::abs(flow.rate.value() - flow.reported.value());
    if (change <= kReportedChange * flow.reported.value()) continue;
    flow.reported = flow.rate;
    reported_.push_back(id);
  }
  touched_.clear();
}

// A change that affects nearly all flows is filled everywhere at once: more rounds would cost more.
void SharedLinks::admit_all_if_many() {
  constexpr std::size_t kMany = 256;
  if (filling_.size() < kMany || 4 * filling_.size() < flow_count()) return;
  for (std::size_t i = 0; i < flows_.size(); ++i) admit(FlowId::at(i));
}

std::span<const FlowId> SharedLinks::update() {
  filling_.clear();
  breaches_.clear();
  admit_marked();
  for (;;) {
    for (const FlowId id : breaches_) admit(id);
    breaches_.clear();
    admit_all_if_many();
    fill();
    find_breaches();
    if (breaches_.empty()) break;
  }
  settle();
  return reported_;
}

}  // namespace orrery

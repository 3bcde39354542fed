#include "scheduler/place/placer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "base/assert.hpp"
#include "scheduler/place/place_slice.hpp"

namespace orrery {
namespace {

std::uint64_t low_bits(std::uint32_t count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

/// The lowest `count` bits of `free` in the tightest scale-up domain inside the node that holds so
/// many; else the lowest of all.
std::uint64_t lowest_bits(std::uint64_t free, std::uint32_t count, std::uint32_t domain) {
  std::uint64_t from = free;
  if (domain > 1 && domain < 64 && count <= domain) {
    std::uint32_t tightest = std::numeric_limits<std::uint32_t>::max();
    for (std::uint32_t at = 0; at < 64 && free >> at != 0; at += domain) {
      const std::uint64_t block = free & (low_bits(domain) << at);
      const auto room = static_cast<std::uint32_t>(std::popcount(block));
      if (room >= count && room < tightest) {
        tightest = room;
        from = block;
      }
    }
  }
  std::uint64_t bits = 0;
  for (std::uint32_t i = 0; i < count && from != 0; ++i) {
    const std::uint64_t lowest = from & (~from + 1);
    bits |= lowest;
    from ^= lowest;
  }
  return bits;
}

void add(std::vector<NodeDevices>& list, NodeId node, std::uint64_t devices) {
  const auto at =
      std::lower_bound(list.begin(), list.end(), node,
                       [](const NodeDevices& entry, NodeId id) { return entry.node < id; });
  if (at != list.end() && at->node == node) {
    at->devices |= devices;
  } else {
    list.insert(at, {node, devices});
  }
}

std::uint64_t devices_on(const std::vector<NodeDevices>& list, NodeId node) {
  const auto at =
      std::lower_bound(list.begin(), list.end(), node,
                       [](const NodeDevices& entry, NodeId id) { return entry.node < id; });
  return at != list.end() && at->node == node ? at->devices : 0;
}

/// Number of units of `unit` available devices of one node, by a row of counts of a type none of
/// whose nodes has more than `most`.
std::uint32_t units_of_row(const std::uint32_t* row, std::uint32_t unit, std::uint32_t most) {
  if (unit == 1) return row[CountRow::kDevices];
  std::uint32_t units = 0;
  std::uint32_t in_one = 0;
  for (std::uint32_t first = unit; first <= most; first += unit) {
    ++in_one;
    const std::uint32_t last = std::min(first + unit - 1, most);
    for (std::uint32_t k = first; k <= last; ++k) {
      units += row[CountRow::kNodesWith + k] * in_one;
    }
  }
  return units;
}

}  // namespace

std::uint32_t Allocation::devices() const {
  std::uint32_t sum = 0;
  for (const NodeDevices& node : ranks) {
    sum += static_cast<std::uint32_t>(std::popcount(node.devices));
  }
  return sum;
}

std::uint32_t host_ranks(const HostResources& host, const NodeState& state, const HostNeeds& need) {
  if (!need.any()) return std::numeric_limits<std::uint32_t>::max();
  constexpr std::uint32_t kAny = std::numeric_limits<std::uint32_t>::max();
  const auto fit = [](std::uint32_t each, std::uint32_t all, std::uint32_t used) {
    if (each == 0) return kAny;
    return all > used ? (all - used) / each : 0;
  };
  const auto fit_if_published = [&](std::uint32_t each, std::uint32_t all, std::uint32_t used) {
    return all == 0 ? kAny : fit(each, all, used);
  };
  return std::min({fit_if_published(need.cpu, host.cpu, state.used_cpu),
                   fit_if_published(need.memory, host.memory, state.used_memory),
                   fit(need.cxl, host.cxl, state.used_cxl),
                   fit_if_published(need.disk, host.disk, state.used_disk)});
}

Placer::Placer(const PlaceTree& tree)
    : tree_(&tree),
      rank_(enum_words(TopologyLevel{}).size()),
      counted_(tree.places().size()),
      stamp_(tree.places().size()),
      avoided_(tree.topology().node_count()),
      avoiding_(tree.places().size()) {
  // Levels by the size of their largest place, so that a leaf over eight racks is wider than a
  // rack.
  std::vector<std::pair<std::uint32_t, std::uint8_t>> sizes;
  sizes.reserve(rank_.size());
  for (std::size_t level = 0; level < rank_.size(); ++level) {
    std::uint32_t size = 0;
    for (const Place& place : tree.places()) {
      if (place.is(static_cast<TopologyLevel>(level))) size = std::max(size, place.nodes.count);
    }
    sizes.emplace_back(size, static_cast<std::uint8_t>(level));
  }
  std::sort(sizes.begin(), sizes.end());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    rank_[sizes[i].second] = static_cast<std::uint8_t>(i + 1);
  }
}

bool Placer::allowed(const Place& place) const {
  return place.site == Place::kAboveSites || (job_.request->sites >> place.site & 1) != 0;
}

bool Placer::avoided(NodeId node) const { return avoided_[node.value()] == call_; }

// If the counts would be exact except for these nodes, a place has what is counted less what these
// nodes have.
void Placer::note_avoided() {
  for (const NodeRun& run : job_.options->avoid) {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const NodeId node(run.first.value() + i);
      if (avoided(node)) continue;
      const std::uint32_t units = node_units(node);
      avoided_[node.value()] = call_;
      for (PlaceId id = tree_->around(node); id.valid(); id = (*tree_)[id].parent) {
        const Place& place = (*tree_)[id];
        if (counts_answer(place)) {  // the first of its nodes
          counted_[id.value()] =
              job_.view->units(place.domain, job_.request->type, job_.request->node_devices);
          stamp_[id.value()] = call_;
        }
        avoiding_[id.value()] = call_;
        if (stamp_[id.value()] == call_) counted_[id.value()] -= units;
      }
    }
  }
}

// Whether the request names nothing that free counts leave out, and all nodes may be taken.
bool Placer::counts_answer(const Place& place) const {
  const GangRequest& request = *job_.request;
  return place.domain.valid() && !request.host.any() && request.segment == 0 &&
         !request.exclusive && job_.rails == 0 && request.sites + 1 == 0 &&
         avoiding_[tree_->id_of(place).value()] != call_;
}

std::uint32_t Placer::host_units(NodeId node) const {
  return host_ranks(tree_->topology().group(node).host, job_.view->node(node), job_.request->host);
}

std::uint32_t Placer::node_units(NodeId node) const {
  const GangRequest& request = *job_.request;
  const NodeGroup& group = tree_->topology().group(node);
  if (group.type != request.type) return 0;
  const NodeState& state = job_.view->node(node);
  std::uint32_t available = state.available();
  if (available == 0) return 0;
  if (request.exclusive && (available != group.devices || state.used_cpu != 0)) return 0;
  if (job_.rails != 0) {
    return available > 0 && (state.free_mask & job_.rails) == job_.rails &&
                   host_units(node) >= request.node_devices && !avoided(node)
               ? 1
               : 0;
  }
  available = std::min(available, host_units(node));
  std::uint32_t units = available / request.node_devices;
  if (request.segment > 0) units = std::min(units, 1u);
  if (units > 0 && avoided(node)) return 0;
  return units;
}

std::uint32_t Placer::count_units(const Place& place) {
  const GangRequest& request = *job_.request;
  std::uint32_t units = 0;
  if (place.children > 0) {
    for (const Place& child : tree_->children(place)) units += units_in(tree_->id_of(child));
  } else {
    for (std::uint32_t i = 0; i < place.nodes.count; ++i) {
      units += node_units(NodeId(place.nodes.first.value() + i));
    }
  }
  if (request.segment > 0 && place.is(TopologyLevel::kScaleUp)) {
    units = units / request.segment * request.segment;
  }
  const bool whole = request.exclusive && *request.exclusive != TopologyLevel::kNode &&
                     place.is(*request.exclusive);
  if (whole && place.domain.valid() &&
      job_.view->free(place.domain, request.type).devices !=
          tree_->topology().device_count(place.domain, request.type)) {
    return 0;
  }
  return units;
}

std::uint32_t Placer::units_in(PlaceId id) {
  const Place& place = (*tree_)[id];
  if (!allowed(place)) return 0;
  if ((counting_ == Counting::kIndexed && place.domain.valid()) || counts_answer(place)) {
    const FleetTypeId type = job_.request->type;
    const Topology& topology = tree_->topology();
    const auto row = topology.count_row(place.domain, type);
    if (!row) return 0;
    return units_of_row(&FreeCounts::item(job_.view->pages().counts, *row),
                        job_.request->node_devices, topology.node_devices_max(type));
  }
  if (stamp_[id.value()] == call_) return counted_[id.value()];
  const std::uint32_t units = count_units(place);
  stamp_[id.value()] = call_;
  counted_[id.value()] = units;
  return units;
}

std::uint32_t Placer::free_in(const Place& place) const {
  if (place.domain.valid()) return job_.view->free(place.domain, job_.request->type).devices;
  std::uint32_t free = 0;
  for (const Place& child : tree_->children(place)) free += free_in(child);
  if (place.children > 0) return free;
  for (std::uint32_t i = 0; i < place.nodes.count; ++i) {
    const NodeId node(place.nodes.first.value() + i);
    if (tree_->topology().group(node).type == job_.request->type) {
      free += job_.view->node(node).available();
    }
  }
  return free;
}

void Placer::begin(const Job& job, Counting counting) {
  job_ = job;
  counting_ = counting;
  holders_.clear();
  if (++call_ == 0) {
    for (auto* stamps : {&stamp_, &avoided_, &avoiding_}) {
      std::fill(stamps->begin(), stamps->end(), 0);
    }
    call_ = 1;
  }
  note_avoided();
}

bool Placer::find_holders_in(PlaceId id, Inside inside) {
  const std::uint32_t units = units_in(id);
  if (units < job_.units) return false;
  const Place& place = (*tree_)[id];
  if (place.is(job_.required) || job_.required == TopologyLevel::kFleet) inside = Inside::kYes;
  // Most children are too small regardless of what is free: their counts are not read.
  const std::uint32_t in_a_node =
      tree_->topology().node_devices_max(job_.request->type) / job_.request->node_devices;
  bool deeper = false;
  for (const Place& child : tree_->children(place)) {
    if (child.nodes.count * in_a_node < job_.units) continue;
    deeper = find_holders_in(tree_->id_of(child), inside) || deeper;
  }
  if (inside == Inside::kYes && !deeper) {
    const std::uint32_t rank =
        place.levels == 0 ? 0u : rank_[static_cast<unsigned>(PlaceTree::level_of(place))];
    holders_.push_back({id, NodeId(), rank, free_in(place)});
  }
  return true;
}

void Placer::find_holders() {
  const GangRequest& request = *job_.request;
  const bool one_node = request.devices == request.node_devices && request.segment == 0;
  if (one_node) {
    const bool counts_answer = counting_ == Counting::kIndexed && request.sites + 1 == 0 &&
                               (*tree_)[job_.options->within].domain.valid();
    counts_answer ? find_nodes() : find_nodes_exactly();
  } else if (job_.required != TopologyLevel::kNode) {
    const PlaceId within = job_.options->within;
    Inside inside = Inside::kNo;
    for (PlaceId up = (*tree_)[within].parent; up.valid(); up = (*tree_)[up].parent) {
      if ((*tree_)[up].is(job_.required)) inside = Inside::kYes;
    }
    find_holders_in(within, inside);
  }
  if (job_.options->fit == NodeFit::kBest) {
    const auto before = [](const Holder& a, const Holder& b) {
      if (a.rank != b.rank) return a.rank < b.rank;
      if (a.free != b.free) return a.free < b.free;
      return a.place != b.place ? a.place < b.place : a.node < b.node;
    };
    const std::size_t most = std::min(holders_.size(), job_.options->most);
    std::partial_sort(holders_.begin(), holders_.begin() + static_cast<std::ptrdiff_t>(most),
                      holders_.end(), before);
  }
}

Refusal Placer::refusal() {
  const GangRequest& request = *job_.request;
  const std::uint32_t wanted = job_.units + (job_.rest > 0 ? 1 : 0);
  if (wanted == 1 || job_.required == TopologyLevel::kNode) {
    const Place& within = (*tree_)[job_.options->within];
    std::uint32_t best = 0;
    if (within.domain.valid()) {
      const auto nodes = job_.view->nodes_by_available(within.domain, request.type);
      for (std::uint32_t k = 1; k < nodes.size(); ++k) best = nodes[k] > 0 ? k : best;
    }
    const std::uint32_t missing = request.devices > best ? request.devices - best : 1;
    return {RejectionKind::kBusy, TopologyLevel::kNode, missing};
  }
  const std::uint32_t all = units_in(job_.options->within);
  if (all < job_.units || job_.required == TopologyLevel::kFleet) {
    const std::uint32_t missing = wanted > all ? wanted - all : 1;
    return {RejectionKind::kBusy, TopologyLevel::kFleet, missing * request.node_devices};
  }
  std::uint32_t best = 0;
  for (const Place& place : tree_->places()) {
    if (place.is(job_.required)) best = std::max(best, units_in(tree_->id_of(place)));
  }
  const std::uint32_t missing = wanted > best ? wanted - best : 1;
  return {RejectionKind::kBusy, job_.required, missing * request.node_devices};
}

std::uint64_t Placer::pick(NodeId node, std::uint64_t taken, std::uint32_t count) const {
  if (job_.rails != 0) return lowest_bits(job_.rails, count, 0);
  const std::uint64_t free = job_.view->node(node).free_mask & ~taken;
  return lowest_bits(free, count, tree_->topology().group(node).scale_up_devices);
}

bool Placer::take_nodes(const Place& place, std::uint32_t units, Allocation& out) {
  const GangRequest& request = *job_.request;
  room_.clear();
  std::uint32_t all = 0;
  for (std::uint32_t i = 0; i < place.nodes.count; ++i) {
    const NodeId node(place.nodes.first.value() + i);
    const std::uint32_t room = node_units(node);
    if (room == 0) continue;
    room_.push_back({node, room, job_.view->node(node).available() - room * request.node_devices});
    all += room;
  }
  const bool best = job_.options->fit == NodeFit::kBest && units < all;
  if (best) {
    std::sort(room_.begin(), room_.end(), [](const NodeRoom& a, const NodeRoom& b) {
      if (a.units != b.units) return a.units > b.units;
      return a.left != b.left ? a.left < b.left : a.node < b.node;
    });
  }
  for (std::size_t i = 0; i < room_.size() && units > 0; ++i) {
    std::size_t at = i;
    if (best && room_[i].units > units) {
      // The last node: the one that is filled best.
      for (std::size_t j = i; j < room_.size() && room_[j].units >= units; ++j) {
        if (room_[j].units < room_[at].units) at = j;
      }
    }
    const std::uint32_t taken = std::min(units, room_[at].units);
    out.ranks.push_back({room_[at].node, pick(room_[at].node, 0, taken * request.node_devices)});
    units -= taken;
  }
  return units == 0;
}

bool Placer::take_from(PlaceId id, std::uint32_t units, Allocation& out) {
  const Place& place = (*tree_)[id];
  if (place.children == 0) return take_nodes(place, units, out);
  const std::size_t begin = rooms_.size();
  std::uint32_t all = 0;
  for (const Place& child : tree_->children(place)) {
    const std::uint32_t room = units_in(tree_->id_of(child));
    if (room > 0) rooms_.push_back({tree_->id_of(child), room, 0});
    all += room;
  }
  const std::size_t end = rooms_.size();
  const bool best = job_.options->fit == NodeFit::kBest && units < all;
  if (best) {
    for (std::size_t i = begin; i < end; ++i) rooms_[i].free = free_in((*tree_)[rooms_[i].id]);
    std::sort(rooms_.begin() + static_cast<std::ptrdiff_t>(begin), rooms_.end(),
              [](const PlaceRoom& a, const PlaceRoom& b) {
                if (a.units != b.units) return a.units > b.units;
                return a.free != b.free ? a.free < b.free : a.id < b.id;
              });
  }
  bool taken = true;
  for (std::size_t i = begin; i < end && units > 0 && taken; ++i) {
    std::size_t at = i;
    if (best && rooms_[i].units > units) {
      for (std::size_t j = i; j < end && rooms_[j].units >= units; ++j) {
        const bool tighter = rooms_[j].units != rooms_[at].units
                                 ? rooms_[j].units < rooms_[at].units
                                 : rooms_[j].free < rooms_[at].free;
        if (tighter) at = j;
      }
    }
    const PlaceRoom from = rooms_[at];
    const std::uint32_t some = std::min(units, from.units);
    taken = take_from(from.id, some, out);
    units -= some;
  }
  rooms_.resize(begin);
  return taken && units == 0;
}

// Each node is in one place, but devices are taken from places in the order of their fit.
bool Placer::take_units(PlaceId id, Allocation& out) {
  out.ranks.reserve(job_.units);
  if (!take_from(id, job_.units, out)) return false;
  const auto before = [](const NodeDevices& a, const NodeDevices& b) { return a.node < b.node; };
  if (!std::is_sorted(out.ranks.begin(), out.ranks.end(), before)) {
    std::sort(out.ranks.begin(), out.ranks.end(), before);
  }
  return true;
}

bool Placer::take_rest(const Place& place, Allocation& out) {
  const std::uint32_t need = job_.rest;
  const std::uint64_t rails = lowest_bits(job_.rails, need, 0);
  NodeId best;
  std::uint32_t best_left = std::numeric_limits<std::uint32_t>::max();
  for (std::uint32_t i = 0; i < place.nodes.count; ++i) {
    const NodeId node(place.nodes.first.value() + i);
    const NodeGroup& group = tree_->topology().group(node);
    if (group.type != job_.request->type || avoided(node)) continue;
    const NodeState& state = job_.view->node(node);
    if (state.available() < need) continue;
    if (job_.request->exclusive && state.available() != group.devices) continue;
    const std::uint64_t taken = devices_on(out.ranks, node);
    const auto mine = static_cast<std::uint32_t>(std::popcount(taken));
    if (job_.request->exclusive && (mine > 0 || state.used_cpu != 0)) continue;
    if ((state.free_mask & ~taken & rails) != rails) continue;
    if (state.available() - mine < need || host_units(node) < mine + need) continue;
    if (!allowed((*tree_)[tree_->around(node)])) continue;
    const std::uint32_t left = state.available() - mine - need;
    if (left < best_left) {
      best = node;
      best_left = left;
    }
  }
  if (!best.valid()) return false;
  add(out.ranks, best, pick(best, devices_on(out.ranks, best), need));
  return true;
}

void Placer::hold_idle(Allocation& out) const {
  if (!job_.request->exclusive) return;
  const TopologyLevel level = tree_->level_here(*job_.request->exclusive);
  const std::vector<NodeDevices> ranks = out.ranks;
  NodeRun done{NodeId(0), 0};
  for (const NodeDevices& entry : ranks) {
    if (done.count > 0 && done.contains(entry.node)) continue;
    done = {entry.node, 1};
    if (level != TopologyLevel::kNode) done = (*tree_)[tree_->around(entry.node, level)].nodes;
    for (std::uint32_t i = 0; i < done.count; ++i) {
      const NodeId node(done.first.value() + i);
      const std::uint64_t idle = job_.view->node(node).free_mask & ~devices_on(ranks, node);
      if (job_.view->node(node).available() > 0 && idle != 0) out.idle.push_back({node, idle});
    }
  }
}

bool Placer::fill(const Holder& holder, Allocation& out) {
  if (holder.node.valid()) {
    if (!node_holds(holder.node)) return false;
    add(out.ranks, holder.node, pick(holder.node, 0, job_.request->devices));
  } else {
    if (!take_units(holder.place, out)) return false;
    if (job_.rest > 0 && !take_rest((*tree_)[holder.place], out)) return false;
  }
  hold_idle(out);
  return true;
}

std::vector<Allocation> Placer::attempt(Counting counting) {
  begin(job_, counting);
  find_holders();
  std::vector<Allocation> found;
  const std::vector<Holder> holders = holders_;
  for (const Holder& holder : holders) {
    Allocation allocation;
    if (fill(holder, allocation)) {
      found.push_back(std::move(allocation));
      if (found.size() >= job_.options->most) break;
      continue;
    }
    if (counting == Counting::kIndexed) return {};
    // The rest did not fit here; a wider place may hold it.
    PlaceId up = (*tree_)[holder.place].parent;
    while (up.valid() && found.empty() && !holder.node.valid()) {
      const bool beyond = (*tree_)[holder.place].is(job_.required);
      if (beyond || units_in(up) < job_.units) break;
      Allocation wider;
      if (fill({up, NodeId(), 0, 0}, wider)) found.push_back(std::move(wider));
      up = (*tree_)[up].parent;
    }
  }
  return found;
}

// Ranks at the same positions on every node: the first aligned block of positions that fits.
std::vector<Allocation> Placer::offers_on_rails() {
  const std::uint32_t devices = tree_->topology().node_devices_max(job_.request->type);
  const std::uint32_t unit = job_.request->node_devices;
  for (std::uint32_t at = 0; at + unit <= devices; at += unit) {
    job_.rails = low_bits(unit) << at;
    std::vector<Allocation> found = attempt(Counting::kExact);
    if (!found.empty()) return found;
  }
  return {};
}

std::vector<Allocation> Placer::offers(const FleetView& view, const GangRequest& request,
                                       const PlaceOptions& options) {
  ORRERY_ASSERT(request.node_devices >= 1 && request.devices >= request.node_devices,
                "a gang has ranks");
  Job job{.view = &view, .request = &request, .options = &options};
  job.units = request.devices / request.node_devices;
  job.rest = request.devices % request.node_devices;
  job.required = tree_->level_here(request.required);
  if (request.share < kWholeDevice) {
    AllocationOrRefusal one = place_share(*tree_, view, request, options);
    if (!one) return {};
    return {*std::move(one)};
  }
  job_ = job;
  if (request.asks_slice()) {
    auto found = slice_offers(*tree_, view, request, options).value_or(std::vector<Allocation>());
    for (Allocation& allocation : found) hold_idle(allocation);
    return found;
  }
  const std::uint32_t whole = tree_->topology().node_devices_max(request.type);
  if (request.rails_aligned && request.node_devices < whole &&
      request.devices > request.node_devices) {
    return offers_on_rails();
  }
  if (request.segment == 0 && !request.exclusive && options.avoid.empty()) {
    std::vector<Allocation> found = attempt(Counting::kIndexed);
    // The counts are an upper bound: where they refuse, nothing fits.
    if (!found.empty() || holders_.empty()) return found;
  }
  return attempt(Counting::kExact);
}

Refusal Placer::refusal_of(const FleetView& view, const GangRequest& request,
                           std::span<const NodeRun> avoid) {
  if (request.share < kWholeDevice) return {RejectionKind::kBusy, TopologyLevel::kNode, 1};
  PlaceOptions options;
  options.avoid = avoid;
  if (request.asks_slice()) {
    const AllocationOrRefusal slice = place_slice(*tree_, view, request, options);
    ORRERY_ASSERT(!slice, "it refuses");
    return slice.error();
  }
  Job job{.view = &view, .request = &request, .options = &options};
  job.units = request.devices / request.node_devices;
  job.rest = request.devices % request.node_devices;
  job.required = tree_->level_here(request.required);
  begin(job, avoid.empty() ? Counting::kIndexed : Counting::kExact);
  return refusal();
}

bool Placer::fits(const FleetView& view, const GangRequest& request, const PlaceOptions& options) {
  const bool counted = request.share == kWholeDevice && !request.asks_slice() &&
                       request.segment == 0 && !request.exclusive && !request.rails_aligned &&
                       !request.host.any() && request.sites + 1 == 0 && options.avoid.empty() &&
                       request.devices % request.node_devices == 0 &&
                       tree_->level_here(request.required) == TopologyLevel::kFleet;
  const DomainId domain = (*tree_)[options.within].domain;
  if (!counted || !domain.valid()) return place(view, request, options).has_value();
  return view.units(domain, request.type, request.node_devices) >=
         request.devices / request.node_devices;
}

AllocationOrRefusal Placer::place(const FleetView& view, const GangRequest& request,
                                  const PlaceOptions& options) {
  PlaceOptions one = options;
  one.most = 1;
  if (request.share < kWholeDevice) return place_share(*tree_, view, request, one);
  if (request.asks_slice()) {
    job_ = {.view = &view, .request = &request};
    AllocationOrRefusal slice = place_slice(*tree_, view, request, one);
    if (slice) hold_idle(*slice);
    return slice;
  }
  std::vector<Allocation> found = offers(view, request, one);
  if (!found.empty()) return std::move(found.front());
  job_.options = &one;
  return tl::unexpected(refusal());
}

}  // namespace orrery

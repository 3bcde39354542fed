#include "scheduler/forecast/timeline.hpp"

#include <algorithm>
#include <bit>

#include "base/assert.hpp"

namespace orrery {
namespace {

bool host_fits(const HostResources& host, const NodeState& state, const HostNeeds& each,
               std::uint32_t ranks) {
  const auto fits = [&](std::uint32_t need, std::uint32_t all, std::uint32_t used) {
    return need == 0 || std::uint64_t{need} * ranks + used <= all;
  };
  const auto fits_if_published = [&](std::uint32_t need, std::uint32_t all, std::uint32_t used) {
    return all == 0 || fits(need, all, used);
  };
  return fits_if_published(each.cpu, host.cpu, state.used_cpu) &&
         fits_if_published(each.memory, host.memory, state.used_memory) &&
         fits(each.cxl, host.cxl, state.used_cxl) &&
         fits_if_published(each.disk, host.disk, state.used_disk);
}

bool device_fits(const FleetView& view, const NodeDevices& at, std::uint16_t share) {
  if ((at.devices & ~view.node(at.node).free_mask) == 0) return true;
  if (share == kWholeDevice) return false;
  const std::uint16_t used = view.shared(detail::shared_device(view.topology(), at));
  return used != 0 && used + share <= kWholeDevice;
}

bool gang_fits(const FleetView& view, const PlacedGang& gang) {
  for (const NodeDevices& at : gang.allocation.ranks) {
    const auto ranks = static_cast<std::uint32_t>(std::popcount(at.devices));
    const HostResources& host = view.topology().group(at.node).host;
    if (!device_fits(view, at, gang.allocation.share) ||
        !host_fits(host, view.node(at.node), gang.host, ranks)) {
      return false;
    }
  }
  return std::all_of(gang.allocation.idle.begin(), gang.allocation.idle.end(),
                     [&](const NodeDevices& at) { return device_fits(view, at, kWholeDevice); });
}

/// The first of [first, end) from which on all fit; `end` if none does. Searches nearby positions
/// first and in ever longer steps: a call costs less when there is less to choose from.
template <class Fits>
std::uint32_t first_that(std::uint32_t first, std::uint32_t end, Fits&& fits) {
  for (std::uint32_t step = 1; first + step <= end; step *= 2) {
    fits(first + step - 1) ? end = first + step - 1 : first += step;
  }
  while (first < end) {
    const std::uint32_t middle = first + (end - first) / 2;
    fits(middle) ? end = middle : first = middle + 1;
  }
  return first;
}

}  // namespace

Timeline::Timeline(std::uint32_t slices_max) : slices_max_(slices_max) {
  ORRERY_ASSERT(slices_max >= 2 && slices_max <= 256, "now and later, in a few slices");
}

void Timeline::open(FleetView fleet, Instant now, std::span<const Ending> running) {
  ++pass_;
  now_ = fleet;
  endings_.clear();
  const Instant soon = now + Duration::seconds(1);
  for (Ending ending : running) {
    if (ending.end == Instant::max()) continue;
    if (ending.end <= now) ending.end = soon;
    endings_.push_back(ending);
  }
  std::stable_sort(endings_.begin(), endings_.end(),
                   [](const Ending& a, const Ending& b) { return a.end < b.end; });
  cut(now);
  built_ = 0;
  windows_used_ = 0;
  window_at_.assign(begins_.size() * begins_.size(), kNone);
  counts_.assign(window_at_.size(), 0);
  holds_.clear();
  held_.clear();
  entries_.clear();
  first_entry_.assign(fleet.topology().node_count(), kNone);
  last_start_.assign(begins_.size(), 0);
  failed_.clear();
}

// Slice q of n begins at the end that (q / n)^2 of all distinct ends do not exceed.
void Timeline::cut(Instant now) {
  begins_.assign(1, now);
  std::vector<Instant> ends;
  for (const Ending& ending : endings_) {
    if (ends.empty() || ends.back() != ending.end) ends.push_back(ending.end);
  }
  const std::uint64_t later = slices_max_ - 1;
  if (ends.size() <= later) {
    begins_.insert(begins_.end(), ends.begin(), ends.end());
  } else {
    std::uint64_t taken = 0;
    for (std::uint64_t q = 1; q <= later; ++q) {
      taken = std::max(taken + 1, ends.size() * q * q / (later * later));
      begins_.push_back(ends[taken - 1]);
    }
  }
  ended_.clear();
  for (const Instant begin : begins_) {
    const auto over = std::upper_bound(endings_.begin(), endings_.end(), begin,
                                       [](Instant at, const Ending& e) { return at < e.end; });
    ended_.push_back(static_cast<std::uint32_t>(over - endings_.begin()));
  }
}

std::uint32_t Timeline::slice_of(Instant begin) const {
  const auto at = std::lower_bound(begins_.begin(), begins_.end(), begin);
  ORRERY_ASSERT(at != begins_.end() && *at == begin, "a slot begins with a slice");
  return static_cast<std::uint32_t>(at - begins_.begin());
}

std::uint32_t Timeline::last_before(Instant end, std::uint32_t from) const {
  const auto at = std::lower_bound(begins_.begin() + from + 1, begins_.end(), end);
  return static_cast<std::uint32_t>(at - begins_.begin()) - 1;
}

FleetView Timeline::unreserved(std::uint32_t slice) {
  for (; built_ <= slice; ++built_) {
    const FleetView before = built_ == 0 ? *now_ : slices_[built_ - 1].view();
    if (slices_.size() == built_) {
      slices_.emplace_back(before);
    } else {
      slices_[built_].reset(before);
    }
    for (std::uint32_t i = built_ == 0 ? 0 : ended_[built_ - 1]; i < ended_[built_]; ++i) {
      const Ending& ending = endings_[i];
      if (ending.allocation != nullptr) {
        give_back(slices_[built_], *ending.allocation, ending.host);
        continue;
      }
      NodeState open = slices_[built_].view().node(ending.node);
      open.health = NodeHealth::kReady;
      slices_[built_].set_node(ending.node, open);
    }
  }
  return slices_[slice].view();
}

// Where no reservation begins after the slice `last`, a longer window is the same.
Timeline::Stretch Timeline::shortest(Stretch slices) const {
  return {slices.first, std::max(slices.first, last_start_[slices.last])};
}

FleetView Timeline::window(Stretch slices) {
  if (holds_.empty()) return unreserved(slices.first);
  slices = shortest(slices);
  const FleetView base = unreserved(slices.first);
  std::uint32_t& at = window_at_[index_of(slices)];
  if (at == kNone) {
    at = windows_used_++;
    if (windows_.size() == at) {
      windows_.emplace_back(base);
    } else {
      windows_[at].fleet.reset(base);
    }
    windows_[at].slices = slices;
    windows_[at].entered = 0;
  }
  Window& window = windows_[at];
  for (; window.entered < holds_.size(); ++window.entered) {
    const Hold& hold = holds_[window.entered];
    if (hold.slices.meets(slices)) enter(hold, window);
  }
  return window.fleet.view();
}

void Timeline::enter(const Hold& hold, Window& window) {
  const std::span<const NodeDevices> nodes =
      std::span(held_).subspan(hold.first_entry, hold.end_entry - hold.first_entry);
  if (hold.share < kWholeDevice) {
    for (const NodeDevices& at : nodes) hide_share(at, window);
  } else {
    window.fleet.hide(nodes);
  }
  if (!hold.host.any()) return;
  for (const NodeDevices& at : nodes) {
    NodeState state = window.fleet.view().node(at.node);
    raise_host_use(window.slices, at.node, state);
    window.fleet.set_node(at.node, state);
  }
}

// A device with nothing free, and nothing shared or no share left, belongs to one job: no other is
// put beside it.
void Timeline::hide_share(const NodeDevices& at, Window& window) {
  const FleetView view = window.fleet.view();
  const DeviceId device = detail::shared_device(view.topology(), at);
  const bool own = (view.node(at.node).free_mask & at.devices) == 0;
  if (own && (view.shared(device) == 0 || view.shared(device) == kShareMax)) return;
  window.fleet.hide({&at, 1});
  std::uint32_t most = 0;
  for_each_peak(window.slices, at.node, [&](std::uint32_t slice) {
    std::uint32_t used = unreserved(slice).shared(device);
    for_each_entry(at.node, slice, [&](std::uint64_t devices, const Hold& of) {
      if (of.share < kWholeDevice && devices == at.devices) used += of.share;
    });
    most = std::max(most, used);
  });
  window.fleet.set_shared(device,
                          static_cast<std::uint16_t>(std::min<std::uint32_t>(most, kShareMax)));
}

void Timeline::raise_host_use(const Stretch& slices, NodeId node, NodeState& state) {
  for_each_peak(slices, node, [&](std::uint32_t slice) {
    NodeState used = unreserved(slice).node(node);
    for_each_entry(node, slice, [&](std::uint64_t devices, const Hold& of) {
      detail::move_host(used, of.host, static_cast<std::uint32_t>(std::popcount(devices)));
    });
    state.used_cpu = std::max(state.used_cpu, used.used_cpu);
    state.used_memory = std::max(state.used_memory, used.used_memory);
    state.used_cxl = std::max(state.used_cxl, used.used_cxl);
    state.used_disk = std::max(state.used_disk, used.used_disk);
  });
}

// Running gangs only give back, so use rises only where a reservation begins, or is highest at the
// start.
template <class See>
void Timeline::for_each_peak(const Stretch& slices, NodeId node, See&& see) const {
  see(slices.first);
  for (std::uint32_t i = first_entry_[node.value()]; i != kNone; i = entries_[i].next) {
    const std::uint32_t begin = holds_[entries_[i].hold].slices.first;
    if (begin > slices.first && begin <= slices.last) see(begin);
  }
}

template <class See>
void Timeline::for_each_entry(NodeId node, std::uint32_t slice, See&& see) const {
  for (std::uint32_t i = first_entry_[node.value()]; i != kNone; i = entries_[i].next) {
    const Hold& hold = holds_[entries_[i].hold];
    if (hold.slices.meets({slice, slice})) see(held_[i].devices, hold);
  }
}

std::uint32_t Timeline::add_row(const PlaceTry& job) {
  const auto count = static_cast<std::uint32_t>(begins_.size());
  const std::uint32_t first =
      first_that(0, count, [&](std::uint32_t slice) { return job.fits(unreserved(slice)); });
  const auto row = static_cast<std::uint32_t>(failed_.size());
  failed_.resize(row + count, static_cast<std::uint16_t>(count));
  for (std::uint32_t i = 0; i < first; ++i) failed_[row + i] = static_cast<std::uint16_t>(i);
  return row;
}

std::span<std::uint16_t> Timeline::row_of(const PlaceTry& job, ClassId id) {
  std::uint32_t row = 0;
  if (id.valid()) {
    if (id.value() >= classes_.size()) classes_.resize(id.value() + 1);
    ClassRow& known = classes_[id.value()];
    if (known.pass != pass_) known = {pass_, add_row(job)};
    row = known.row;
  } else {
    row = add_row(job);
  }
  return std::span(failed_).subspan(row, begins_.size());
}

void Timeline::count_held(Stretch slices) {
  const FleetView view = unreserved(slices.first);
  const Topology& topology = view.topology();
  counted_.resize(topology.node_count());
  if (++count_ == 0) {
    std::fill(counted_.begin(), counted_.end(), Counted{});
    count_ = 1;
  }
  taken_.assign(topology.type_count(), {});
  for (const Hold& hold : holds_) {
    if (!hold.slices.meets(slices)) continue;
    for (std::uint32_t i = hold.first_entry; i < hold.end_entry; ++i) {
      const NodeDevices& at = held_[i];
      const NodeState& node = view.node(at.node);
      Counted& counted = counted_[at.node.value()];
      if (counted.call != count_) counted = {count_, 0};
      const std::uint64_t fresh = node.free_mask & at.devices & ~counted.devices;
      const std::uint32_t available = node.available();
      if (available == 0 || fresh == 0) continue;
      const NodeGroup& group = topology.group(at.node);
      FreeCount& taken = taken_[group.type.value()];
      taken.devices += static_cast<std::uint32_t>(std::popcount(fresh));
      if (available == group.devices && counted.devices == 0) ++taken.nodes;
      counted.devices |= fresh;
    }
  }
}

bool Timeline::may_fit_in(Stretch slices, const PlaceTry& job, std::span<std::uint16_t> failed) {
  if (slices.last >= failed[slices.first]) return false;
  if (!job.counts()) return true;
  const std::size_t window = index_of(shortest(slices));
  if (window_at_[window] != kNone || counts_[window] == kCounts) return true;
  ++counts_[window];
  count_held(slices);
  const FleetView view = unreserved(slices.first);
  const auto free = [&](FleetTypeId type) {
    FreeCount count = view.free(Topology::root(), type);
    count.devices -= taken_[type.value()].devices;
    count.nodes -= taken_[type.value()].nodes;
    return count;
  };
  if (job.may_fit(free)) return true;
  note_failed(slices, failed);
  return false;
}

bool Timeline::fits_in(Stretch slices, const PlaceTry& job, std::span<std::uint16_t> failed) {
  if (slices.last >= failed[slices.first]) return false;
  if (job.fits(window(slices))) return true;
  note_failed(slices, failed);
  return false;
}

void Timeline::note_failed(Stretch slices, std::span<std::uint16_t> failed) {
  for (std::uint32_t i = slices.first + 1; i > 0 && failed[i - 1] > slices.last; --i) {
    failed[i - 1] = static_cast<std::uint16_t>(slices.last);
  }
}

// If a window fails, so does every wider one. So the next start to try is the first from which the
// job fits up to the same last slice.
std::optional<Slot> Timeline::earliest(const PlaceTry& job, const SlotWish& wish) {
  const std::span<std::uint16_t> failed = row_of(job, wish.class_id);
  for (std::uint32_t first = 0; first < begins_.size();) {
    const std::uint32_t last = last_before(begins_[first] + wish.length, first);
    if (may_fit_in({first, last}, job, failed) && fits_in({first, last}, job, failed)) {
      auto gangs = job.place(window({first, last}));
      ORRERY_ASSERT(gangs, "what fits is placed");
      return Slot{begins_[first], *std::move(gangs)};
    }
    first = first_that(first + 1, last + 1,
                       [&](std::uint32_t slice) { return may_fit_in({slice, last}, job, failed); });
    first = first_that(first, last + 1,
                       [&](std::uint32_t slice) { return fits_in({slice, last}, job, failed); });
  }
  return std::nullopt;
}

void Timeline::hold(const Hold& like, std::span<const NodeDevices> nodes) {
  if (nodes.empty()) return;
  const auto id = static_cast<std::uint32_t>(holds_.size());
  holds_.push_back(like);
  holds_.back().first_entry = static_cast<std::uint32_t>(entries_.size());
  for (const NodeDevices& at : nodes) {
    std::uint32_t& first = first_entry_[at.node.value()];
    held_.push_back(at);
    entries_.push_back({id, first});
    first = static_cast<std::uint32_t>(entries_.size() - 1);
  }
  holds_.back().end_entry = static_cast<std::uint32_t>(entries_.size());
}

void Timeline::reserve(const Slot& slot, Duration length) {
  const std::uint32_t first = slice_of(slot.start);
  const Stretch slices{first, last_before(slot.start + length, first)};
  for (const PlacedGang& gang : slot.gangs) {
    hold({.slices = slices, .host = gang.host, .share = gang.allocation.share},
         gang.allocation.ranks);
    hold({.slices = slices}, gang.allocation.idle);
  }
  note_start(first);
}

void Timeline::close(const Closure& closure) {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), closure.from);
  const auto first =
      static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(after - begins_.begin(), 1)) - 1;
  hold({.slices = {first, last_before(closure.to, first)}}, closure.nodes);
  note_start(first);
}

void Timeline::note_start(std::uint32_t first) {
  for (std::size_t i = first; i < last_start_.size(); ++i) {
    last_start_[i] = std::max(last_start_[i], first);
  }
}

FleetView Timeline::shadow(Instant until) { return window({0, last_before(until, 0)}); }

bool Timeline::delays(std::span<const PlacedGang> gangs, Instant until) {
  trial_.begin(shadow(until), static_cast<std::uint32_t>(gangs.size()));
  for (const PlacedGang& gang : gangs) {
    if (!gang_fits(trial_.view(), gang)) return true;
    trial_.add(gang);
  }
  return false;
}

}  // namespace orrery

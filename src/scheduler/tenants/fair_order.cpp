#include "scheduler/tenants/fair_order.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace orrery {

FairOrder::FairOrder(const TenantUsage& usage, std::span<const std::int64_t> capacity,
                     std::span<const Waiting> waiting)
    : usage_(usage),
      capacity_(capacity.begin(), capacity.end()),
      wanted_(std::size_t{usage.tree().size()} * usage.tree().type_count(), 0),
      keys_(usage.tree().size()),
      heap_(usage.tree().size()),
      slot_(usage.tree().size(), kAbsent),
      live_(usage.tree().size(), 0) {
  const TenantTree& tree = usage.tree();
  ORRERY_ASSERT(capacity.size() == tree.type_count(), "every type has a capacity");
  std::vector<TenantId> waiters;
  std::vector<TenantId> parents;
  for (const Waiting& entry : waiting) {
    ORRERY_ASSERT(tree.is_leaf(entry.tenant), "jobs belong to tenants without children");
    for (TenantId at = entry.tenant; at != TenantTree::root(); at = tree.parent(at)) {
      ++wanted_[cell(at, entry.type.value())];
      if (waits(at)) continue;
      waiters.push_back(at);
      const TenantId parent = tree.parent(at);
      if (live_[parent.value()] == 0) parents.push_back(parent);
      put(parent, live_[parent.value()]++, at);
    }
  }
  for (const TenantId waiter : waiters) keys_[waiter.value()] = key_of(waiter);
  for (const TenantId parent : parents) {
    for (std::uint32_t i = live_[parent.value()]; i-- > 0;) sift_down(parent, i);
  }
}

std::optional<TenantId> FairOrder::next() const {
  const TenantTree& tree = usage_.tree();
  TenantId at = TenantTree::root();
  if (live_[at.value()] == 0) return std::nullopt;
  while (!tree.is_leaf(at)) at = heap_[tree.first_child(at).value()];
  return at;
}

void FairOrder::usage_changed(TenantId tenant) {
  const TenantTree& tree = usage_.tree();
  for (TenantId at = tenant; at != TenantTree::root(); at = tree.parent(at)) {
    if (!waits(at)) continue;
    keys_[at.value()] = key_of(at);
    sift_up(tree.parent(at), slot_[at.value()]);
    sift_down(tree.parent(at), slot_[at.value()]);
  }
}

void FairOrder::exhausted(TenantId tenant) {
  const TenantTree& tree = usage_.tree();
  if (!waits(tenant)) return;
  for (std::uint32_t type = 0; type < tree.type_count(); ++type) {
    const std::uint32_t gone = wanted_[cell(tenant, type)];
    for (TenantId at = tenant; at != TenantTree::root(); at = tree.parent(at)) {
      wanted_[cell(at, type)] -= gone;
    }
  }
  for (TenantId at = tenant; at != TenantTree::root(); at = tree.parent(at)) {
    if (live_[at.value()] == 0) remove(at);
  }
  usage_changed(tenant);
}

FairOrder::Key FairOrder::key_of(TenantId tenant) const {
  const TenantTree& tree = usage_.tree();
  Key key;
  for (std::uint32_t i = 0; i < tree.type_count(); ++i) {
    const FleetTypeId type(i);
    if (wanted_[cell(tenant, i)] > 0 && usage_.covered(tenant, type).value_or(0) > 0) key.rank = 0;
    if (capacity_[i] == 0) continue;
    const double held =
        static_cast<double>(usage_.used(tenant, type)) + usage_.recent(tenant, type);
    key.share = std::max(key.share, held / static_cast<double>(capacity_[i]));
  }
  key.share /= tree.weight(tenant);
  return key;
}

bool FairOrder::precedes(TenantId a, TenantId b) const {
  const Key& first = keys_[a.value()];
  const Key& second = keys_[b.value()];
  if (first.rank != second.rank) return first.rank < second.rank;
  if (first.share != second.share) return first.share < second.share;
  return a < b;
}

void FairOrder::put(TenantId parent, std::uint32_t position, TenantId child) {
  heap_[usage_.tree().first_child(parent).value() + position] = child;
  slot_[child.value()] = position;
}

void FairOrder::sift_up(TenantId parent, std::uint32_t position) {
  const TenantId* heap = &heap_[usage_.tree().first_child(parent).value()];
  const TenantId moving = heap[position];
  while (position > 0 && precedes(moving, heap[(position - 1) / 2])) {
    put(parent, position, heap[(position - 1) / 2]);
    position = (position - 1) / 2;
  }
  put(parent, position, moving);
}

void FairOrder::sift_down(TenantId parent, std::uint32_t position) {
  const TenantId* heap = &heap_[usage_.tree().first_child(parent).value()];
  const std::uint32_t live = live_[parent.value()];
  const TenantId moving = heap[position];
  while (2 * position + 1 < live) {
    std::uint32_t child = 2 * position + 1;
    if (child + 1 < live && precedes(heap[child + 1], heap[child])) ++child;
    if (!precedes(heap[child], moving)) break;
    put(parent, position, heap[child]);
    position = child;
  }
  put(parent, position, moving);
}

void FairOrder::remove(TenantId child) {
  const TenantId parent = usage_.tree().parent(child);
  const std::uint32_t position = slot_[child.value()];
  const std::uint32_t last = --live_[parent.value()];
  slot_[child.value()] = kAbsent;
  if (position == last) return;
  put(parent, position, heap_[usage_.tree().first_child(parent).value() + last]);
  sift_up(parent, position);
  sift_down(parent, position);
}

}  // namespace orrery

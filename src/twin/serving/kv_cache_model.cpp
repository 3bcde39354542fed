#include "twin/serving/kv_cache_model.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace orrery {

KvCacheModel::KvCacheModel(std::uint32_t blocks, std::uint32_t units)
    : total_(blocks), free_(blocks), units_(units) {}

void KvCacheModel::take(std::uint32_t count) {
  ORRERY_ASSERT(available() >= count, "the blocks are available");
  while (free_ < count) {
    Unit& oldest = units_[oldest_];
    const std::uint32_t taken = std::min(oldest.blocks, count - free_);
    oldest.blocks -= taken;
    cached_ -= taken;
    free_ += taken;
    if (oldest.blocks == 0) unlink(oldest_);
  }
  free_ -= count;
}

std::uint32_t KvCacheModel::hold(std::uint32_t unit) {
  Unit& held = units_[unit];
  if (held.blocks == 0) return 0;
  if (held.references++ == 0) {
    unlink(unit);
    cached_ -= held.blocks;
  }
  return held.blocks;
}

void KvCacheModel::publish(std::uint32_t unit, std::uint32_t full, std::uint32_t own) {
  Unit& published = units_[unit];
  const bool held = own < full;
  if (!held && hold(unit) == 0) published.references = 1;
  const std::uint32_t grown = full - std::min(full, published.blocks);
  ORRERY_ASSERT(grown <= own, "what is not held is the caller's own");
  published.blocks += grown;
  free_ += own - grown;
}

void KvCacheModel::release(std::uint32_t unit) {
  Unit& released = units_[unit];
  ORRERY_ASSERT(released.references > 0, "only what is held is released");
  if (--released.references > 0) return;
  cached_ += released.blocks;
  link_newest(unit);
}

void KvCacheModel::unlink(std::uint32_t unit) {
  Unit& taken = units_[unit];
  (taken.before == kNone ? oldest_ : units_[taken.before].after) = taken.after;
  (taken.after == kNone ? newest_ : units_[taken.after].before) = taken.before;
  taken.before = taken.after = kNone;
}

void KvCacheModel::link_newest(std::uint32_t unit) {
  units_[unit].before = newest_;
  (newest_ == kNone ? oldest_ : units_[newest_].after) = unit;
  newest_ = unit;
}

void KvCacheModel::clear() {
  free_ = total_;
  cached_ = 0;
  units_.assign(units_.size(), {});
  oldest_ = newest_ = kNone;
}

bool KvCacheModel::consistent(std::uint32_t private_used) const {
  std::uint64_t used = private_used;
  std::uint64_t cached = 0;
  std::size_t unused = 0;
  for (const Unit& each : units_) {
    (each.references > 0 ? used : cached) += each.blocks;
    if (each.references == 0 && each.blocks > 0) ++unused;
  }
  std::size_t listed = 0;
  for (std::uint32_t unit = oldest_; unit != kNone; unit = units_[unit].after) ++listed;
  return cached == cached_ && used + cached + free_ == total_ && listed == unused;
}

}  // namespace orrery

#include "twin/serving/decode_group.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace orrery {

void DecodeGroup::join(Id id, std::uint32_t computed, std::uint32_t steps) {
  if (id >= members_.size()) members_.resize(id + 1);
  Member& member = members_[id];
  ORRERY_ASSERT(!member.present && steps > 0, "a member joins once, for a step at least");
  member = {.joined = step_, .serial = serial_++, .computed = computed, .present = true};
  ++size_;
  context_ += computed;
  ++phases_[phase_of(member)];
  ends_.push_back({.step = step_ + steps, .serial = member.serial, .id = id});
  std::ranges::push_heap(ends_, is_later);
}

std::uint32_t DecodeGroup::steps_of(Id id) const {
  return static_cast<std::uint32_t>(step_ - members_[id].joined);
}

std::uint32_t DecodeGroup::leave(Id id) {
  ORRERY_ASSERT(has(id), "only a member leaves");
  Member& member = members_[id];
  const std::uint32_t steps = steps_of(id);
  member.present = false;
  --size_;
  context_ -= member.computed + steps;
  --phases_[phase_of(member)];
  return steps;
}

void DecodeGroup::drop_first_end() {
  std::ranges::pop_heap(ends_, is_later);
  ends_.pop_back();
}

std::uint32_t DecodeGroup::steps_to_end() {
  while (!is_valid(ends_.front())) drop_first_end();
  return static_cast<std::uint32_t>(ends_.front().step - step_);
}

std::uint64_t DecodeGroup::blocks_needed(std::uint32_t steps) const {
  std::uint64_t needed = std::uint64_t{steps / kKvBlockTokens} * size_;
  for (std::uint32_t i = 0; i < steps % kKvBlockTokens; ++i) {
    needed += phases_[(step_ + i) % kKvBlockTokens];
  }
  return needed;
}

std::uint32_t DecodeGroup::steps_within(std::uint32_t blocks, std::uint32_t limit) const {
  if (blocks_needed(limit) <= blocks) return limit;
  const std::uint32_t rounds = blocks / size_;
  std::uint32_t steps = rounds * kKvBlockTokens;
  std::uint32_t left = blocks - rounds * size_;
  while (steps < limit) {
    const std::uint32_t more = phases_[(step_ + steps) % kKvBlockTokens];
    if (more > left) break;
    left -= more;
    ++steps;
  }
  return std::min(steps, limit);
}

void DecodeGroup::advance(std::uint32_t steps, std::vector<Id>& ended) {
  step_ += steps;
  context_ += std::uint64_t{steps} * size_;
  while (!ends_.empty()) {
    const End first = ends_.front();
    if (is_valid(first)) {
      if (first.step > step_) break;
      leave(first.id);
      ended.push_back(first.id);
    }
    drop_first_end();
  }
}

void DecodeGroup::clear() {
  size_ = 0;
  context_ = 0;
  phases_ = {};
  members_.clear();
  ends_.clear();
}

}  // namespace orrery

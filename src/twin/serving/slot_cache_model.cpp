#include "twin/serving/slot_cache_model.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "workload/requests/request_trace.hpp"

namespace orrery {
namespace {

std::uint32_t common_tokens(const SlotCacheModel::Prompt& a, const SlotCacheModel::Prompt& b) {
  const auto differ = std::ranges::mismatch(a.chain, b.chain).in1;
  const auto units = static_cast<std::uint32_t>(differ - a.chain.begin());
  return std::min({units * kTraceBlockTokens, a.tokens, b.tokens});
}

}  // namespace

SlotCacheModel::Taken SlotCacheModel::take(const Prompt& prompt) {
  Taken best;
  bool found = false;
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    if (slot.taken) continue;
    const std::uint32_t common = common_tokens(slot.prompt, prompt);
    const bool better = !found || common > best.tokens ||
                        (common == best.tokens && slot.freed < slots_[best.slot].freed);
    if (better) best = {.slot = i, .tokens = common};
    found = true;
  }
  ORRERY_ASSERT(found, "a slot is free");
  slots_[best.slot].taken = true;
  return best;
}

void SlotCacheModel::give(std::uint32_t slot, const Prompt& computed) {
  slots_[slot] = {.prompt = computed, .freed = ++frees_, .taken = false};
}

void SlotCacheModel::clear() { slots_.assign(slots_.size(), {}); }

}  // namespace orrery

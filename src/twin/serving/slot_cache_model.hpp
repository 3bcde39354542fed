// twin/serving/slot_cache_model.hpp - the slots of llama.cpp: each keeps the prompt that it
// computed last, and computes of the next one what differs.
//
// Owned by an EngineModel; borrows the chains of the trace. Cost: O(slots x common blocks) to take.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace orrery {

class SlotCacheModel {
 public:
  explicit SlotCacheModel(std::uint32_t slots) : slots_(slots) {}

  struct Prompt {
    std::span<const std::uint32_t> chain;  ///< as of RequestTrace
    std::uint32_t tokens = 0;
  };
  struct Taken {
    std::uint32_t slot = 0;
    std::uint32_t tokens = 0;  ///< with which both prompts begin
  };
  /// Takes the free slot whose prompt has most in common with this one; of equal ones that which is
  /// free for longest. Precondition: one is free.
  [[nodiscard]] Taken take(const Prompt& prompt);
  void give(std::uint32_t slot, const Prompt& computed);
  /// Forgets all prompts; every slot is free.
  void clear();

 private:
  struct Slot {
    Prompt prompt;
    std::uint64_t freed = 0;
    bool taken = false;
  };

  std::vector<Slot> slots_;
  std::uint64_t frees_ = 0;
};

}  // namespace orrery

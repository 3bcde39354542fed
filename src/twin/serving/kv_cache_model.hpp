// twin/serving/kv_cache_model.hpp - which blocks of a modelled engine's KV cache are in use, and
// which prompts the others still hold.
//
// Owned by an EngineModel. Counts blocks of kKvBlockTokens tokens. Blocks of answers and of parts
// of prompts that are not complete are private: only counted. The blocks of a prompt are known by
// the block of the trace (kTraceBlockTokens tokens) that they belong to, here called a unit: units
// are shared by reference, and keep their content while no sequence uses them until their blocks
// are needed. The unit unused longest gives its last block first, so that what remains of it is the
// beginning of a prompt and can be found.
//
// Invariants:
//   1. free + cached + those in use are all blocks; cached are those of units without a reference.
//   2. A unit is in the list of unused ones exactly if it has blocks and no reference.
// Cost: O(1) a call, O(units evicted) for take().
#pragma once

#include <cstdint>
#include <vector>

namespace orrery {

/// Tokens of a block, as engines have them.
inline constexpr std::uint32_t kKvBlockTokens = 16;

[[nodiscard]] constexpr std::uint32_t kv_blocks_of(std::uint64_t tokens) {
  return static_cast<std::uint32_t>((tokens + kKvBlockTokens - 1) / kKvBlockTokens);
}

class KvCacheModel {
 public:
  /// `units`: different blocks of the trace.
  KvCacheModel(std::uint32_t blocks, std::uint32_t units);

  [[nodiscard]] std::uint32_t total() const { return total_; }
  /// Blocks that no sequence uses.
  [[nodiscard]] std::uint32_t available() const { return free_ + cached_; }

  /// Takes private blocks, from unused units where none is free. Precondition: available() >=
  /// count.
  void take(std::uint32_t count);
  /// Gives private blocks back.
  void give(std::uint32_t count) { free_ += count; }

  /// Adds a reference to a unit and returns the blocks that it has, the first ones of the unit;
  /// 0: it has none, and gets no reference.
  [[nodiscard]] std::uint32_t hold(std::uint32_t unit);
  /// Makes `own` private blocks, the last ones of the `full` blocks of a unit, known as part of it.
  /// The caller has held the others (then it has a reference), or gets a reference. Blocks that the
  /// unit has had twice are given back.
  void publish(std::uint32_t unit, std::uint32_t full, std::uint32_t own);
  /// Takes a reference back.
  void release(std::uint32_t unit);
  /// Returns the blocks of a unit that could be found now.
  [[nodiscard]] std::uint32_t blocks_in(std::uint32_t unit) const { return units_[unit].blocks; }
  /// Whether a unit has blocks that no sequence uses.
  [[nodiscard]] bool is_idle(std::uint32_t unit) const {
    return units_[unit].blocks > 0 && units_[unit].references == 0;
  }

  /// Forgets everything.
  void clear();
  /// Counts again what the counters say; `used` are the blocks of sequences. For tests. O(units).
  [[nodiscard]] bool consistent(std::uint32_t private_used) const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Unit {
    std::uint32_t references = 0;
    std::uint32_t blocks = 0;
    std::uint32_t before = kNone;  ///< in the list of unused units
    std::uint32_t after = kNone;
  };

  void unlink(std::uint32_t unit);
  void link_newest(std::uint32_t unit);

  std::uint32_t total_;
  std::uint32_t free_;
  std::uint32_t cached_ = 0;
  std::vector<Unit> units_;
  std::uint32_t oldest_ = kNone;
  std::uint32_t newest_ = kNone;
};

}  // namespace orrery

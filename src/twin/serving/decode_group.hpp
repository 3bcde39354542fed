// twin/serving/decode_group.hpp - the sequences of a modelled engine that get a token in each step,
// counted together.
//
// Owned by an EngineModel. A step of all of them costs O(1): their context grows by one token each,
// a sequence needs a block in every kKvBlockTokens-th step, and ends in a step that is known when
// it joins. So many steps are as easily counted as one. Invariant: members, context and the counts
// by phase are those of the members. Cost: O(log members) to join; O(1) for the rest, and O(log
// members) for each that ends.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "twin/serving/kv_cache_model.hpp"

namespace orrery {

class DecodeGroup {
 public:
  using Id = std::uint32_t;  ///< a small number that names a sequence

  [[nodiscard]] std::uint32_t size() const { return size_; }
  /// Tokens that all members have in the cache.
  [[nodiscard]] std::uint64_t context() const { return context_; }

  /// `computed`: tokens in the cache; `steps`: after which it ends, at least one. Precondition: it
  /// is no member.
  void join(Id id, std::uint32_t computed, std::uint32_t steps);
  /// Returns the steps that it has been a member for. Precondition: it is a member.
  std::uint32_t leave(Id id);
  [[nodiscard]] bool has(Id id) const { return id < members_.size() && members_[id].present; }
  /// Returns the steps that a member has been one for.
  [[nodiscard]] std::uint32_t steps_of(Id id) const;

  /// Returns the steps until the first member ends. Precondition: size() > 0.
  [[nodiscard]] std::uint32_t steps_to_end();
  /// Returns the blocks that members need at the beginning of the next `steps` steps.
  [[nodiscard]] std::uint64_t blocks_needed(std::uint32_t steps) const;
  /// Returns the most steps, up to `limit`, that need no more blocks than these.
  [[nodiscard]] std::uint32_t steps_within(std::uint32_t blocks, std::uint32_t limit) const;

  /// Lets steps pass; the members that end are appended to `ended`, in the order in which they
  /// joined, and leave. Precondition: steps <= steps_to_end().
  void advance(std::uint32_t steps, std::vector<Id>& ended);
  void clear();

 private:
  struct Member {
    std::uint64_t joined = 0;    ///< number of its first step
    std::uint64_t serial = 0;    ///< of its joining
    std::uint32_t computed = 0;  ///< tokens in the cache when it joined
    bool present = false;
  };
  struct End {
    std::uint64_t step = 0;
    std::uint64_t serial = 0;
    Id id = 0;
  };
  static bool is_later(const End& a, const End& b) {
    return a.step != b.step ? a.step > b.step : a.serial > b.serial;
  }
  [[nodiscard]] static std::size_t phase_of(const Member& member) {
    return static_cast<std::size_t>((member.joined - member.computed) % kKvBlockTokens);
  }
  [[nodiscard]] bool is_valid(const End& end) const {
    return members_[end.id].present && members_[end.id].serial == end.serial;
  }
  void drop_first_end();

  std::uint32_t size_ = 0;
  std::uint64_t context_ = 0;
  std::uint64_t step_ = 0;  ///< number of the next step
  std::uint64_t serial_ = 0;
  /// Members that need a block before the steps whose number leaves this remainder.
  std::array<std::uint32_t, kKvBlockTokens> phases_{};
  std::vector<Member> members_;
  std::vector<End> ends_;  ///< a heap; those of former members are skipped
};

}  // namespace orrery

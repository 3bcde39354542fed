// runtime/ranks/peer_copies.hpp - the state of a training in the memory of its ranks: each keeps
// its range of the whole and that of another rank, so that a lost rank's range is still available.
//
// One for a rank's lifetime, used by its thread; outlives generations of the group. The copies do
// not depend on how the state was divided: any layout can read them. Invariant: while a newer copy
// is being made, the previous one is whole. Memory: twelve floats a weight, over the number of
// ranks.
#pragma once

#include <array>
#include <optional>

#include "runtime/training/training_state.hpp"

namespace orrery {

class PeerCopies {
 public:
  /// Keeps the state; all ranks of `all` call it after the same step. The other rank is half of the
  /// ranks away, which is on another node if nodes have equally many consecutive ranks. Cost: what
  /// a checkpoint copies, and sending that to the other rank.
  [[nodiscard]] Shared<void> keep(Communicator& all, const TrainingState& state);

  /// Returns the newest step of which the ranks of `all` together have every range; nothing: there
  /// is none. All ranks call it, including newcomers that keep nothing. A copy whose checksum does
  /// not match counts as missing.
  [[nodiscard]] Shared<std::optional<std::uint64_t>> newest(Communicator& all);

  /// Restores each rank's share of the state of that step. Precondition: the call before was
  /// newest() of the same ranks, and it returned a step. Cost: the whole state passes through each
  /// rank, some 2 MB at a time.
  [[nodiscard]] Shared<void> restore(Communicator& all, TrainingState& state) const;

 private:
  struct Name {
    std::uint64_t step = 0;
    std::uint32_t ranks = 0;  ///< number of ranks that kept the state; 0: nothing is kept
    std::uint32_t range = 0;  ///< number among `ranks` ranges
    std::array<std::uint64_t, TrainingState::kVectors> checksums{};
  };
  struct Copy {
    Name name;
    std::array<AlignedFloats, TrainingState::kVectors> vectors;
  };
  static constexpr std::size_t kCopies = 4;
  /// A range, and the rank that provides it.
  struct Source {
    std::uint32_t rank = 0;
    std::uint32_t range = 0;
  };

  [[nodiscard]] static bool good(const Copy& copy);
  [[nodiscard]] std::optional<std::vector<Source>> sources_of(std::span<const Name> names,
                                                              const Name& of) const;
  [[nodiscard]] const Copy& copy_of(std::uint32_t range) const;

  std::array<Copy, kCopies> copies_;  ///< own and another rank's, then the previous two
  Name found_;                        ///< set by newest()
  std::vector<Source> sources_;       ///< sources of found_, by range
};

}  // namespace orrery

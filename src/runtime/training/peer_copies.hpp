// runtime/training/peer_copies.hpp - the state of a training in the memory of its ranks: each keeps
// its range of the whole and that of another rank, so that a lost rank's is still there.
//
// One for a rank's life, used by its thread; outlives generations of the group. What is kept does
// not tell how the state was shared out: any layout reads it. Invariant: while a newer copy is
// being made the one before it is whole. Memory: twelve floats a weight, over the number of ranks.
#pragma once

#include <array>
#include <optional>

#include "runtime/training/training_state.hpp"

namespace orrery {

class PeerCopies {
 public:
  /// All of `all` call it after the same step. The other rank is half of the ranks away, which is
  /// on another node where nodes have equally many in a row. Cost: what a checkpoint copies, and
  /// that to the other rank.
  [[nodiscard]] Shared<void> keep(Communicator& all, const TrainingState& state);

  /// The newest step of which the ranks of `all` have every range between them; nothing: there is
  /// none. All call it, newcomers with nothing kept, too. What its checksum says is spoilt is not
  /// there.
  [[nodiscard]] Shared<std::optional<std::uint64_t>> newest(Communicator& all);

  /// That step's state, each rank's share of it. Precondition: newest() of the same ranks was the
  /// call before, and there was one. Cost: the whole state through each rank, some 2 MB at a time.
  [[nodiscard]] Shared<void> restore(Communicator& all, TrainingState& state) const;

 private:
  struct Name {
    std::uint64_t step = 0;
    std::uint32_t ranks = 0;  ///< that the state was kept by; 0: nothing is here
    std::uint32_t range = 0;  ///< of as many
    std::array<std::uint64_t, TrainingState::kVectors> checksums{};
  };
  struct Copy {
    Name name;
    std::array<AlignedFloats, TrainingState::kVectors> vectors;
  };
  static constexpr std::size_t kCopies = 4;
  /// A range, and the rank that gives it.
  struct Source {
    std::uint32_t rank = 0;
    std::uint32_t range = 0;
  };

  [[nodiscard]] static bool good(const Copy& copy);
  [[nodiscard]] std::optional<std::vector<Source>> sources_of(std::span<const Name> names,
                                                              const Name& of) const;
  [[nodiscard]] const Copy& copy_of(std::uint32_t range) const;

  std::array<Copy, kCopies> copies_;  ///< own and another's, then those of the time before
  Name found_;                        ///< by newest()
  std::vector<Source> sources_;       ///< of found_, by range
};

}  // namespace orrery

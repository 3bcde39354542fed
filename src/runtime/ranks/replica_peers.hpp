// runtime/ranks/replica_peers.hpp - the messages between ranks of a replica while they compute a
// shard: partial sums within a stage, activations and gradients from stage to stage.
//
// Made with a RankGrid, for its generation, over a piece of the group's workspace; used by one
// thread. A stage sends from mailboxes there, two for each direction, so it continues to compute
// while its message is on its way. Once a rank is lost it sends and receives nothing more.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "runtime/ranks/rank_grid.hpp"

namespace orrery {

class ReplicaPeers final : public PartPeers {
 public:
  /// Returns the floats of workspace that it needs.
  [[nodiscard]] static std::size_t room_floats(const TrainingSpec& spec);

  /// The other ranks of this machine read `room`. `grid` and `room` outlive it. Precondition:
  /// `room` has room_floats() floats.
  ReplicaPeers(const TrainingSpec& spec, RankGrid& grid, std::span<float> room);

  [[nodiscard]] std::span<float> room(std::size_t floats) override;
  void sum(std::span<float> floats) override;
  void gather_rows(std::span<float> floats, std::int64_t width) override;
  void sum_rows(std::span<float> floats, std::int64_t width) override;
  void send(Way way, std::span<const float> floats) override;
  void receive(Way way, std::span<float> floats) override;
  void sum_ends(std::span<float> floats) override;
  /// Whether a rank was lost: results since then are invalid.
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  static constexpr std::size_t kMailboxes = 2;  ///< in each direction
  struct Mailbox {
    std::span<float> floats;
    std::optional<PartOnItsWay> sent;
  };
  /// Waits until the last message from the next mailbox has arrived, and returns the mailbox.
  [[nodiscard]] Shared<Mailbox*> free_mailbox(Way way);
  /// Returns the part of each of the stage's ranks in rows that they share.
  [[nodiscard]] std::vector<RankPart> parts_of(std::span<float> floats, std::int64_t width);
  /// Returns the rank with this tensor rank in the next stage in that direction; with chunks the
  /// first follows the last.
  [[nodiscard]] std::uint32_t neighbour(Way way) const;

  RankGrid& grid_;
  std::span<float> room_;
  std::vector<LeafRange> a_leaf_a_rank_;                      ///< one leaf per rank of the stage
  std::array<std::array<Mailbox, kMailboxes>, 2> mailboxes_;  ///< by direction
  std::array<std::size_t, 2> messages_{};                     ///< sent so far, by direction
  bool broken_ = false;
};

}  // namespace orrery

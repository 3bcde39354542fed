// runtime/training/replica_peers.hpp - what the ranks of a replica say to each other while they
// compute a shard: partial sums within a stage, activations and gradients from stage to stage.
//
// Made with a RankGrid, for its generation, over a piece of the group's workspace; used by one
// thread. A stage sends from mailboxes there, two each way, so it computes on while its message is
// on its way. Once a rank is lost it says and hears nothing more.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "runtime/training/rank_grid.hpp"

namespace orrery {

class ReplicaPeers final : public PartPeers {
 public:
  /// Floats of workspace that it needs.
  [[nodiscard]] static std::size_t room_floats(const TrainingSpec& spec);

  /// `room` is read by the other ranks of this machine; both outlive it. Precondition:
  /// room_floats() of room.
  ReplicaPeers(const TrainingSpec& spec, RankGrid& grid, std::span<float> room);

  [[nodiscard]] std::span<float> room(std::size_t floats) override;
  void sum(std::span<float> floats) override;
  void gather_rows(std::span<float> floats, std::int64_t width) override;
  void sum_rows(std::span<float> floats, std::int64_t width) override;
  void send(Way way, std::span<const float> floats) override;
  void receive(Way way, std::span<float> floats) override;
  void sum_ends(std::span<float> floats) override;
  /// A rank was lost: what was said since is worth nothing.
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  static constexpr std::size_t kMailboxes = 2;  ///< each way
  struct Mailbox {
    std::span<float> floats;
    std::optional<PartOnItsWay> sent;
  };
  /// The next mailbox, once what was sent from it is there.
  [[nodiscard]] Shared<Mailbox*> free_mailbox(Way way);
  /// Of rows that the stage's ranks share, what each has.
  [[nodiscard]] std::vector<RankPart> parts_of(std::span<float> floats, std::int64_t width);
  /// This rank's like in the next stage that way; with chunks the first follows the last.
  [[nodiscard]] std::uint32_t neighbour(Way way) const;

  RankGrid& grid_;
  std::span<float> room_;
  std::vector<LeafRange> a_leaf_a_rank_;                      ///< of the stage
  std::array<std::array<Mailbox, kMailboxes>, 2> mailboxes_;  ///< by way
  std::array<std::size_t, 2> messages_{};                     ///< sent so far, by way
  bool broken_ = false;
};

}  // namespace orrery

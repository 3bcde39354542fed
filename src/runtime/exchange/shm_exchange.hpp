// runtime/exchange/shm_exchange.hpp - a PeerExchange among ranks of which some share memory:
// between these, parts in the shared workspace are read in place, small ones travel in a slot, and
// others over the mesh's sockets, because not every system allows reading another process's memory.
// Between ranks of different machines all parts travel over the sockets.
//
// Each rank writes its own segment only, so a rank that dies in the middle of anything leaves no
// lock held. Between two ranks a slot is numbered, posted by one rank and marked as looked at by
// the other; a rank that waits spins a little, then sleeps on a futex, and checks the mesh now and
// then for lost peers. Cost of a small part: two cache misses when both are awake.
#pragma once

#include <atomic>
#include <map>

#include "runtime/exchange/peer_exchange.hpp"
#include "runtime/exchange/shared_segment.hpp"

namespace orrery {

/// The layout of a segment: what a rank shows to the others.
struct ShmBoard {
  static constexpr std::uint32_t kRanksMax = 64;
  static constexpr std::size_t kInlineMax = 8192;

  struct alignas(64) Slot {
    std::atomic<std::uint64_t> posted;  ///< number of the part in it
    std::uint64_t where = 0;            ///< offset in the segment
    std::uint64_t bytes = 0;
    std::uint32_t kind = 0;
    alignas(64) std::byte small[kInlineMax];
  };
  struct alignas(64) Pair {
    std::atomic<std::uint64_t>
        looked;     ///< number of the newest part from this peer that is no longer needed
    Slot slots[2];  ///< for this peer, by the part's number
  };

  alignas(64) std::byte cookie[64];
  alignas(64) std::atomic<std::uint32_t> bell;  ///< incremented at each change of this board
  std::atomic<std::uint32_t> sleepers;
  Pair pairs[kRanksMax];
};

/// A rank's own segment: the board, and after it the workspace.
class ShmWorkspace {
 public:
  [[nodiscard]] static Result<ShmWorkspace> make(std::uint64_t bytes, std::uint64_t cookie,
                                                 const std::string& domain = {});

  [[nodiscard]] const SegmentAddress& address() const { return segment_.address(); }
  [[nodiscard]] ShmBoard& board() { return *reinterpret_cast<ShmBoard*>(segment_.data()); }
  [[nodiscard]] std::span<std::byte> bytes() {
    return {segment_.data() + sizeof(ShmBoard), segment_.size() - sizeof(ShmBoard)};
  }
  /// Returns the offset of a part in the segment, if it lies there.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(std::span<const std::byte> part) const;

 private:
  explicit ShmWorkspace(SharedSegment segment) : segment_(std::move(segment)) {}
  SharedSegment segment_;
};

/// Returns, by rank, the lowest rank of its machine, computed from which memory each rank has
/// opened (ShmExchange::opened). Where sharing is not transitive (two ranks share memory with a
/// third, but not with each other), each rank is alone. Cost: O(ranks^2).
[[nodiscard]] std::vector<std::uint32_t> machines_of(std::span<const std::uint64_t> opened);

class ShmExchange final : public PeerExchange {
 public:
  /// `mesh` and `own` outlive it; the mesh is connected to all other members. At most kRanksMax.
  ShmExchange(PeerMesh& mesh, ShmWorkspace& own, ExchangeSeat seat);
  /// Opens as much of the peers' memory as it can. `workspaces` is indexed by rank.
  void open(std::span<const SegmentAddress> workspaces);
  /// Returns which ranks' memory is open here, one bit per rank, this rank's included.
  [[nodiscard]] std::uint64_t opened() const;
  /// Sets the machines that all ranks have agreed on (machine_of() returns them), and closes the
  /// memory of ranks on other machines. Precondition: ranks of this machine have each other's
  /// memory open.
  void share_by(std::vector<std::uint32_t> machines);
  /// Copies messages that are still being sent over sockets, since their owners may free them.
  ~ShmExchange() override { mesh_.keep_pending(); }

  [[nodiscard]] std::uint32_t rank() const override { return seat_.rank; }
  [[nodiscard]] std::uint32_t size() const override {
    return static_cast<std::uint32_t>(seat_.members.size());
  }
  [[nodiscard]] std::uint32_t machine_of(std::uint32_t rank) const override {
    return machines_[rank];
  }
  [[nodiscard]] Shared<std::size_t> show(std::span<const ShownPart> parts, Wait wait) override;
  [[nodiscard]] Shared<std::optional<std::span<const std::byte>>> look(std::uint32_t from,
                                                                       Wait wait) override;
  [[nodiscard]] Shared<bool> settle(Wait wait) override;
  [[nodiscard]] Shared<PartOnItsWay> begin_show(const ShownPart& part) override;
  [[nodiscard]] Shared<void> arrived(const PartOnItsWay& part) override;
  [[nodiscard]] std::optional<PeerLost> watch(Duration patience) override {
    return watch_peers(mesh_, seat_, patience);
  }

 private:
  struct Peer {
    std::optional<SharedSegment> segment;  ///< empty for this rank and for ranks of other machines
    std::uint64_t shown = 0;               ///< number of the newest part shown to it
    std::uint64_t seen = 0;                ///< number of the newest part seen from it
    bool must_look = false;                ///< it must look at a part of show() that is not a copy
    PeerMessage message;                   ///< a part that came over a socket
  };

  [[nodiscard]] ShmBoard& board(std::uint32_t rank);
  [[nodiscard]] bool near(std::uint32_t peer) const { return peers_[peer].segment.has_value(); }
  /// Writes the part into the next slot for the peer, if it is free. Returns whether it was.
  [[nodiscard]] Shared<bool> post(const ShownPart& part, Wait wait);
  void fill_slot(const ShownPart& part);
  [[nodiscard]] Shared<std::optional<std::span<const std::byte>>> look_at_socket(std::uint32_t from,
                                                                                 Wait wait);
  void ring();
  /// A number that rank `at` writes on its board.
  struct Word {
    std::uint32_t at = 0;
    const std::atomic<std::uint64_t>& value;
  };
  /// Returns the word with the number of parts from this rank that the peer has looked at.
  [[nodiscard]] Word looked_by(std::uint32_t peer) {
    return {peer, board(peer).pairs[seat_.rank].looked};
  }
  /// Waits until the word has reached `number`, if `wait` says so. Returns whether it has.
  [[nodiscard]] Shared<bool> await(const Word& word, std::uint64_t number, Wait wait);
  [[nodiscard]] Shared<void> doze_until(const Word& word, std::uint64_t number);

  PeerMesh& mesh_;
  ShmWorkspace& own_;
  ExchangeSeat seat_;
  std::uint32_t spins_ = 0;
  std::vector<Peer> peers_;
  std::vector<std::uint32_t> machines_;
  std::vector<std::uint32_t> viewed_;
};

}  // namespace orrery

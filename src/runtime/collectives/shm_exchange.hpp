// runtime/collectives/shm_exchange.hpp - a PeerExchange among ranks of which some share memory:
// between these, parts in the shared workspace are looked at where they are, small ones travel in a
// slot, others over the mesh's sockets: another process's memory is not everywhere to be read.
// Between ranks of different machines all parts travel over the sockets.
//
// Each rank writes its own segment only, so a rank that dies in the middle of anything leaves no
// lock held. Between two ranks a slot is numbered, posted by one and marked as looked at by the
// other; who waits spins a little, sleeps on a futex, and asks the mesh now and then whether all
// still live. Cost of a small part: two cache misses when both are awake.
#pragma once

#include <atomic>
#include <map>

#include "runtime/collectives/peer_exchange.hpp"
#include "runtime/collectives/shared_segment.hpp"

namespace orrery {

/// The layout of a segment: what others see of a rank.
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
        looked;     ///< number of the newest part from this peer that is done with
    Slot slots[2];  ///< for this peer, by the part's number
  };

  alignas(64) std::byte cookie[64];
  alignas(64) std::atomic<std::uint32_t> bell;  ///< rung at each change here
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
  /// Where a part lies in the segment, if it does.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(std::span<const std::byte> part) const;

 private:
  explicit ShmWorkspace(SharedSegment segment) : segment_(std::move(segment)) {}
  SharedSegment segment_;
};

/// By rank, from whose memory each has opened (ShmExchange::opened): the lowest rank of its
/// machine. Where those who share memory are no such sets (two that share it with a third, and not
/// with each other), each is alone. Cost: O(ranks^2).
[[nodiscard]] std::vector<std::uint32_t> machines_of(std::span<const std::uint64_t> opened);

class ShmExchange final : public PeerExchange {
 public:
  /// `mesh` and `own` outlive it; the mesh is connected to all other members. At most kRanksMax.
  ShmExchange(PeerMesh& mesh, ShmWorkspace& own, ExchangeSeat seat);
  /// Opens what can be opened of the peers' memory. `workspaces` by rank.
  void open(std::span<const SegmentAddress> workspaces);
  /// Whose memory is open here, a bit a rank, this one's among them.
  [[nodiscard]] std::uint64_t opened() const;
  /// What all ranks have agreed on (machine_of() says it): the memory of ranks of other machines is
  /// closed. Precondition: that of this machine's is open, here and there.
  void share_by(std::vector<std::uint32_t> machines);
  /// What is on its way over sockets is copied: its owners may free it.
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
    std::optional<SharedSegment> segment;  ///< none: this rank itself, or another machine's
    std::uint64_t shown = 0;               ///< number of the newest part for it
    std::uint64_t seen = 0;                ///< of the newest part from it
    bool must_look = false;                ///< at a part of show() that is no copy
    PeerMessage message;                   ///< a part that came over a socket
  };

  [[nodiscard]] ShmBoard& board(std::uint32_t rank);
  [[nodiscard]] bool near(std::uint32_t peer) const { return peers_[peer].segment.has_value(); }
  /// Into the next slot for the peer, if it is free. Whether it was.
  [[nodiscard]] Shared<bool> post(const ShownPart& part, Wait wait);
  void fill_slot(const ShownPart& part);
  [[nodiscard]] Shared<std::optional<std::span<const std::byte>>> look_at_socket(std::uint32_t from,
                                                                                 Wait wait);
  void ring();
  /// A number that a rank writes on its board.
  struct Word {
    std::uint32_t at = 0;
    const std::atomic<std::uint64_t>& value;
  };
  /// How far the peer has looked at parts from here.
  [[nodiscard]] Word looked_by(std::uint32_t peer) {
    return {peer, board(peer).pairs[seat_.rank].looked};
  }
  /// Until it has reached `number`. Whether it has.
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

// runtime/elastic/member_group.hpp - who takes part in a training job now: found, kept when members
// die, and joined by others, with no help from the controller.
//
// One a process; used by one thread. A generation is a fixed list of members, with a Communicator
// among them. When a member is lost, or one waits to join, every member calls regroup() at the
// beginning of its step and tells all others, so that nobody waits in a collective for who has left
// it. The lowest member that is there leads: it hears how far each is and names the next
// generation; who has heard of a newer generation than another tells it. Of two who miss each
// other, and whom the leader has both, the one who came earlier stays. A generation is settled when
// all of it have said that they heard the same roster. Invariants: generations grow; a member goes
// on only with more than half of the last generation that it knows to be settled (or half of it
// with its lowest member), not counting who left in peace, so that of a cut group one part at most
// goes on; who has just come counts those alone who had a state.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "runtime/collectives/communicator.hpp"
#include "runtime/collectives/shm_exchange.hpp"
#include "runtime/collectives/tcp_exchange.hpp"
#include "runtime/elastic/roster.hpp"

namespace orrery {

struct GroupSettings {
  std::string gang;  ///< the same for all who belong together, and nobody else
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::string address = "127.0.0.1";  ///< numeric, of this process's machine
  std::string master = "127.0.0.1";   ///< numeric, of rank 0's machine
  std::uint16_t port = 0;             ///< rank 0 listens there; others at the first free from it on
  std::uint16_t ports = 64;
  /// Machines where members may be found by who comes later.
  std::vector<std::string> addresses;
  std::uint32_t members_max = 0;   ///< who comes later waits; 0: any number
  std::uint32_t members_unit = 1;  ///< who comes later waits until they are a multiple of it
  std::uint64_t workspace_bytes = 0;
  std::uint64_t cookie = 0;  ///< random
  bool share_memory = true;  ///< among ranks of one machine
  /// Ranks of one machine that differ in it share no memory, as if they were on two.
  std::string memory_domain;
  /// Asked while nobody gives this process a place: true when nobody will any more.
  std::function<bool()> over;
  /// How long members that live may leave each other without an answer.
  Duration patience = Duration::seconds(60);
  /// How long the first meeting, or the wait for a place, may take.
  Duration meeting = Duration::minutes(5);
};

class MemberGroup {
 public:
  /// Meets the others of the first generation. `step`: done before, by a checkpoint.
  [[nodiscard]] static Result<std::unique_ptr<MemberGroup>> found(const Clock& clock,
                                                                  const GroupSettings& settings,
                                                                  std::uint64_t step);
  /// Asks the living members for a place, and waits until they give one.
  [[nodiscard]] static Result<std::unique_ptr<MemberGroup>> join(const Clock& clock,
                                                                 const GroupSettings& settings);

  [[nodiscard]] const Roster& roster() const { return roster_; }
  [[nodiscard]] std::uint32_t rank() const { return roster_.rank_of(self_); }
  [[nodiscard]] std::uint32_t size() const {
    return static_cast<std::uint32_t>(roster_.members.size());
  }
  [[nodiscard]] MemberId self() const { return self_; }
  /// Each member does with every other.
  [[nodiscard]] bool shares_memory() const {
    return size() > 1 && std::ranges::count(machines_, 0u) == std::ssize(machines_);
  }
  /// By rank: the lowest rank that it shares memory with, itself if none.
  [[nodiscard]] const std::vector<std::uint32_t>& machines() const { return machines_; }
  /// Of the present generation; another one after regroup().
  [[nodiscard]] Communicator& communicator() { return *communicator_; }
  /// Of some of its ranks, ascending, this one among them; not to be used after regroup().
  [[nodiscard]] Communicator among(std::vector<std::uint32_t> ranks) {
    return {*exchange_, std::move(ranks)};
  }
  /// Peers of the same machine read and write it; page-aligned.
  [[nodiscard]] std::span<std::byte> workspace() { return workspace_->bytes(); }

  /// Answers who knocks. True: somebody waits for a place, so the group should regroup.
  [[nodiscard]] bool tend();
  /// How many wait for a place, as far as who leads knows.
  [[nodiscard]] std::size_t waiting() const { return joiners_.size(); }
  /// The next generation; an operation that is pending has met a lost peer then. `step`: whole
  /// steps this member has done; none: it has no state yet. Errors: this member is alone with too
  /// few, or was left out: it ends.
  [[nodiscard]] Status regroup(std::optional<std::uint64_t> step);
  /// Says that this member is done. Nobody misses it.
  void farewell();
  /// As of the settings, from now on.
  void set_patience(Duration patience) { settings_.patience = patience; }

  MemberGroup(const Clock& clock, const GroupSettings& settings, PeerMesh mesh,
              std::unique_ptr<ShmWorkspace> workspace);

 private:
  /// By rank; of the present generation.
  using Reports = std::vector<std::optional<MemberReport>>;

  [[nodiscard]] static Result<std::unique_ptr<MemberGroup>> make(const Clock& clock,
                                                                 const GroupSettings& settings,
                                                                 std::uint32_t first_rank);
  [[nodiscard]] Result<Roster> lead_first_meeting(std::uint64_t step);
  [[nodiscard]] Result<Roster> come_to_first_meeting(std::uint64_t step);
  /// Places are the founders' own; from `open` on anybody may have one.
  struct FirstMeeting {
    std::vector<RosterMember> members;
    Instant open;
  };
  void hear_first_hellos(FirstMeeting& meeting);
  void count_against(const Roster& first);
  [[nodiscard]] Result<Roster> ask_for_place();
  [[nodiscard]] std::optional<Roster> ask_at(const std::string& endpoint, Instant& deadline);
  [[nodiscard]] std::optional<Roster> roster_from(MemberId peer);
  [[nodiscard]] std::vector<std::string> candidates() const;
  void send_askers_away();
  void answer_joiner(const PeerMesh::Stranger& stranger, const MemberHello& hello);
  [[nodiscard]] std::size_t room_beside(std::size_t members) const;
  [[nodiscard]] bool here(MemberId member) const;
  [[nodiscard]] MemberId leader() const;
  [[nodiscard]] Roster agree(std::optional<std::uint64_t> step);
  void miss(MemberId member);
  [[nodiscard]] MemberReport tell_all(std::optional<std::uint64_t> step);
  [[nodiscard]] std::optional<Roster> hear(Reports& reports, std::vector<Roster>& named);
  [[nodiscard]] bool follows(const Roster& next) const;
  [[nodiscard]] bool all_reported(const Reports& reports) const;
  [[nodiscard]] std::vector<bool> who_stays(const Reports& reports) const;
  [[nodiscard]] Roster lead(const Reports& reports);
  [[nodiscard]] bool enough(const Roster& next) const;
  [[nodiscard]] bool enough_of(const Roster& before, const Roster& next) const;
  /// Connects to all of the roster and agrees on how memory is shared; false: somebody was lost.
  [[nodiscard]] bool enter(Roster next);
  [[nodiscard]] bool meet_all();
  void take_in_newcomers();
  [[nodiscard]] bool open_exchange();
  /// `opened`: whose memory is open here, a bit a rank.
  [[nodiscard]] bool settle(ExchangeSeat seat, std::uint64_t opened);
  [[nodiscard]] MemberHello hello(std::optional<MemberId> as,
                                  std::optional<std::uint64_t> step) const;
  void say(MemberId to, MessageKind kind, const std::string& text);

  const Clock& clock_;
  GroupSettings settings_;
  PeerMesh mesh_;
  std::unique_ptr<ShmWorkspace> workspace_;
  MemberId self_ = MemberId::kNobody;
  Roster roster_;
  Roster settled_;                  ///< the newest that all of it have heard, as far as is known
  std::optional<Roster> promised_;  ///< newer, and perhaps settled: this member has said it heard
  std::vector<MemberId> gone_;      ///< of it, in peace
  std::vector<MemberId> missed_;    ///< of the roster: not to be reached, or too long silent
  std::vector<RosterMember> joiners_;  ///< of who leads: connected, and waiting
  std::unique_ptr<PeerExchange> exchange_;
  std::unique_ptr<Communicator> communicator_;
  std::vector<std::uint32_t> machines_;
};

}  // namespace orrery

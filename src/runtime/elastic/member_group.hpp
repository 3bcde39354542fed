// runtime/elastic/member_group.hpp - the processes that take part in a training job now: how they
// find each other, lose members and take in new ones, with no help from the controller.
//
// One per process; used by one thread. A generation is a fixed list of members with a Communicator
// among them. When a member is lost, or a process waits to join, every member calls regroup() at
// the beginning of its step and reports to all others, so that no member waits in a collective for
// one that has left it. The lowest member that is connected leads: it receives the reports and
// names the next generation. A member that knows a newer generation than another sends it the
// roster. Of two members that have lost each other while the leader reaches both, the one that came
// earlier stays. A generation is settled when all its members have confirmed the same roster.
// Invariants: generation numbers grow; a member continues only with more than half of the last
// generation that it knows to be settled (or half of it with its lowest member), not counting
// members that left in peace, so at most one part of a split group continues; a process that has
// just joined counts only members that had a state.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "runtime/collectives/communicator.hpp"
#include "runtime/elastic/roster.hpp"
#include "runtime/exchange/shm_exchange.hpp"
#include "runtime/exchange/tcp_exchange.hpp"

namespace orrery {

struct GroupSettings {
  std::string gang;  ///< equal for all members of the group, and only for them
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::string address = "127.0.0.1";  ///< numeric, of this process's machine
  std::string master = "127.0.0.1";   ///< numeric, of rank 0's machine
  std::uint16_t port = 0;             ///< port of rank 0; others take the first free one from it on
  std::uint16_t ports = 64;
  /// Machines where a process that joins later looks for members.
  std::vector<std::string> addresses;
  std::uint32_t members_max = 0;   ///< processes beyond it wait; 0: any number
  std::uint32_t members_unit = 1;  ///< joiners wait until the group's size is a multiple of it
  std::uint64_t workspace_bytes = 0;
  std::uint64_t cookie = 0;  ///< random
  bool share_memory = true;  ///< among ranks of one machine
  /// Ranks of one machine with different domains share no memory, as if they were on two machines.
  std::string memory_domain;
  /// Called while this process waits for a place: true when no member will give it one any more.
  std::function<bool()> over;
  /// How long a living member may take to answer another.
  Duration patience = Duration::seconds(60);
  /// How long the first meeting, or waiting for a place, may take.
  Duration meeting = Duration::minutes(5);
};

class MemberGroup {
 public:
  /// Meets the other founders of the first generation. `step`: steps already done, from a
  /// checkpoint.
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
  /// Whether each member shares memory with every other.
  [[nodiscard]] bool shares_memory() const {
    return size() > 1 && std::ranges::count(machines_, 0u) == std::ssize(machines_);
  }
  /// The lowest rank that each rank shares memory with, itself if none; indexed by rank.
  [[nodiscard]] const std::vector<std::uint32_t>& machines() const { return machines_; }
  /// The communicator of the present generation; regroup() replaces it.
  [[nodiscard]] Communicator& communicator() { return *communicator_; }
  /// Returns a communicator over some ranks of the generation, ascending, this one among them; not
  /// to be used after regroup().
  [[nodiscard]] Communicator among(std::vector<std::uint32_t> ranks) {
    return {*exchange_, std::move(ranks)};
  }
  /// Memory that peers of the same machine read and write; page-aligned.
  [[nodiscard]] std::span<std::byte> workspace() { return workspace_->bytes(); }

  /// Answers new connections. Returns whether a process waits for a place that is free, so that the
  /// group should regroup.
  [[nodiscard]] bool tend();
  /// Number of processes that wait for a place; known to the leader only.
  [[nodiscard]] std::size_t waiting() const { return joiners_.size(); }
  /// Enters the next generation; pending operations end with PeerLost. `step`: whole steps this
  /// member has done; none: it has no state yet. Errors: too few members are left with this one, or
  /// it was left out; its process must end then.
  [[nodiscard]] Status regroup(std::optional<std::uint64_t> step);
  /// Tells all members that this one is done, so that they do not count it as lost.
  void farewell();
  /// Changes GroupSettings::patience.
  void set_patience(Duration patience) { settings_.patience = patience; }

  MemberGroup(const Clock& clock, const GroupSettings& settings, PeerMesh mesh,
              std::unique_ptr<ShmWorkspace> workspace);

 private:
  /// Reports of the present generation, by rank.
  using Reports = std::vector<std::optional<MemberReport>>;

  [[nodiscard]] static Result<std::unique_ptr<MemberGroup>> make(const Clock& clock,
                                                                 const GroupSettings& settings,
                                                                 std::uint32_t first_rank);
  [[nodiscard]] Result<Roster> lead_first_meeting(std::uint64_t step);
  [[nodiscard]] Result<Roster> come_to_first_meeting(std::uint64_t step);
  /// Places are reserved for the founders; from `open` on any process may get one.
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
  /// Connects to all members of the roster and agrees on how memory is shared. False: a member was
  /// lost.
  [[nodiscard]] bool enter(Roster next);
  [[nodiscard]] bool meet_all();
  void take_in_newcomers();
  [[nodiscard]] bool open_exchange();
  /// `opened`: which ranks' memory is open here, one bit per rank.
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
  Roster settled_;                  ///< the newest roster known to be confirmed by all its members
  std::optional<Roster> promised_;  ///< newer, perhaps settled: this member has confirmed it
  std::vector<MemberId> gone_;      ///< members of settled_ that left in peace
  std::vector<MemberId> missed_;    ///< members of roster_ that are unreachable or silent too long
  std::vector<RosterMember> joiners_;  ///< connected and waiting for a place; the leader's only
  std::unique_ptr<PeerExchange> exchange_;
  std::unique_ptr<Communicator> communicator_;
  std::vector<std::uint32_t> machines_;
};

}  // namespace orrery

// runtime/elastic/roster.hpp - the messages by which members of a group identify themselves, as
// JSON.
//
// Plain values and their texts. A text that is none of these reads as nullopt: its sender is not a
// member.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/exchange/peer_mesh.hpp"
#include "runtime/exchange/shared_segment.hpp"

namespace orrery {

/// The first message on a connection.
struct MemberHello {
  std::string gang;  ///< job, attempt and gang: the same for all members of a group
  /// The sender's id; none: it asks to join.
  std::optional<MemberId> member;
  std::string endpoint;
  SegmentAddress workspace;
  std::optional<std::uint64_t> step;  ///< steps done; none: it has no state yet
};

/// Sent to all: the sender takes part in no collective of this generation any more; how far it is,
/// and which members it has lost.
struct MemberReport {
  std::uint32_t generation = 0;  ///< generation of the newest roster it knows
  std::optional<std::uint64_t> step;
  std::vector<MemberId> lost;
};

struct RosterMember {
  MemberId id = MemberId::kNobody;
  std::string endpoint;
  SegmentAddress workspace;
  std::optional<std::uint64_t> step;  ///< steps it has done; none: it has no state yet
};

/// The members of a generation, by rank. Invariant: generations of a group only grow; the ids are
/// distinct.
struct Roster {
  std::uint32_t generation = 0;
  std::vector<RosterMember> members;
  std::vector<MemberId> gone;  ///< members of the generation before that left in peace

  /// Returns the member's rank, or members.size() if it is not in the roster.
  [[nodiscard]] std::uint32_t rank_of(MemberId id) const;
  [[nodiscard]] bool has(MemberId id) const { return rank_of(id) < members.size(); }
  /// Returns the lowest rank with the most steps done, whose state all members take over.
  [[nodiscard]] std::uint32_t source() const;
  [[nodiscard]] std::uint64_t step() const { return members[source()].step.value_or(0); }
};

[[nodiscard]] std::string to_text(const MemberHello& hello);
[[nodiscard]] std::string to_text(const MemberReport& report);
[[nodiscard]] std::string to_text(const Roster& roster);
[[nodiscard]] std::optional<MemberHello> read_hello(std::span<const std::byte> text);
[[nodiscard]] std::optional<MemberReport> read_report(std::span<const std::byte> text);
[[nodiscard]] std::optional<Roster> read_roster(std::span<const std::byte> text);

}  // namespace orrery

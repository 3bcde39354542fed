// runtime/elastic/roster.hpp - what members of a group tell each other about who they are, as JSON.
//
// Plain values and their texts. A text that is none of these is nullopt: its sender is not one of
// us.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/collectives/peer_mesh.hpp"
#include "runtime/collectives/shared_segment.hpp"

namespace orrery {

/// The first words on a connection.
struct MemberHello {
  std::string gang;  ///< job, attempt and gang: all of a group say the same
  /// Who it is; none: it asks to join.
  std::optional<MemberId> member;
  std::string endpoint;
  SegmentAddress workspace;
  std::optional<std::uint64_t> step;  ///< steps it has done; none: it has no state yet
};

/// To all: this member takes part in no collective of this generation any more, how far it is and
/// whom it misses.
struct MemberReport {
  std::uint32_t generation = 0;  ///< of the newest roster it has
  std::optional<std::uint64_t> step;
  std::vector<MemberId> lost;
};

struct RosterMember {
  MemberId id = MemberId::kNobody;
  std::string endpoint;
  SegmentAddress workspace;
  std::optional<std::uint64_t> step;  ///< steps it has done; none: it has no state yet
};

/// Who goes on, by rank. Invariant: generations of a group only grow; the ids are distinct.
struct Roster {
  std::uint32_t generation = 0;
  std::vector<RosterMember> members;
  std::vector<MemberId> gone;  ///< of the generation before, in peace

  /// Its rank; size() of the members when it is none.
  [[nodiscard]] std::uint32_t rank_of(MemberId id) const;
  [[nodiscard]] bool has(MemberId id) const { return rank_of(id) < members.size(); }
  /// The lowest rank that is farthest; its state is everybody's.
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

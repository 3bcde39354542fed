// control/state/state_codec.hpp - the fields of the state that a snapshot holds, and how a state is
// made of them; for the sources of control/state/snapshot.hpp alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "control/codec/encoder.hpp"
#include "control/state/state.hpp"
#include "fleet/fleet_map.hpp"

namespace orrery {

/// A command that was answered; ordered by age.
struct Remembered {
  Instant at;
  std::string request;
  JobId job;
};

struct Limits {
  std::optional<Watts> cap;
  std::optional<Watts> supply;
};

/// The parts of the state that are behind an interface, in a form that can be encoded.
struct Parts {
  std::vector<Remembered> requests;
  std::vector<std::pair<LinkId, LinkState>> links;  ///< all that differ from a new link
  std::vector<Limits> limits;                       ///< by power domain
  std::vector<double> recent;                       ///< by tenant, then type, all types last
  std::vector<PlanKey> plans;
};

/// Fields with an entry for each node or type, and lists of nodes, as a changed fleet has them.
struct OfFleet {
  std::vector<NodeRecord> nodes;
  std::map<std::uint32_t, Maintenance> maintenance;
  std::vector<float> risk;
  std::vector<Reservation> slots;
  std::vector<DeviceUse> idle;
  Ledger ledger;
  std::vector<Claim> claims;
};

/// Defines the fields that are encoded, and therefore compared by the checksum.
class StateCodec {
 public:
  template <class Codec, SameStruct<State> S>
  static void code(Codec& codec, S& s);
  /// `of_fleet` holds references to the fields of OfFleet.
  template <class Codec, SameStruct<State> S, class OfFleetFields>
  static void code(Codec& codec, S& s, const OfFleetFields& of_fleet);

  /// Writes the fields and parts as those of a fleet that has changed to that of `next`.
  static void encode_changed(const State& state, const FleetMap& map, const ControlSetup& next,
                             Encoder& out);
  /// Removes nodes that are not there any more from the history of jobs, and counts the numbers of
  /// added ones.
  static void finish_change(State& state, std::size_t added);
  /// Numbers nodes as a fleet that never changed does.
  static void number_nodes(State& state);

  static Parts parts_of(const State& state);
  /// Assigns a sum over all types to the one type, in a fleet that has only one.
  static void lay_sums_at_the_type(State& state);
  static Status make_again(State& state, const Parts& parts);

 private:
  static OfFleet changed_fields(const State& state, const FleetMap& map, const ControlSetup& next);
  static Ledger changed_ledger(const State& state, const FleetMap& map, const ControlSetup& next);
  static Parts changed_parts(const State& state, const FleetMap& map, const ControlSetup& next);
  static Status make_settings(State& state);
  static Status check(const State& state, const Parts& parts);
  static void make_queue(State& state);
  static void make_fleet(State& state, const Parts& parts);
  static void make_usage(State& state, const Parts& parts);
  static Status make_plans(State& state, const Parts& parts);
};

}  // namespace orrery

// twin/faults/fault.hpp - one thing that goes wrong: what, where, when, how it is noticed and for
// how long.
//
// A value, drawn by twin/faults/failure_model.hpp. Its receiver decides what follows from it (which
// jobs stop, which links take over).
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "base/time.hpp"
#include "fleet/ids.hpp"
#include "fleet/network/fabric.hpp"
#include "hardware/reliability.hpp"

namespace orrery {

/// A switch of one of the fleet's fabrics.
struct SwitchPlace {
  FabricId fabric;
  SwitchIndex at;

  friend bool operator==(const SwitchPlace&, const SwitchPlace&) = default;
};

/// What is hit: a node, an accelerator, a link, a switch, a rack (its domain), or all that hangs
/// below a power domain (UPS, cooling loop).
using FaultScope = std::variant<NodeId, DeviceId, LinkId, SwitchPlace, DomainId, PowerDomainId>;

enum class Remedy : std::uint8_t {
  kTransient,  ///< passes by itself, with a reset or a reboot
  kRepair,     ///< needs a repair or parts: drain the node
};

struct Fault {
  Instant at;
  FaultKind kind = FaultKind::kHost;
  FaultScope scope;
  Remedy remedy = Remedy::kTransient;
  Duration detection;         ///< from `at` until it is known
  Duration repair;            ///< from then until the hardware works again
  double slowdown = 1;        ///< time of the same work over the usual time; 1: nothing works
  std::string_view evidence;  ///< the path of detection; lives as long as the catalog

  [[nodiscard]] Instant known_at() const { return at + detection; }
  [[nodiscard]] Instant over_at() const { return at + detection + repair; }
  /// Whether it is ever repaired, or passes.
  [[nodiscard]] bool is_over_some_day() const { return repair != Duration::max(); }

  friend bool operator==(const Fault&, const Fault&) = default;
};

/// Whether a node that it strikes takes no work until the fault is over; a restart of a daemon does
/// not take the node.
[[nodiscard]] inline bool takes_node(const Fault& fault) {
  if (fault.remedy == Remedy::kRepair) return true;
  return fault.kind != FaultKind::kSoftware && fault.kind != FaultKind::kNetwork &&
         fault.kind != FaultKind::kFailSlow;
}

/// Whether the nodes that it strikes fall silent with all that runs there: their heartbeats are
/// missing, and the state of their ranks is unknown. Other faults are reported by the node itself,
/// which goes on; faults of the fabric too, as agents report over another network.
[[nodiscard]] inline bool silences_nodes(const Fault& fault) {
  return fault.kind == FaultKind::kHost || fault.kind == FaultKind::kMaintenance ||
         fault.kind == FaultKind::kPdu || fault.kind == FaultKind::kUps ||
         fault.kind == FaultKind::kCoolingUnit;
}

}  // namespace orrery

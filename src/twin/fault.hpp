// twin/fault.hpp - one thing that goes wrong: what, where, when, how it is noticed and for how
// long.
//
// A value, drawn by twin/failure_model.hpp. What follows from it (which jobs stop, which links take
// over) is for whoever receives it.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "base/time.hpp"
#include "fleet/fabric.hpp"
#include "fleet/ids.hpp"
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
  kRepair,     ///< waits for hands or parts: drain it
};

struct Fault {
  Instant at;
  FaultKind kind = FaultKind::kHost;
  FaultScope scope;
  Remedy remedy = Remedy::kTransient;
  Duration detection;         ///< from `at` until it is known
  Duration repair;            ///< from then until the thing works again
  double slowdown = 1;        ///< time of the same work over the usual time; 1: nothing works
  std::string_view evidence;  ///< the path of detection; lives as long as the catalog

  [[nodiscard]] Instant known_at() const { return at + detection; }
  [[nodiscard]] Instant over_at() const { return at + detection + repair; }
  /// Whether it is ever mended, or passes.
  [[nodiscard]] bool is_over_some_day() const { return repair != Duration::max(); }

  friend bool operator==(const Fault&, const Fault&) = default;
};

/// Whether a node that it strikes takes no work until it is over: a restarted daemon needs no new
/// node.
[[nodiscard]] inline bool takes_node(const Fault& fault) {
  if (fault.remedy == Remedy::kRepair) return true;
  return fault.kind != FaultKind::kSoftware && fault.kind != FaultKind::kNetwork &&
         fault.kind != FaultKind::kFailSlow;
}

/// Whether the nodes that it strikes fall silent with all that runs there: their heartbeats are
/// missing, and what is left of their ranks nobody can say. Of the rest a node that goes on tells;
/// so it is of the fabric's faults, for agents are heard over another network.
[[nodiscard]] inline bool silences_nodes(const Fault& fault) {
  return fault.kind == FaultKind::kHost || fault.kind == FaultKind::kMaintenance ||
         fault.kind == FaultKind::kPdu || fault.kind == FaultKind::kUps ||
         fault.kind == FaultKind::kCoolingUnit;
}

}  // namespace orrery

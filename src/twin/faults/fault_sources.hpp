// twin/faults/fault_sources.hpp - all sources of faults in a fleet, each with its own stream of
// random numbers.
//
// A node is a source, and so is a domain that has bursts, a rack, a UPS, a cooling loop. The links
// and the switches of a fabric, being many and alike, share one source for each component. A stream
// is named after its source, so the faults of a part do not change when the fleet grows elsewhere.
// Built by fault_sources_of. 88 bytes a source.
#pragma once

#include <cstdint>
#include <vector>

#include "base/numbers/rng.hpp"
#include "base/time.hpp"
#include "fleet/topology.hpp"
#include "twin/faults/fault_law.hpp"

namespace orrery {

struct FaultSource {
  enum class Kind : std::uint8_t {
    kNode,         ///< `index` its NodeId
    kBurst,        ///< of domain `index`, by bursts[burst]
    kSlowNodes,    ///< any node of the fleet
    kPortLinks,    ///< from a port to its leaf, of fabric `index`
    kSwitchLinks,  ///< between switches, one cable of many
    kLinks,        ///< any of fabric `index`
    kSwitches,     ///< of fabric `index`
    kRack,         ///< `index` its DomainId
    kPower,        ///< `index` its PowerDomainId
  };

  Kind kind = Kind::kNode;
  FaultKind fault = FaultKind::kHost;  ///< of kinds other than kNode and kBurst
  std::uint16_t burst = 0;
  std::uint16_t cables_max = 1;  ///< of one link between switches
  std::uint32_t index = 0;
  double rate = 0;  ///< events a second, more than 0
  Rng rng;
  Instant busy_until;  ///< of a node: when its last fault is over
};

/// Returns the sources with a rate above 0. Cost: O(nodes + domains + links).
[[nodiscard]] std::vector<FaultSource> fault_sources_of(const Topology& topology,
                                                        const FailureSpec& spec,
                                                        const FaultLaw& law, std::uint64_t seed);

}  // namespace orrery

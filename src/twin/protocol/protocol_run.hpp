// twin/protocol/protocol_run.hpp - one seed of the protocol: a small fleet, a few jobs, about a
// hundred faults, then a calm phase, in which everything has to finish.
//
// The seed determines everything. docs/campaigns.md lists the long runs.
#pragma once

#include <array>

#include "twin/protocol/protocol_world.hpp"

namespace orrery {

inline constexpr std::size_t kProtocolNodesMin = 3;

/// Fleets of 3 to 6 nodes, made once for any number of seeds.
class ProtocolSites {
 public:
  /// The catalog must outlive them.
  [[nodiscard]] static Result<ProtocolSites> make(const Catalog& catalog);

  /// Precondition: 3 to 6 nodes.
  [[nodiscard]] const ProtocolSite& of(std::size_t nodes) const {
    return *sites_[nodes - kProtocolNodesMin];
  }

 private:
  std::array<std::unique_ptr<ProtocolSite>, 4> sites_;
};

struct ProtocolRun {
  std::string failure;        ///< the first promise that was broken; empty: none
  std::uint64_t history = 0;  ///< hash of all durable events
  std::uint64_t faults = 0;   ///< faults except those of the network
  std::uint64_t crashes = 0;  ///< of the controller
  std::uint64_t events = 0;   ///< durable
};

/// Which seeds have a resource manager that lends some of the nodes.
enum class Lenders : std::uint8_t { kNone, kSome, kAll };

/// In kSome, one seed in three has a manager.
[[nodiscard]] ProtocolRun run_protocol(const ProtocolSites& sites, std::uint64_t seed,
                                       Lenders lenders = Lenders::kSome,
                                       const ProtocolWorld::Trace& trace = {});

}  // namespace orrery

// scheduler/place/pristine_fleet.hpp - a fleet as it was built: every node ready, every device
// free. What does not fit here never fits.
//
// The placers of the live fleet decide here too, so no job is called possible that they could not
// place. Made once for a topology; keeps its verdicts. One thread. Cost: a copy of the topology; a
// verdict is a placement the first time, then O(log gangs asked about).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fleet/fleet.hpp"
#include "scheduler/place/job_placer.hpp"

namespace orrery {

class PristineFleet {
 public:
  explicit PristineFleet(const Topology& topology);
  PristineFleet(const PristineFleet&) = delete;
  PristineFleet& operator=(const PristineFleet&) = delete;

  [[nodiscard]] const Topology& topology() const { return fleet_.topology(); }
  [[nodiscard]] const PlaceTree& tree() const { return tree_; }
  [[nodiscard]] FleetView view() const { return fleet_.view(); }

  /// Why one gang never fits (why_never, scheduler/forecast/why_never.hpp); no value if it fits.
  /// Valid as long as this object.
  [[nodiscard]] const std::optional<std::string>& refusal(const GangRequest& gang);

  /// Whether the gang fits, without a reason and without keeping the verdict.
  [[nodiscard]] bool fits(const GangRequest& gang);

  /// Whether all gangs of the job fit at once, each role on one of its types, at its smallest size
  /// there. With many types in many roles, 64 combinations are tried; beyond that the answer is
  /// yes.
  [[nodiscard]] bool fits_together(const JobRequest& job);

 private:
  /// What fits_together() needs of a role: gangs, their spread, its smallest options.
  struct Gangs {
    std::uint32_t count = 1;
    std::optional<std::pair<TopologyLevel, std::uint32_t>> spread;
    std::vector<GangRequest> options;

    friend auto operator<=>(const Gangs&, const Gangs&) = default;
  };

  [[nodiscard]] static Gangs gangs_of_role(const RoleRequest& role);
  [[nodiscard]] bool place_together(const std::vector<Gangs>& roles);

  Fleet fleet_;
  PlaceTree tree_;
  JobPlacer placer_;
  std::map<GangRequest, std::optional<std::string>> refusals_;
  std::map<std::vector<Gangs>, bool> together_;
};

}  // namespace orrery

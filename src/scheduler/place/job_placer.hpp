// scheduler/place/job_placer.hpp - places a job: all gangs of all its roles, or none.
//
// The role with the largest gangs is placed first; the others go as near to it as they fit, level
// by level. Gangs of one role keep the distance that its `spread` requests. Pure in its inputs;
// keeps scratch memory. One thread.
#pragma once

#include <functional>

#include "scheduler/place/place_try.hpp"
#include "scheduler/place/placer.hpp"
#include "scheduler/place/trial.hpp"
#include "scheduler/request/request.hpp"

namespace orrery {

struct JobPlaceRules {
  NodeFit fit = NodeFit::kBest;
  std::uint16_t share_max = kWholeDevice;
  /// Placed gangs of the job's array that count for the `spread` of its role.
  std::vector<PlacedGang> siblings = {};
  /// Whether the job may have so many devices of the type in all; empty: any number.
  std::function<bool(FleetTypeId, std::uint32_t)> may_take;
};

using GangsOrRefusal = tl::expected<std::vector<PlacedGang>, Refusal>;

/// The number of gangs of all roles.
[[nodiscard]] std::uint32_t gangs_of(const JobRequest& job);

/// The gangs that count for the `spread` of a role.
struct SpreadOver {
  std::uint32_t role = 0;                ///< index
  std::span<const PlacedGang> placed;    ///< gangs of the job; those of other roles do not count
  std::span<const PlacedGang> siblings;  ///< gangs of other jobs, which all count
};

/// The places where further gangs of the role may not go.
[[nodiscard]] std::vector<NodeRun> avoided_by_spread(const PlaceTree& tree, const RoleRequest& role,
                                                     const SpreadOver& over);

/// A lower bound of the devices that a gang lacks if `free` of its type are free in all; 0: perhaps
/// none.
[[nodiscard]] std::uint32_t devices_missing(const Topology& topology, const GangRequest& gang,
                                            FreeCount free);

class JobPlacer {
 public:
  explicit JobPlacer(const PlaceTree& tree) : placer_(tree) {}

  [[nodiscard]] Placer& placer() { return placer_; }

  /// Places every gang with the first of its role's options that fits. The refusal is that of the
  /// option that came closest.
  [[nodiscard]] GangsOrRefusal place(const FleetView& view, const JobRequest& job,
                                     const JobPlaceRules& rules);

  /// Whether place() would find room. Works like Placer::fits() for a job of one gang without
  /// siblings, else like place().
  [[nodiscard]] bool fits(const FleetView& view, const JobRequest& job, const JobPlaceRules& rules);

  /// Whether free devices are enough for each role by itself; nothing else is checked.
  [[nodiscard]] bool may_fit(const JobRequest& job, const PlaceTry::Free& free) const;

  /// Roles in the order in which they are placed.
  [[nodiscard]] static std::vector<std::uint32_t> order_of(const JobRequest& job);

 private:
  using GangOrRefusal = tl::expected<PlacedGang, Refusal>;

  /// The gang to place now.
  struct Next {
    const JobRequest* job;
    std::uint32_t role;
    std::span<const PlacedGang> placed;  ///< gangs of the job placed so far
    PlaceOptions options;
  };

  [[nodiscard]] static std::uint32_t held(const Next& next, FleetTypeId type);
  [[nodiscard]] GangOrRefusal place_gang(const FleetView& view, const Next& next,
                                         const JobPlaceRules& rules);
  [[nodiscard]] GangOrRefusal place_near(const FleetView& view, Next next, NodeId anchor,
                                         const JobPlaceRules& rules);

  Placer placer_;
  Trial trial_;
};

/// Makes a PlaceTry of a job under rules. Placer and job must outlive it.
[[nodiscard]] PlaceTry place_try(JobPlacer& placer, const JobRequest& job, JobPlaceRules rules);

}  // namespace orrery

// scheduler/reserved.hpp - devices kept for jobs that start later, and whom they keep out.
//
// A view of the fleet without them (`shadow`) lets other jobs be placed where they delay nobody; a
// job that ends before a slot begins may use its devices all the same. Belongs to one pass.
#pragma once

#include <span>
#include <vector>

#include "scheduler/placed_gang.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

class Reserved {
 public:
  explicit Reserved(FleetView view) : shadow_(view) {}

  /// Nothing is reserved in `now`, which must stay as it is while the shadow is used, but for
  /// cover(). O(pages + slots of before).
  void reset(FleetView now);

  void add(const Reservation& reservation);
  [[nodiscard]] bool any() const { return !slots_.empty(); }

  /// The fleet without reserved devices.
  [[nodiscard]] FleetView shadow() const { return shadow_.view(); }
  /// Takes what a job got out of the shadow too.
  void cover(std::span<const PlacedGang> gangs);

  /// Whether another job's slot begins before `end` on one of the devices. O(nodes + slots there).
  [[nodiscard]] bool delays(std::span<const PlacedGang> gangs, Instant end, JobId of) const;

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  struct Slot {
    JobId job;
    Instant start;
    NodeDevices at;
    std::uint32_t next = kNone;  ///< on the same node
  };

  void hide(const NodeDevices& at);

  FleetOverlay shadow_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> first_;  ///< slot, by node
};

}  // namespace orrery

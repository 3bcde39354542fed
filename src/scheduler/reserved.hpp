// scheduler/reserved.hpp - devices kept for jobs that start later, and whom they keep out.
//
// A view of the fleet without them (`shadow`) lets other jobs be placed where they delay nobody; a
// job that ends before a slot begins may use its devices all the same. How many devices slots keep
// (`kept`) tells without a look for places that a job has none. Belongs to one pass.
#pragma once

#include <span>
#include <vector>

#include "scheduler/placed_gang.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

class Reserved {
 public:
  explicit Reserved(FleetView view) : now_(view), shadow_(view), beside_(view) {}

  /// Nothing is reserved in `now`, which must stay as it is while this is used, but for cover(). No
  /// view that is asked about later may have room where `now` has none. O(slots of before).
  void reset(FleetView now);

  void add(const Reservation& reservation);
  /// From then on nobody may be on the nodes.
  void close(const Closure& closure);
  [[nodiscard]] bool any() const { return any_; }
  /// Whether a job has a slot. O(log jobs that have one).
  [[nodiscard]] bool has(JobId job) const;

  /// The fleet without reserved devices. O(pages + slots) where nobody looked before.
  [[nodiscard]] FleetView shadow();
  /// What is free now but for what other jobs' slots keep that begin before `end`: who is placed
  /// there and ends by then delays nobody. Valid until the next call that is not const, and an edit
  /// of what was free. O(pages + slots).
  [[nodiscard]] FleetView beside(FleetView free, JobId of, Instant end);
  /// Whether a view is shadow().
  [[nodiscard]] bool shows(const FleetView& view) const {
    return built_ && view.pages().nodes == shadow_.view().pages().nodes;
  }
  /// Takes what a job got out of the shadow too.
  void cover(std::span<const PlacedGang> gangs);

  /// Whether another job's slot begins before `end` on one of the devices. O(nodes + slots there).
  [[nodiscard]] bool delays(std::span<const PlacedGang> gangs, Instant end, JobId of) const;

  /// Devices of a type, free in `now`, that slots keep which begin before `end`, and nodes that are
  /// free altogether but for these. O(starts); after an add() O(nodes x slots there) of it.
  [[nodiscard]] FreeCount kept(FleetTypeId type, Instant end);

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  struct Slot {
    JobId job;
    Instant start;
    NodeDevices at;
    std::uint32_t next = kNone;  ///< on the same node
  };

  /// What is kept of a type from then on that was not before; counts wrap.
  struct Kept {
    Instant start;
    FreeCount count;
  };

  void add(JobId job, Instant start, std::span<const NodeDevices> nodes);
  void count(const Slot& slot, std::span<const Slot> before);
  [[nodiscard]] FreeCount& kept_from(FleetTypeId type, Instant start);

  FleetView now_;
  FleetOverlay shadow_;  ///< once built
  FleetOverlay beside_;
  bool any_ = false;
  bool built_ = false;
  std::vector<NodeDevices> hidden_;      ///< scratch: what an overlay is to hide
  std::vector<Slot> slots_;              ///< on nodes where it leaves somebody less
  std::vector<JobId> jobs_;              ///< that have slots, ascending
  std::vector<std::uint32_t> first_;     ///< slot, by node
  std::vector<std::vector<Kept>> kept_;  ///< by type, ascending starts
  std::size_t counted_ = 0;              ///< of slots_, in kept_
};

}  // namespace orrery

// scheduler/forecast/reserved.hpp - devices kept for jobs that start later, and which jobs they
// keep out.
//
// A view of the fleet without them (`shadow`) lets other jobs be placed where they delay no
// reserved job; a job that ends before a reservation begins may still use its devices. The number
// of devices that reservations keep (`kept`) shows that there is no place for a job without
// searching for one. Belongs to one pass.
#pragma once

#include <span>
#include <vector>

#include "scheduler/request/placed_gang.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

class Reserved {
 public:
  explicit Reserved(FleetView view) : now_(view), shadow_(view), beside_(view) {}

  /// Removes all reservations. `now` must stay unchanged while this object is used, except through
  /// cover(). No view that is queried later may have room where `now` has none. O(nodes reserved
  /// before).
  void reset(FleetView now);

  void add(const Reservation& reservation);
  /// No job may be on the nodes from Closure::from on.
  void close(const Closure& closure);
  [[nodiscard]] bool any() const { return any_; }
  /// Whether a job has a reservation. O(log jobs that have one).
  [[nodiscard]] bool has(JobId job) const;

  /// The fleet without reserved devices. O(pages + nodes reserved) on the first call.
  [[nodiscard]] FleetView shadow();
  /// The free devices of `free` without those that reservations of jobs other than `of` keep from
  /// before `end`: a job that is placed there and ends by `end` delays none of these. Valid until
  /// the next call that is not const, or an edit of `free`. O(pages + nodes reserved).
  [[nodiscard]] FleetView beside(FleetView free, JobId of, Instant end);
  /// Whether a view is shadow().
  [[nodiscard]] bool shows(const FleetView& view) const {
    return built_ && view.pages().nodes == shadow_.view().pages().nodes;
  }
  /// Removes what a job was given from the shadow too.
  void cover(std::span<const PlacedGang> gangs);

  /// Whether another job's reservation begins before `end` on one of the devices. O(nodes +
  /// reservations there).
  [[nodiscard]] bool delays(std::span<const PlacedGang> gangs, Instant end, JobId of) const;

  /// Devices of a type that are free in `now` and kept by reservations that begin before `end`, and
  /// nodes that are entirely free except for these; for a job without end none are counted where
  /// nodes are lent for a time. O(starts); after an add() O(nodes x
  /// reservations there) of it.
  [[nodiscard]] FreeCount kept(FleetTypeId type, Instant end);

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  /// The part of a reservation on one node.
  struct Slot {
    JobId job;
    Instant start;
    NodeDevices at;
    std::uint32_t next = kNone;  ///< next slot on the same node
    bool loan = false;           ///< of Closure::loan: jobs without end may be there
  };

  /// Devices of a type that are kept from `start` on and were not before; counts wrap.
  struct Kept {
    Instant start;
    FreeCount count;
  };

  void add(const Slot& slot, std::span<const NodeDevices> nodes);
  /// Whether a job that ends by `end` must be off the slot's devices.
  [[nodiscard]] static bool binds(const Slot& slot, Instant end) {
    return slot.start < end && !(slot.loan && end == Instant::max());
  }
  void count(const Slot& slot, std::span<const Slot> before);
  [[nodiscard]] FreeCount& kept_from(FleetTypeId type, Instant start);

  FleetView now_;
  FleetOverlay shadow_;  ///< valid once built_
  FleetOverlay beside_;
  bool any_ = false;
  bool loans_ = false;  ///< some slot is a loan
  bool built_ = false;
  std::vector<NodeDevices> hidden_;      ///< scratch: what an overlay has to hide
  std::vector<Slot> slots_;              ///< those that reduce what other jobs may use
  std::vector<JobId> jobs_;              ///< jobs that have reservations, ascending
  std::vector<std::uint32_t> first_;     ///< first slot, by node
  std::vector<std::vector<Kept>> kept_;  ///< by type, ascending starts
  std::size_t counted_ = 0;              ///< number of slots_ that are counted in kept_
};

}  // namespace orrery

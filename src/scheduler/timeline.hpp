// scheduler/timeline.hpp - where and when a job that cannot start now can: free devices of the
// future, as far as the ends of running jobs and earlier reservations tell.
//
// Time is cut into slices: the first begins now, each later one where a running gang is expected to
// end, more of them in the near future than in the far. A gang's devices are free from the first
// slice that begins at its end or later. Slices are overlays, each on the one before, and never
// edited again. A reservation is entered into no slice: a *window* is the overlay of a slice that
// lacks what reservations hold in any slice from that one to a last one, so it shows just the
// devices a job may have that starts there and ends then. Slices and windows are built when
// somebody looks, and their memory is used again by the next pass.
//
// Belongs to one pass at a time; one thread. Memory: slices^2 / 2 overlays at most, a page of each
// for what differs.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/time.hpp"
#include "fleet/view.hpp"
#include "scheduler/place_try.hpp"
#include "scheduler/request.hpp"
#include "scheduler/situation.hpp"
#include "scheduler/trial.hpp"

namespace orrery {

/// A running gang that gives its devices back.
struct Ending {
  const Allocation* allocation = nullptr;
  HostNeeds host;  ///< of one rank
  Instant end;     ///< expected; max: never
};

/// When and where a job can start.
struct Slot {
  Instant start;
  std::vector<PlacedGang> gangs;
};

struct SlotWish {
  Duration length;
  ClassId class_id;  ///< jobs that any attempt places alike; invalid: like no other
};

class Timeline {
 public:
  static constexpr std::uint32_t kSlices = 24;

  explicit Timeline(std::uint32_t slices_max = kSlices);

  /// Begins anew. `fleet` must stay as it is, and the allocations valid, while the timeline is
  /// used; what starts meanwhile is reserved from `now` on. An end that is not after `now` counts
  /// as a second from it. O(n log n + nodes).
  void open(FleetView fleet, Instant now, std::span<const Ending> running);

  /// When each slice begins, ascending.
  [[nodiscard]] std::span<const Instant> slices() const { return begins_; }

  /// The first slice at whose beginning the job can start without disturbing a reservation, and its
  /// devices there. The first ask of a class costs O(log slices) attempts to learn from when on the
  /// fleet could hold it at all. Then O(log slices) for each stretch of time that is too full, at
  /// most one a slice and length; a window that failed a class, or a wider one, is not tried again.
  /// Where too few devices are free in all, that is counted, O(nodes reserved), and no window is
  /// made. One placement, in the slot.
  [[nodiscard]] std::optional<Slot> earliest(const PlaceTry& job, const SlotWish& wish);

  /// Keeps the slot's devices from its start for `length`; devices that somebody else has by then
  /// stay his. Precondition: the start is that of a slice. O(nodes of the gangs).
  void reserve(const Slot& slot, Duration length);

  /// Keeps nodes from everybody between two instants, as far as slices tell them apart.
  void close(const Closure& closure);

  /// The fleet now without devices that are reserved before `until`: what is placed here and ends
  /// by then delays nobody. Valid until the next call that is not const. Cost: what was reserved
  /// since the last look.
  [[nodiscard]] FleetView shadow(Instant until);

  /// Whether a job that starts now with these gangs and ends at `until` would take what a
  /// reservation needs before. O(nodes of the gangs), and what shadow(until) costs.
  [[nodiscard]] bool delays(std::span<const PlacedGang> gangs, Instant until);

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  /// Times that what is reserved is counted for a window before it is made: that takes some ten
  /// times as long, but only once.
  static constexpr std::uint8_t kCounts = 4;

  /// Slices `first` to `last`, both included.
  struct Stretch {
    std::uint32_t first = 0;
    std::uint32_t last = 0;

    [[nodiscard]] bool meets(const Stretch& other) const {
      return first <= other.last && other.first <= last;
    }
  };

  /// Devices of some nodes that are reserved alike.
  struct Hold {
    Stretch slices;
    HostNeeds host;
    std::uint16_t share = kWholeDevice;
    std::uint32_t first_entry = 0;
    std::uint32_t end_entry = 0;
  };
  struct Entry {
    std::uint32_t hold = 0;
    std::uint32_t next = kNone;  ///< on the same node
  };
  struct Window {
    explicit Window(FleetView base) : fleet(base) {}

    FleetOverlay fleet;
    Stretch slices;
    std::uint32_t entered = 0;  ///< of holds_
  };
  struct ClassRow {
    std::uint32_t pass = 0;  ///< of which the row is
    std::uint32_t row = 0;
  };

  void cut(Instant now);
  [[nodiscard]] std::uint32_t slice_of(Instant begin) const;
  /// The last slice that begins before `end`, `from` at least.
  [[nodiscard]] std::uint32_t last_before(Instant end, std::uint32_t from) const;

  /// A slice without reservations.
  [[nodiscard]] FleetView unreserved(std::uint32_t slice);
  [[nodiscard]] FleetView window(Stretch slices);
  /// The shortest stretch whose window is the same, and where it is in window_at_.
  [[nodiscard]] Stretch shortest(Stretch slices) const;
  [[nodiscard]] std::size_t index_of(Stretch slices) const {
    return slices.first * begins_.size() + slices.last;
  }
  void enter(const Hold& hold, Window& window);
  void hide_share(const NodeDevices& at, Window& window);
  void raise_host_use(const Stretch& slices, NodeId node, NodeState& state);
  void hold(const Hold& like, std::span<const NodeDevices> nodes);
  void note_start(std::uint32_t first);

  /// Calls see(slice) for the slices of a stretch in which use of a node may be highest.
  template <class See>
  void for_each_peak(const Stretch& slices, NodeId node, See&& see) const;
  /// Calls see(devices, hold) for what is reserved on a node in a slice.
  template <class See>
  void for_each_entry(NodeId node, std::uint32_t slice, See&& see) const;

  [[nodiscard]] std::span<std::uint16_t> row_of(const PlaceTry& job, ClassId id);
  [[nodiscard]] std::uint32_t add_row(const PlaceTry& job);
  /// Notes in `failed` where it does not.
  [[nodiscard]] bool fits_in(Stretch slices, const PlaceTry& job, std::span<std::uint16_t> failed);
  /// Likewise, by what is free in all; where the window is there, or was counted often, yes.
  [[nodiscard]] bool may_fit_in(Stretch slices, const PlaceTry& job,
                                std::span<std::uint16_t> failed);
  static void note_failed(Stretch slices, std::span<std::uint16_t> failed);
  /// Of the devices that are free in the first of these slices, what is reserved in any, by type.
  void count_held(Stretch slices);

  std::uint32_t slices_max_;
  std::uint32_t pass_ = 0;
  std::optional<FleetView> now_;
  std::vector<Ending> endings_;       ///< by end; those that never end left out
  std::vector<Instant> begins_;       ///< by slice
  std::vector<std::uint32_t> ended_;  ///< by slice: of endings_, so many are over

  std::deque<FleetOverlay> slices_;  ///< by slice
  std::uint32_t built_ = 0;          ///< of slices_, in this pass
  std::deque<Window> windows_;
  std::uint32_t windows_used_ = 0;        ///< in this pass
  std::vector<std::uint32_t> window_at_;  ///< by first and last slice
  std::vector<std::uint8_t> counts_;      ///< likewise: so often it was counted instead

  std::vector<Hold> holds_;
  std::vector<NodeDevices> held_;           ///< by all holds, one after the other
  std::vector<Entry> entries_;              ///< of each of them
  std::vector<std::uint32_t> first_entry_;  ///< by node
  std::vector<std::uint32_t> last_start_;   ///< by slice: where a hold last began, up to here

  std::vector<ClassRow> classes_;
  /// By row and slice: a window from this slice to that one, and so any longer one, is too small.
  std::vector<std::uint16_t> failed_;
  Trial trial_;

  /// Devices of a node that count_held() has counted.
  struct Counted {
    std::uint32_t call = 0;  ///< of it
    std::uint64_t devices = 0;
  };
  std::vector<Counted> counted_;  ///< by node
  std::uint32_t count_ = 0;       ///< calls of count_held()
  std::vector<FreeCount> taken_;  ///< by type: what it found
};

}  // namespace orrery

// scheduler/forecast/timeline.hpp - where and when a job that cannot start now can start: future
// free devices, as far as they follow from the ends of running jobs and earlier reservations.
//
// Time is cut into slices: the first begins now, each later one where a running gang is expected to
// end or a closed node to take jobs again, with more of them in the near future than in the far. A
// gang's devices are free from the first slice that begins at its end or later. Slices are
// overlays, each on the one before, and are never edited again. A reservation is not entered into
// any slice: a *window* is the overlay of a slice without what reservations hold in any slice from
// that one to a last one, so it shows exactly the devices available to a job that starts there and
// ends then. Slices and windows are built on demand, and their memory is reused by the next pass.
//
// Belongs to one pass at a time; one thread. Memory: at most slices^2 / 2 overlays, with a page
// each for what differs.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/time.hpp"
#include "fleet/view.hpp"
#include "scheduler/place/place_try.hpp"
#include "scheduler/place/trial.hpp"
#include "scheduler/request/request.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

/// A running gang that gives its devices back, or a closed node that takes jobs again.
struct Ending {
  const Allocation* allocation = nullptr;  ///< nullptr: `node` takes jobs again
  HostNeeds host;                          ///< needs of one rank
  Instant end;                             ///< expected end; max: never
  NodeId node;
};

/// When and where a job can start.
struct Slot {
  Instant start;
  std::vector<PlacedGang> gangs;
};

struct SlotWish {
  Duration length;
  ClassId class_id;  ///< jobs that any attempt places alike; invalid: the job is like no other
};

class Timeline {
 public:
  static constexpr std::uint32_t kSlices = 24;

  explicit Timeline(std::uint32_t slices_max = kSlices);

  /// Starts a new pass. `fleet` must stay unchanged, and the allocations valid, while the timeline
  /// is used; jobs that start meanwhile are reserved from `now` on. An end that is not after `now`
  /// counts as one second after it. O(n log n + nodes).
  void open(FleetView fleet, Instant now, std::span<const Ending> running);

  /// When each slice begins, ascending.
  [[nodiscard]] std::span<const Instant> slices() const { return begins_; }

  /// Returns the first slice at whose beginning the job can start without disturbing a reservation,
  /// and its devices there. The first call for a class takes O(log slices) attempts to find when
  /// the fleet could first hold it at all. After that it takes O(log slices) for each stretch of
  /// time that is too full, at most one for each slice and length; a window that failed for a
  /// class, or a wider one, is not tried again. If too few devices are free in total, counting
  /// shows that, O(nodes reserved), and no window is made. One placement, in the slot.
  [[nodiscard]] std::optional<Slot> earliest(const PlaceTry& job, const SlotWish& wish);

  /// Keeps the slot's devices from its start for `length`; devices that another job has by then
  /// stay with it. Precondition: the start is that of a slice. O(nodes of the gangs).
  void reserve(const Slot& slot, Duration length);

  /// Keeps all jobs off nodes between two instants, with the resolution of slices.
  void close(const Closure& closure);

  /// The fleet now without devices that are reserved before `until`: a job that is placed here and
  /// ends by then delays no reservation. Valid until the next call that is not const. Cost: what
  /// was reserved since the last call.
  [[nodiscard]] FleetView shadow(Instant until);

  /// Whether a job that starts now with these gangs and ends at `until` would take devices that a
  /// reservation needs before that. O(nodes of the gangs), and what shadow(until) costs.
  [[nodiscard]] bool delays(std::span<const PlacedGang> gangs, Instant until);

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  /// How often the reservations are counted for a window before it is built: building takes about
  /// ten times as long, but happens only once.
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
    std::uint32_t next = kNone;  ///< next entry on the same node
  };
  struct Window {
    explicit Window(FleetView base) : fleet(base) {}

    FleetOverlay fleet;
    Stretch slices;
    std::uint32_t entered = 0;  ///< number of holds_ that are entered
  };
  struct ClassRow {
    std::uint32_t pass = 0;  ///< pass in which the row is valid
    std::uint32_t row = 0;
  };

  void cut(Instant now);
  [[nodiscard]] std::uint32_t slice_of(Instant begin) const;
  /// The last slice that begins before `end`, but at least `from`.
  [[nodiscard]] std::uint32_t last_before(Instant end, std::uint32_t from) const;

  /// A slice without reservations.
  [[nodiscard]] FleetView unreserved(std::uint32_t slice);
  [[nodiscard]] FleetView window(Stretch slices);
  /// The shortest stretch with the same window; its index_of() is the window's place in window_at_.
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
  /// Records in `failed` where the job does not fit.
  [[nodiscard]] bool fits_in(Stretch slices, const PlaceTry& job, std::span<std::uint16_t> failed);
  /// Whether the job may fit by the total of free devices; records failures in `failed`. True if
  /// the window is built or was counted kCounts times.
  [[nodiscard]] bool may_fit_in(Stretch slices, const PlaceTry& job,
                                std::span<std::uint16_t> failed);
  static void note_failed(Stretch slices, std::span<std::uint16_t> failed);
  /// Counts by type the devices that are free in the first of these slices and reserved in any of
  /// them.
  void count_held(Stretch slices);

  std::uint32_t slices_max_;
  std::uint32_t pass_ = 0;
  std::optional<FleetView> now_;
  std::vector<Ending> endings_;       ///< by end, without those that never end
  std::vector<Instant> begins_;       ///< by slice
  std::vector<std::uint32_t> ended_;  ///< by slice: number of endings_ that are over

  std::deque<FleetOverlay> slices_;  ///< by slice
  std::uint32_t built_ = 0;          ///< number of slices_ built in this pass
  std::deque<Window> windows_;
  std::uint32_t windows_used_ = 0;        ///< number of windows_ used in this pass
  std::vector<std::uint32_t> window_at_;  ///< by first and last slice
  std::vector<std::uint8_t>
      counts_;  ///< by first and last slice: how often reservations were counted instead

  std::vector<Hold> holds_;
  std::vector<NodeDevices> held_;           ///< devices of all holds, one after the other
  std::vector<Entry> entries_;              ///< one for each element of held_
  std::vector<std::uint32_t> first_entry_;  ///< by node
  std::vector<std::uint32_t>
      last_start_;  ///< by slice: the latest slice up to this one in which a hold begins

  std::vector<ClassRow> classes_;
  /// By row and slice: the last slice of the shortest window from this slice that was too small;
  /// any longer one is too small as well.
  std::vector<std::uint16_t> failed_;
  Trial trial_;

  /// Devices of a node that count_held() has counted.
  struct Counted {
    std::uint32_t call = 0;  ///< call of count_held() that counted them
    std::uint64_t devices = 0;
  };
  std::vector<Counted> counted_;  ///< by node
  std::uint32_t count_ = 0;       ///< calls of count_held()
  std::vector<FreeCount> taken_;  ///< by type: result of count_held()
};

}  // namespace orrery

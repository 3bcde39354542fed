// control/state/ledger.hpp - where every accelerator-second goes: each has one cause, and the sum
// is exact.
//
// Owned by State; changed by events. Devices of a type are counted by cause; a change of a count
// first adds the time it held to its sum. Sums are whole device-nanoseconds in 128 bits, so a
// million devices over a century fit and nothing is rounded.
// Invariant: at every instant the counts of a type sum to its devices, so the sums of a type sum to
// devices x time, corrected by time_of() for devices that joined or left. Cost: O(1) for a move.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/format/field_reader.hpp"
#include "base/time.hpp"
#include "fleet/ids.hpp"

namespace orrery {

/// What a device does, or why it is idle.
enum class DeviceUse : std::uint8_t {
  kUseful,      ///< advances its job for good, as far as is known yet
  kLost,        ///< advanced a job, and the work was lost (moved from kUseful afterwards)
  kSaving,      ///< its job stands still to write a checkpoint
  kStarting,    ///< loads data, programs and ranks; a restart reads its checkpoint
  kUndetected,  ///< its job stands still unnoticed (moved from kUseful afterwards)
  kStopping,    ///< grace, and ranks not reported gone
  kExclusive,   ///< held so that no other job uses the node
  kNoDemand,    ///< idle: no job waits for its type
  kFragmented,  ///< idle: enough are free, but not where a waiting gang needs them
  kTooFew,      ///< idle: fewer are free than the next gang needs
  kReserved,    ///< idle: kept for a slot
  kQuota,       ///< idle: the quotas of the waiting jobs exclude it
  kPower,       ///< idle: no power or cooling for it
  kOrder,       ///< idle: waiting jobs must not pass another, or wait by choice
  kSpare,       ///< idle: kept back to replace lost ones
  kDraining,    ///< wanted for maintenance
  kDown,        ///< suspect, lost or joining
  kRepair,      ///< quarantined or being repaired
  kAbsent,      ///< a resource manager does not lend the node
  kForeign,     ///< others use the node, whom a resource manager serves
};
inline constexpr std::size_t kDeviceUses = 20;

inline std::array<EnumWord<DeviceUse>, kDeviceUses> enum_words(DeviceUse) {
  return {{{"useful", DeviceUse::kUseful},
           {"lost", DeviceUse::kLost},
           {"saving", DeviceUse::kSaving},
           {"starting", DeviceUse::kStarting},
           {"undetected", DeviceUse::kUndetected},
           {"stopping", DeviceUse::kStopping},
           {"exclusive", DeviceUse::kExclusive},
           {"no-demand", DeviceUse::kNoDemand},
           {"fragmented", DeviceUse::kFragmented},
           {"too-few", DeviceUse::kTooFew},
           {"reserved", DeviceUse::kReserved},
           {"quota", DeviceUse::kQuota},
           {"power", DeviceUse::kPower},
           {"order", DeviceUse::kOrder},
           {"spare", DeviceUse::kSpare},
           {"draining", DeviceUse::kDraining},
           {"down", DeviceUse::kDown},
           {"repair", DeviceUse::kRepair},
           {"absent", DeviceUse::kAbsent},
           {"foreign", DeviceUse::kForeign}}};
}

/// Whole device-nanoseconds.
using DeviceTime = __int128_t;

[[nodiscard]] inline double device_hours(DeviceTime time) {
  return static_cast<double>(time) / 3.6e12;
}

class Ledger {
 public:
  /// All devices of a type begin as kNoDemand. Precondition: one count a type.
  Ledger(std::span<const std::uint32_t> devices, Instant from);

  struct Move {
    FleetTypeId type;
    DeviceUse from = DeviceUse::kNoDemand;
    DeviceUse to = DeviceUse::kUseful;
    std::uint32_t devices = 0;
  };
  /// Precondition: `from` has at least that many devices of the type, and time does not run
  /// backwards.
  void move(const Move& move, Instant now);

  struct Recount {
    FleetTypeId type;
    DeviceUse from = DeviceUse::kUseful;
    DeviceUse to = DeviceUse::kLost;
    DeviceTime time = 0;
  };
  /// Moves time that was already counted to another cause, for example work found lost later.
  /// Returns the part that `from` did not have; it is not moved.
  [[nodiscard]] DeviceTime recount(const Recount& recount, Instant now);

  /// Devices of a type join the fleet, or leave it, with a use. Precondition: time does not run
  /// backwards; `devices` that leave have the use `use`.
  void change_fleet(FleetTypeId type, DeviceUse use, std::int64_t devices, Instant now);
  /// Adds types at the end; a new type has no devices.
  void set_types(std::size_t types);

  [[nodiscard]] std::uint32_t count(FleetTypeId type, DeviceUse use) const;
  /// Returns the device time up to `now`.
  [[nodiscard]] DeviceTime sum(FleetTypeId type, DeviceUse use, Instant now) const;
  [[nodiscard]] Instant begin() const { return begin_; }
  /// Returns the time of a type's devices up to `now`: that of `devices`, which it has now, from
  /// the begin on, with the time of devices that left, without the time before others joined.
  [[nodiscard]] DeviceTime time_of(FleetTypeId type, std::uint32_t devices, Instant now) const;
  [[nodiscard]] std::size_t types() const { return cells_.size(); }

 private:
  friend class StateCodec;
  friend class StateRanges;

  struct Cell {
    std::uint32_t count = 0;
    Instant since;
    DeviceTime sum = 0;
  };
  void close(Cell& cell, Instant now);

  Instant begin_;
  std::vector<std::array<Cell, kDeviceUses>> cells_;  ///< by type
  /// By type: device time that changes of the fleet add to devices x time; negative if devices
  /// joined after the begin. Empty: the fleet never changed.
  std::vector<DeviceTime> changed_;
};

}  // namespace orrery

// control/state/type_times.hpp - device time by type of accelerator, for types with a nonzero time.
//
// Part of every job in the state, so it is small: one entry for each type that a job held, most
// often one. Filled by meters (control/state/state_meter.cpp).
// Invariant: entries ascend by type, and none of them is zero. Cost: O(types in it).
#pragma once

#include <algorithm>
#include <vector>

#include "control/state/ledger.hpp"

namespace orrery {

struct TypeTimes {
  struct Entry {
    FleetTypeId type;  ///< kAllTypes: time from before types were separate
    DeviceTime time = 0;

    friend bool operator==(const Entry&, const Entry&) = default;
  };

  void add(FleetTypeId type, DeviceTime time) {
    if (time == 0) return;
    const auto at = std::lower_bound(entries.begin(), entries.end(), type,
                                     [](const Entry& a, FleetTypeId b) { return a.type < b; });
    if (at != entries.end() && at->type == type) {
      at->time += time;
    } else {
      entries.insert(at, {type, time});
    }
  }

  [[nodiscard]] DeviceTime of(FleetTypeId type) const {
    for (const Entry& entry : entries) {
      if (entry.type == type) return entry.time;
    }
    return 0;
  }

  [[nodiscard]] DeviceTime total() const {
    DeviceTime sum = 0;
    for (const Entry& entry : entries) sum += entry.time;
    return sum;
  }

  TypeTimes& operator+=(const TypeTimes& other) {
    for (const Entry& entry : other.entries) add(entry.type, entry.time);
    return *this;
  }

  friend bool operator==(const TypeTimes&, const TypeTimes&) = default;

  std::vector<Entry> entries;
};

}  // namespace orrery

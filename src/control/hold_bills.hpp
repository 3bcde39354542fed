// control/hold_bills.hpp - what resource managers have lent: the time of nodes in holds that have
// ended, by the managers' own records, and the part of it in which jobs had devices there.
//
// Owned by State; changed by events. One thread. Time of nodes is whole nanoseconds in 128 bits.
// Invariant: a hold is billed once, as long as it is among the newest kRemembered. Cost: O(log
// holds) for each call.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "control/event.hpp"
#include "control/state/ledger.hpp"

namespace orrery {

/// What one manager has lent.
struct LentTotal {
  std::uint64_t holds = 0;  ///< that have ended
  DeviceTime held = 0;      ///< time of their nodes
  DeviceTime used = 0;      ///< of that: time of nodes on which jobs had devices
};

class HoldBills {
 public:
  static constexpr std::size_t kRemembered = 16'384;

  /// A hold lent a node for that time, as control saw it. It counts once the hold is billed.
  void hold(const std::string& hold, Duration time) {
    if (!billed_.contains(hold)) open_[hold].held += time.count_ns();
  }
  /// Jobs had devices on a node of a hold for that time. It counts once the hold is billed.
  void use(const std::string& hold, Duration time) {
    if (!billed_.contains(hold)) open_[hold].used += time.count_ns();
  }
  /// Precondition: !has(its name and its end).
  void on(const HoldBilled& event);

  /// Whether a hold that ended then was billed: by its name, or it ended before one whose name is
  /// not remembered any more.
  [[nodiscard]] bool has(const std::string& hold, Instant ended) const {
    return ended <= forgotten_ || billed_.contains(hold);
  }
  /// Holds that are not billed yet and have given nodes back.
  [[nodiscard]] const std::map<std::string, LentTotal>& open() const { return open_; }
  /// By the name of the manager.
  [[nodiscard]] const std::map<std::string, LentTotal>& totals() const { return totals_; }

 private:
  friend class StateCodec;
  friend class StateRanges;

  std::map<std::string, LentTotal> totals_;
  std::map<std::string, LentTotal> open_;               ///< by hold; `holds` is 0
  std::deque<std::pair<Instant, std::string>> newest_;  ///< holds that were billed, with their ends
  std::set<std::string> billed_;
  Instant forgotten_;  ///< the newest end of a hold that is not among the newest
};

/// Returns the name of the manager in the name of a hold.
[[nodiscard]] std::string_view manager_of(std::string_view hold);

}  // namespace orrery

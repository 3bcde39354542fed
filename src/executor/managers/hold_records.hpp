// executor/managers/hold_records.hpp - the bills of holds that have ended, by the records of their
// manager.
//
// Pure. Control passes over a hold that it has billed. Cost: O((holds of the list + holds) x log).
#pragma once

#include <span>
#include <vector>

#include "control/state/state.hpp"
#include "executor/holds/hold.hpp"
#include "executor/holds/hold_table.hpp"

namespace orrery {

/// A complete list of a manager, and the holds that are known after it.
struct HoldRecords {
  const ManagerListing& listing;
  std::span<const Hold> holds;
  Instant now;
};

/// Returns HoldRecorded for each hold whose end the list records, and for each whose nodes were
/// given back and of which neither the list nor anybody else knows any more.
[[nodiscard]] std::vector<InputKind> follow_bills(const HoldPool& pool, const HoldRecords& records,
                                                  const State& state);

}  // namespace orrery

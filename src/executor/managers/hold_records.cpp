#include "executor/managers/hold_records.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace orrery {

std::vector<InputKind> follow_bills(const HoldPool& pool, const HoldRecords& records,
                                    const State& state) {
  const HoldBills& bills = state.bills();
  std::vector<InputKind> inputs;
  std::set<std::string> known;
  for (const HoldSeen& seen : records.listing.holds) {
    std::string name = loan_text(pool, seen.key, seen.id);
    const bool over = seen.phase == HoldPhase::kEnded || seen.phase == HoldPhase::kEndedDirty;
    if (over && seen.started && seen.ended && !seen.nodes.empty() &&
        !bills.has(name, *seen.ended)) {
      inputs.emplace_back(HoldRecorded{.hold = name,
                                       .nodes = static_cast<std::uint32_t>(seen.nodes.size()),
                                       .from = *seen.started,
                                       .to = std::max(*seen.started, *seen.ended)});
    }
    known.insert(std::move(name));
  }
  for (const Hold& hold : records.holds) known.insert(loan_text(pool, hold.key, hold.id));
  for (const auto& [name, seen] : bills.open()) {
    if (manager_of(name) != pool.manager || known.contains(name)) continue;
    inputs.emplace_back(HoldRecorded{.hold = name, .from = records.now, .to = records.now});
  }
  return inputs;
}

}  // namespace orrery

// executor/holds/hold_keeper.hpp - which holds are asked for and given back, according to what the
// jobs need and how the holds are used.
//
// Owned by HoldLink, which says what the managers do; both change the same HoldTable, which must
// outlive it. One thread. Invariant: a hold is given back only when no rank is on its nodes.
// Cost of a look: O(waiting jobs + nodes of the manager).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "control/core/core.hpp"
#include "executor/holds/hold_demand.hpp"
#include "executor/holds/hold_table.hpp"
#include "executor/holds/hold_use.hpp"

namespace orrery {

class HoldKeeper {
 public:
  explicit HoldKeeper(HoldTable& table) : table_(table), asked_(table.setup().asked) {}

  /// Asks a manager for what is missing, and gives back what is not used.
  void look(std::uint32_t manager, const Core& core, Instant now);
  /// Precondition: no rank is on the nodes of the hold.
  void release(Hold& hold, const std::string& why, Instant now);
  /// Sets what the hold of one job is asked for with: time, tenant, and nodes unless it lends some.
  void wish_for_job(Hold& hold, const State& state) const;
  /// Returns how many holds were asked for in this term.
  [[nodiscard]] std::uint64_t asked() const { return asked_; }

 private:
  /// What a look at jobs is made with.
  struct JobsLook {
    const Core& core;
    const HoldNodes& lent;  ///< without nodes that are drained
    std::span<const JobNeeds> needs;
    Instant now;
  };
  struct JobWish {
    JobId job;
    std::uint32_t nodes = 0;
  };

  /// Nodes that are held and not needed.
  struct Surplus {
    std::uint32_t able = 0;    ///< to take jobs
    std::uint32_t useful = 0;  ///< to jobs that wait or run
  };

  [[nodiscard]] bool may_ask(std::uint32_t manager, Instant now) const;
  [[nodiscard]] std::string why_useless(const Hold& hold, const HoldUse& use, const HoldView& view);
  // Pilots.
  [[nodiscard]] HoldUse count(std::uint32_t manager, const HoldView& view);
  void ask(std::uint32_t manager, std::uint32_t nodes, Instant now);
  void recover(std::uint32_t manager, const State& state, Instant now);
  [[nodiscard]] bool is_idle(const Hold& hold, const HoldUse& use, Instant now) const;
  void leave_out(std::uint32_t manager, const std::vector<FleetTypeId>& types, std::uint32_t spare,
                 const State& state);
  void release_idle(std::uint32_t manager, Surplus nodes, const HoldView& view);
  void release_short(std::uint32_t manager, std::uint32_t nodes, const HoldView& view);
  void release_vain(std::uint32_t manager, const JobNeeds& first, const HoldView& view);
  // Holds of one job each.
  [[nodiscard]] std::string why_unneeded(const Hold& hold, const HoldUse& use,
                                         const HoldView& view);
  void look_at_jobs(std::uint32_t manager, const JobsLook& look);
  void ask_for_job(std::uint32_t manager, const JobWish& wish, const JobsLook& look);

  HoldTable& table_;
  std::uint64_t asked_;  ///< holds asked for in this term
  /// By manager: since when its idle nodes were enough for the first job that waits.
  std::map<std::uint32_t, Instant> vain_;
};

}  // namespace orrery

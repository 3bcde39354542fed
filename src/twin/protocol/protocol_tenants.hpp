// twin/protocol/protocol_tenants.hpp - counts from events alone what tenants hold, and checks that
// every decision kept the tenants' promises.
//
// One for a controller's term, from the state it begins with; gets every event, in order. A
// tenant's devices are those of its jobs from start to end, stopping ones too: a start or a growth
// may not take them beyond limits. A job that is stopped or shrunk for another tenant's must lie
// above what its own tenants are guaranteed, where stopping jobs count as gone. One type of
// accelerator. One thread.
// Cost: O(jobs x depth) a decision.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "control/state/state.hpp"

namespace orrery {

class TenantAccounts {
 public:
  explicit TenantAccounts(const State& state);

  /// Applies the event. Returns the promise that it breaks; empty: none.
  [[nodiscard]] std::string take(const Event& event);

 private:
  struct Account {
    std::string tenant;
    std::int64_t devices = 0;
    bool leaving = false;
  };
  enum class Counted : std::uint8_t { kAll, kStaying };

  [[nodiscard]] std::string within(JobId job) const;
  [[nodiscard]] std::string taken(JobId job, JobId in_favour_of) const;
  [[nodiscard]] std::int64_t held(TenantId tenant, Counted counted) const;
  [[nodiscard]] std::string above_limit(TenantId tenant) const;
  [[nodiscard]] std::string above_own(TenantId tenant) const;

  const Topology* topology_;
  TenantTree tree_;
  std::map<JobId, Account> jobs_;
};

}  // namespace orrery

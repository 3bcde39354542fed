// base/rejection.hpp - a refusal as a value: why a well-formed request is not granted now, or ever.
//
// A Rejection is an answer, not a failure: it carries what blocks the request, so that `explain`
// can look for the smallest change that makes it acceptable. Wrong input is an Error
// (base/error.hpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

enum class RejectionKind {
  kBusy,    ///< fits the fleet, but what it needs is in use
  kNever,   ///< the fleet, as built, can never hold it
  kQuota,   ///< the tenant's limit
  kPower,   ///< a power or cooling cap
  kMemory,  ///< the work does not fit the memory of the accelerators
  kStack,   ///< no accelerator with the software stack it needs
  kBudget,  ///< costs more than its budget allows
  kLater,   ///< could start now, but waits for something better by choice
};

/// The word used in output and files: "busy", "never", ...
[[nodiscard]] std::string_view name_of(RejectionKind kind);

struct Rejection {
  RejectionKind kind = RejectionKind::kBusy;
  /// What blocks the request (names of domains, jobs, quotas), in ascending order of id.
  std::vector<std::string> blocking;
  std::string reason;

  /// "busy: REASON (blocked by A, B)".
  [[nodiscard]] std::string text() const;
};

}  // namespace orrery

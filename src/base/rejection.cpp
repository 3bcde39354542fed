#include "base/rejection.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace orrery {

std::string_view name_of(RejectionKind kind) {
  switch (kind) {
    case RejectionKind::kBusy:
      return "busy";
    case RejectionKind::kNever:
      return "never";
    case RejectionKind::kQuota:
      return "quota";
    case RejectionKind::kPower:
      return "power";
    case RejectionKind::kMemory:
      return "memory";
    case RejectionKind::kStack:
      return "stack";
    case RejectionKind::kBudget:
      return "budget";
    case RejectionKind::kLater:
      return "later";
  }
  return "busy";
}

std::string Rejection::text() const {
  if (blocking.empty()) return fmt::format("{}: {}", name_of(kind), reason);
  return fmt::format("{}: {} (blocked by {})", name_of(kind), reason, fmt::join(blocking, ", "));
}

}  // namespace orrery

#include "api/access/visibility.hpp"

#include <fmt/format.h>

#include "executor/jobs/job_intake.hpp"

namespace orrery {

bool Visibility::tenant(std::string_view path) const { return is_within(path, tenant_); }

bool Visibility::job(JobId id) const {
  if (everything()) return true;
  if (!id.valid()) return false;
  if (state_->has(id)) return tenant(state_->tenants().path(state_->job(id).tenant));
  const std::optional<std::string> its = archived_ ? archived_(id) : std::nullopt;
  return its && tenant(*its);
}

std::string Visibility::job_text(JobId id) const {
  if (!job(id) || !state_->has(id)) return "a job of another tenant";
  return fmt::format("{} ({})", id.value(), state_->job(id).name);
}

}  // namespace orrery

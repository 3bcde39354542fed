#include "api/visibility.hpp"

#include <fmt/format.h>

#include "executor/job_intake.hpp"

namespace orrery {

bool Visibility::tenant(std::string_view path) const { return is_within(path, tenant_); }

bool Visibility::job(JobId id) const {
  if (everything()) return true;
  return id.valid() && state_->has(id) && tenant(state_->tenants().path(state_->job(id).tenant));
}

std::string Visibility::job_text(JobId id) const {
  if (!job(id)) return "a job of another tenant";
  return fmt::format("{} ({})", id.value(), state_->job(id).name);
}

}  // namespace orrery

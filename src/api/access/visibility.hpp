// api/access/visibility.hpp - what one caller may see of the jobs and tenants of a cluster.
//
// Made for each call from its caller, and handed to every view that shows jobs or tenants. A caller
// without a tenant sees all of them. A caller with a tenant sees those of its tenant and of the
// tenants below it, whatever its role; of the others it may learn how many there are, nothing else.
// A copy is small; the state outlives it. On the controller's loop.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/grpc/call.hpp"
#include "control/state/state.hpp"

namespace orrery {

class Visibility {
 public:
  Visibility(const State& state, const Caller& caller)
      : state_(&state), tenant_(caller.tenant), role_(caller.role) {}

  /// Returns the tenant of a job that has left the state; none: it is not known.
  using TenantLookup = std::function<std::optional<std::string>(JobId)>;
  /// Returns a copy that also knows archived jobs. The objects that the look-up refers to outlive
  /// it.
  [[nodiscard]] Visibility with_archive(TenantLookup archived) const {
    Visibility wider = *this;
    wider.archived_ = std::move(archived);
    return wider;
  }

  /// Whether the caller sees every tenant.
  [[nodiscard]] bool everything() const { return tenant_.empty(); }
  /// Whether the caller sees the tenant of that path.
  [[nodiscard]] bool tenant(std::string_view path) const;
  /// Whether the caller sees a job. Unless the caller sees everything, false for a job that was
  /// never submitted, and for an archived one without with_archive(): the state does not know its
  /// tenant. Cost for an archived job: a read of the archive.
  [[nodiscard]] bool job(JobId id) const;
  /// Returns how an answer names a job of the state: "12 (train)", or "a job of another tenant".
  [[nodiscard]] std::string job_text(JobId id) const;
  /// Whether the caller may read the values of `environment` in the specs of a tenant: callers that
  /// may submit there do.
  [[nodiscard]] bool environment_of(std::string_view path) const {
    return role_ >= Role::kUser && tenant(path);
  }

 private:
  const State* state_;
  TenantLookup archived_;  ///< none: archived jobs are not looked up
  std::string tenant_;
  Role role_;
};

}  // namespace orrery

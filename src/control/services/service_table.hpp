// control/services/service_table.hpp - the services that control knows: their replicas, what these
// run, and the update that is under way.
//
// A service begins with its first replica, a job of kind Serve in an array, and ends with its last,
// unless it is being updated. A service that rests has one replica, which is held and has no
// devices. Part of State (control/state/state.hpp), changed by its events alone.
// One thread. Cost of an event: O(log jobs).
// Invariants:
//   1. `live` of a service are its replicas that have not ended.
//   2. A replica's revision never changes; numbers of revisions only grow.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/id.hpp"
#include "control/event.hpp"
#include "control/state/job.hpp"
#include "control/submission.hpp"

namespace orrery {

/// What replicas run. Immutable.
struct ServiceRevision {
  std::uint32_t number = 1;                   ///< within the service, from 1
  std::shared_ptr<const Submission> replica;  ///< the submission of a replica
  JobTexts texts;
};

/// The change of a service's revision, or of the number of its replicas, that is under way.
struct ServiceUpdate {
  ServiceRevision to;
  std::uint32_t replicas = 0;  ///< wanted
  std::uint32_t former = 0;    ///< replicas before the update
  JobId newest;                ///< replicas with later numbers are of this update
  RolloutTerms terms;
  std::uint32_t stage = 0;  ///< of terms.canary; as many as there are: past the last
  std::string back;         ///< why it goes back to the revision before; empty: it goes on
  std::string fault;        ///< how a replica that it made failed; empty: none has
};

/// The revision of a service that has a share of its requests of its own, while others have the
/// rest.
struct TrafficSplit {
  std::uint32_t revision = 0;
  std::uint32_t share = 0;  ///< of the requests, in parts of 10,000
};

struct Service {
  JobId id;                             ///< job of its first replica
  ServiceRevision revision;             ///< of its replicas; of those before the update
  std::uint32_t made = 0;               ///< replicas so far: the index of the next
  std::uint32_t revisions = 1;          ///< numbers that were given out
  std::optional<ServiceUpdate> update;  ///< under way; none: its replicas stay as they are
  std::string outcome;                  ///< why the last update did not succeed; empty: it did
  std::set<JobId> live;                 ///< replicas that have not ended
};

/// The last order that gave a service another number of replicas.
struct ServiceScaling {
  Instant at;
  std::uint32_t before = 0;
  std::uint32_t replicas = 0;
  std::string why;
};

/// The service of a replica, and what it runs.
struct ReplicaMembership {
  JobId service;
  std::uint32_t revision = 1;
};

/// Whether an update tries its revision with a share of the requests.
[[nodiscard]] bool is_canary(const ServiceUpdate& update);

class ServiceTable {
 public:
  /// Returns the service whose first replica that job is; nullptr: there is none, or it has ended.
  [[nodiscard]] const Service* find(JobId service) const;
  /// Returns what a job is a replica of, also after its end; nullptr: it is none, or is archived.
  [[nodiscard]] const ReplicaMembership* membership(JobId job) const;
  /// Returns the replicas of a service that are in the state, ended or not, ascending. O(replicas
  /// of all services).
  [[nodiscard]] std::vector<JobId> replicas(JobId service) const;
  /// Returns how the requests of a service are split: between a canary and the rest, or none for
  /// the replicas of a canary that was given up. None: each replica takes its part.
  [[nodiscard]] std::optional<TrafficSplit> split(const Service& service) const;
  /// Returns the last order that scaled a service; nullptr: there was none.
  [[nodiscard]] const ServiceScaling* scaling(JobId service) const;
  [[nodiscard]] const std::map<JobId, ServiceScaling>& scalings() const { return scalings_; }
  /// Services by number.
  [[nodiscard]] const std::map<JobId, Service>& all() const { return services_; }
  /// Services with an update under way.
  [[nodiscard]] const std::set<JobId>& updating() const { return updating_; }

  /// A job was submitted: it becomes a replica of the service of its array, or begins one.
  void add(const Job& job);
  /// A job has ended. Its submission is still there.
  void end(const Job& job);
  void archive(JobId job) { memberships_.erase(job); }
  /// The tenants have changed: `now` returns what each of those before is now.
  void move_tenants(const std::function<TenantId(TenantId)>& now);
  void on(const ServiceUpdating& event);
  void on(const ServiceUpdated& event);
  void on(const ServiceScaled& event, Instant now);

  /// Makes again what follows from the encoded fields. `jobs` has all jobs of the state; replicas
  /// of before there were services become those of one.
  template <class Jobs>
  void take_up(const Jobs& jobs);

 private:
  friend class StateCodec;
  friend class StateRanges;

  void forget_if_over(JobId service);

  std::map<JobId, Service> services_;
  std::map<JobId, ReplicaMembership> memberships_;
  std::map<JobId, ServiceScaling> scalings_;  ///< by service
  std::map<ArrayId, JobId> by_array_;
  std::set<JobId> updating_;
};

template <class Jobs>
void ServiceTable::take_up(const Jobs& jobs) {
  by_array_.clear();
  updating_.clear();
  for (auto& [id, service] : services_) {
    by_array_[service.revision.replica->request.array] = id;
    if (service.update) updating_.insert(id);
    service.live.clear();
  }
  for (const Job& job : jobs) {
    if (ended(job.phase)) continue;
    if (const auto found = memberships_.find(job.id); found != memberships_.end()) {
      services_.at(found->second.service).live.insert(job.id);
    } else {
      add(job);
    }
  }
}

}  // namespace orrery

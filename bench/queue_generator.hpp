// bench/queue_generator.hpp - a queue of many unlike jobs, from a seed.
//
// Jobs belong to classes; those of one ask for the same: size from 1 to 4,096 accelerators (many
// small, few large), types, tenant, time limit, how near the nodes must be. Estimates differ job by
// job. A class whose size has plans trains the model they are for.
// Invariant: no two classes are alike; the same seed gives the same jobs.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <set>
#include <tuple>
#include <vector>

#include "base/numbers/math.hpp"
#include "base/numbers/rng.hpp"
#include "scheduler/request/request.hpp"

namespace orrery {

struct QueueShape {
  std::uint64_t seed = 1;
  std::uint32_t classes = 5'000;
  std::uint32_t devices_max = 4'096;
  const PlanTable* plans = nullptr;  ///< of WorkId 0; none: no class trains
};

class QueueGenerator {
 public:
  QueueGenerator(const Topology& topology, const TenantTree& tenants, const QueueShape& shape)
      : topology_(&topology), shape_(shape), rng_(Rng::stream(shape.seed, "queue")) {
    for (std::uint32_t t = 1; t < tenants.size(); ++t) {
      if (tenants.is_leaf(TenantId(t))) leaves_.emplace_back(t);
    }
    std::set<Key> known;
    while (classes_.size() < shape.classes) {
      const Key key = draw();
      if (known.insert(key).second) classes_.push_back(request_of(key));
    }
  }

  [[nodiscard]] std::size_t classes() const { return classes_.size(); }

  [[nodiscard]] JobRequest next() {
    const std::uint64_t at = rng_.below(classes_.size());
    JobRequest job = classes_[at];
    job.class_id = ClassId::at(at);
    const double part = 0.05 + 0.95 * rng_.uniform();
    job.estimate = Duration::from_seconds(job.time_limit->count_seconds() * part);
    return job;
  }

 private:
  /// Devices, types (0: any), tenant, hours at most, the level the gang stays inside of.
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, TopologyLevel>;

  [[nodiscard]] Key draw() {
    constexpr std::array<std::uint32_t, 6> kHours{1, 2, 4, 12, 24, 72};
    constexpr std::uint32_t kRack = 256;
    const double u = rng_.uniform();
    auto devices =
        static_cast<std::uint32_t>(std::lround(exp(log(shape_.devices_max) * u * u * u)));
    if (rng_.below(2) == 0) {
      devices = std::bit_ceil(devices);
    } else if (devices > 8) {
      devices = (devices + 7) / 8 * 8;
    }
    const auto types = static_cast<std::uint32_t>(rng_.below(topology_->type_count() + 1));
    const auto tenant = static_cast<std::uint32_t>(rng_.below(leaves_.size()));
    const std::uint32_t hours = kHours[rng_.below(kHours.size())];
    const std::uint64_t wish = rng_.below(4);
    TopologyLevel level = TopologyLevel::kFleet;
    if (wish == 0) level = devices <= kRack ? TopologyLevel::kRack : TopologyLevel::kPod;
    if (wish == 1) level = TopologyLevel::kPod;
    return {devices, types, tenant, hours, level};
  }

  [[nodiscard]] JobRequest request_of(const Key& key) const {
    const auto [devices, types, tenant, hours, level] = key;
    JobRequest job;
    job.tenant = leaves_[tenant];
    job.time_limit = Duration::hours(hours);
    job.preemptible = hours >= 12;
    RoleRequest role;
    role.devices_min = role.devices_max = devices;
    for (std::uint32_t t = 0; t < topology_->type_count(); ++t) {
      if (types != 0 && types != t + 1) continue;
      GangOption option;
      option.gang.type = FleetTypeId(t);
      option.gang.devices = devices;
      option.gang.node_devices = std::min(devices, topology_->node_devices_max(FleetTypeId(t)));
      option.gang.required = level;
      const PlanKey plan{WorkId(0), FleetTypeId(t), devices};
      const PlanEntry* entry = shape_.plans != nullptr ? shape_.plans->find(plan) : nullptr;
      if (entry != nullptr && *entry) {
        option.plan = plan;
        role.work = plan.work;
        role.steps = hours * 1800.0 / entry->value().front().step_seconds;
        job.kind = JobKind::kTrain;
      }
      role.options.push_back(option);
    }
    job.roles.push_back(std::move(role));
    return job;
  }

  const Topology* topology_;
  QueueShape shape_;
  Rng rng_;
  std::vector<TenantId> leaves_;
  std::vector<JobRequest> classes_;
};

}  // namespace orrery

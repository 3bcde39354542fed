// scheduler/request/resolve_test.hpp - a fleet on which tests resolve jobs.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "fleet/fleet_test.hpp"
#include "perf/builtin_calibration.hpp"
#include "scheduler/plans/class_table.hpp"
#include "scheduler/request/resolve.hpp"
#include "workload/builtin_models.hpp"

namespace orrery {

inline const ModelCatalog& test_models() {
  static const ModelCatalog kModels = *ModelCatalog::load(builtin_models(), {});
  return kModels;
}

inline PlannerFacts test_facts() {
  static const Calibration kCalibration = *Calibration::load(builtin_calibration(), {});
  return {test_catalog(), kCalibration};
}

/// A fleet of examples/fleets.
inline Topology example_fleet(const std::string& name) {
  const Result<FleetSpec> spec =
      load_fleet_spec(std::string(ORRERY_SOURCE_DIR) + "/examples/fleets/" + name + ".yaml");
  EXPECT_TRUE(spec) << (spec ? "" : spec.error().text());
  Result<Topology> topology = build_topology(*spec, test_catalog());
  EXPECT_TRUE(topology) << (topology ? "" : topology.error().text());
  return *std::move(topology);
}

/// A job of kind Batch, its roles (and more keys) as given; the keys begin in line 4.
inline std::string batch(const std::string& keys) {
  return "apiVersion: orrery/v1\nkind: Batch\nname: job\n" + keys;
}

inline JobSpec job_of_yaml(const std::string& yaml) {
  const Result<Document> document = Document::parse(yaml, "job.yaml");
  EXPECT_TRUE(document) << (document ? "" : document.error().text());
  Result<JobSpec> spec = read_job_spec(*document);
  EXPECT_TRUE(spec) << (spec ? "" : spec.error().text());
  return spec ? *std::move(spec) : JobSpec();
}

class ResolveLab {
 public:
  explicit ResolveLab(Topology topology)
      : topology_(std::move(topology)),
        fleet_(topology_),
        tenants_(default_tenant_tree(topology_)),
        sizes_(PlanSources{test_facts(), topology_, {}}) {}

  /// Two pods of two racks of four DGX H100 on one network.
  ResolveLab()
      : ResolveLab(built(small_h100() +
                         "  fabrics:\n  - {type: ib-ndr, topology: fat-tree, unit_nodes: 4}\n")) {}

  [[nodiscard]] const Topology& topology() const { return topology_; }
  [[nodiscard]] WorkTable& works() { return works_; }
  [[nodiscard]] FleetTypeId type(const std::string& name) const {
    return *topology_.find_type(name);
  }
  void set_now(Instant now) { now_ = now; }
  void set_tenants(TenantTree tenants) { tenants_ = std::move(tenants); }

  enum class Plans { kAnyone, kSearched };

  Result<JobRequest> resolve(const JobSpec& spec, Plans plans = Plans::kAnyone) {
    return resolve_job(spec, {.fleet = fleet_,
                              .models = test_models(),
                              .tenants = tenants_,
                              .works = works_,
                              .sizes = plans == Plans::kSearched ? &sizes_ : nullptr,
                              .now = now_});
  }

  /// A job that must resolve.
  JobRequest request(const std::string& yaml, Plans plans = Plans::kAnyone) {
    Result<JobRequest> request = resolve(job_of_yaml(yaml), plans);
    EXPECT_TRUE(request) << (request ? "" : request.error().text());
    return request ? *std::move(request) : JobRequest();
  }

  /// The first gang of a job that must resolve.
  GangRequest gang(const std::string& yaml) {
    const JobRequest job = request(yaml);
    return job.roles.empty() ? GangRequest() : job.roles.front().options.front().gang;
  }

  /// Why a job never runs.
  std::string never(const std::string& yaml, Plans plans = Plans::kAnyone) {
    const Result<JobRequest> request = resolve(job_of_yaml(yaml), plans);
    EXPECT_FALSE(request) << "the job was accepted";
    if (request) return "";
    EXPECT_EQ(request.error().kind, ErrorKind::kInfeasible) << request.error().text();
    return request.error().text();
  }

  /// The error of a job, with its position.
  std::string wrong(const std::string& yaml) {
    const Result<JobRequest> request = resolve(job_of_yaml(yaml));
    EXPECT_FALSE(request) << "the job was accepted";
    if (request) return "";
    EXPECT_EQ(request.error().kind, ErrorKind::kInput) << request.error().text();
    return request.error().text();
  }

 private:
  Topology topology_;
  PristineFleet fleet_;
  TenantTree tenants_;
  WorkTable works_;
  PlanSizes sizes_;
  Instant now_;
};

}  // namespace orrery

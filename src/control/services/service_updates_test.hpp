// control/services/service_updates_test.hpp - a service of a scripted cluster, for tests.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "control/scripted_cluster_test.hpp"

namespace orrery {

/// A cluster of four nodes with a service whose replicas have a node each.
class UpdatedService {
 public:
  explicit UpdatedService(std::uint32_t replicas) {
    Submission replica = cluster.job(8);
    replica.request.kind = JobKind::kServe;
    replica.request.array = ArrayId(0);
    replica.restart_max = 5;
    for (std::uint32_t i = 0; i < replicas; ++i) {
      replica.request.name = fmt::format("chat[{}]", i);
      ids.push_back(cluster.send(SubmitJob{replica, "r1", "ada", ""}).answer.job);
    }
    template_ = replica;
    serve_all();
  }

  /// Lets every replica that can start start, and report ready.
  void serve_all() {
    cluster.tick();
    for (const JobId id : live()) serve(id);
    cluster.tick();
  }
  void serve(JobId id) {
    const Job& job = cluster.job(id);
    if (job.phase == JobPhase::kStarting) cluster.up(id);
    if (job.phase != JobPhase::kRunning) return;
    cluster.send(ReplicaSeen{id, job.attempt, {ReplicaPhase::kReady, "10.0.0.1:80", 7, 8, {}}});
  }
  /// Lets replicas that were told to stop end.
  void drain_all() {
    for (const JobId id : live()) {
      if (cluster.phase(id) == JobPhase::kStopping) cluster.gone(id);
    }
  }
  void settle() {
    for (int i = 0; i < 20; ++i) {
      serve_all();
      drain_all();
    }
  }

  Status update(const std::string& spec, std::uint32_t replicas, const RolloutTerms& terms = {}) {
    return cluster.send(UpdateService{ids.front(), template_, {spec, "ada", ""}, replicas, terms})
        .answer.status;
  }

  /// Gives a revision another text.
  Status change_text(const std::string& spec, std::uint32_t revision, std::uint32_t replicas) {
    return cluster
        .send(UpdateService{ids.front(), template_, {spec, "ada", ""}, replicas, {}, revision})
        .answer.status;
  }
  void scale(std::uint32_t replicas, const std::string& why = "load") {
    cluster.send(ScaleOrder{ids.front(), replicas, why});
  }

  [[nodiscard]] const Service* service() const {
    return cluster.state().services().find(ids.front());
  }
  [[nodiscard]] std::vector<JobId> live() const {
    if (service() == nullptr) return {};
    return {service()->live.begin(), service()->live.end()};
  }
  [[nodiscard]] bool is_ready(JobId id) const {
    const ReplicaState* replica = replica_of(cluster.job(id));
    return cluster.phase(id) == JobPhase::kRunning && replica != nullptr &&
           replica->report.phase == ReplicaPhase::kReady;
  }
  [[nodiscard]] std::uint32_t ready() const {
    const std::vector<JobId> jobs = live();
    return static_cast<std::uint32_t>(
        std::count_if(jobs.begin(), jobs.end(), [this](JobId id) { return is_ready(id); }));
  }
  /// Specs and names of the replicas: "chat[2]:r2 chat[3]:r2".
  [[nodiscard]] std::string replicas() const {
    std::string text;
    for (const JobId id : live()) {
      const Job& job = cluster.job(id);
      text += fmt::format("{}{}:{}", text.empty() ? "" : " ", job.name, job.spec);
    }
    return text;
  }

  ScriptedCluster cluster;
  std::vector<JobId> ids;

 private:
  Submission template_;
};

}  // namespace orrery

// scheduler/place/cluster_test.hpp - a fleet with its queue, for tests of passes: submits jobs,
// decides, carries decisions out and lets jobs end.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "fleet/fleet.hpp"
#include "fleet/fleet_test.hpp"
#include "scheduler/pass/taking.hpp"
#include "scheduler/rounds/round_turns.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {

/// Two pods of two racks of four DGX H100, or any other fleet.
class TestCluster : public DeviceHistory {
 public:
  explicit TestCluster(const std::string& fleet = small_h100(), const std::string& tenants = "")
      : fleet_(built(fleet)),
        tree_(fleet_.topology()),
        scheduler_(tree_),
        tenants_(tenants_of(tenants, fleet_.topology())),
        usage_(tenants_) {}

  [[nodiscard]] Fleet& fleet() { return fleet_; }
  [[nodiscard]] const PlaceTree& tree() const { return tree_; }
  [[nodiscard]] TenantUsage& usage() { return usage_; }
  [[nodiscard]] const TenantTree& tenants() const { return tenants_; }
  [[nodiscard]] Scheduler& scheduler() { return scheduler_; }
  [[nodiscard]] Instant now() const { return now_; }

  /// A job of one gang of whole devices.
  [[nodiscard]] JobRequest job(std::uint32_t devices,
                               Duration estimate = Duration::hours(1)) const {
    JobRequest request;
    request.tenant = tenants_.find("default").value_or(TenantId(0));
    request.estimate = estimate;
    RoleRequest role;
    role.devices_min = role.devices_max = devices;
    role.options.push_back({gang(devices), 1, std::nullopt});
    request.roles.push_back(role);
    return request;
  }
  [[nodiscard]] GangRequest gang(std::uint32_t devices, const std::string& type = "h100") const {
    GangRequest gang;
    gang.type = *fleet_.topology().find_type(type);
    gang.devices = devices;
    gang.node_devices = std::min(devices, fleet_.topology().node_devices_max(gang.type));
    return gang;
  }

  JobId submit(JobRequest request) {
    const JobId id = JobId::at(requests_.size());
    requests_.push_back(std::move(request));
    waiting_.push_back({id, &requests_.back(), now_, 0, 0});
    past_.push_back({0, now_});
    return id;
  }

  [[nodiscard]] Situation situation() const {
    Situation s{.now = now_, .fleet = fleet_.view()};
    s.waiting = waiting_;
    s.running = running_;
    s.tenants = &tenants_;
    s.usage = &usage_;
    s.history = this;
    s.reserved = reserved_;
    s.closures = closures_;
    s.changes = changes_;
    return s;
  }

  /// Runs a pass and carries its decisions out; victims leave at once, or hold their devices until
  /// stop().
  PassResult pass(const std::string& policy, PassKind kind = PassKind::kIncremental) {
    const Result<Policy> rules = policy_named(policy);
    EXPECT_TRUE(rules) << (rules ? "" : rules.error().text());
    renew_shares(*rules, kind);
    PassResult result = scheduler_.decide(situation(), *rules, kind);
    for (const Decision& decision : result.decisions) {
      if (const auto* start = std::get_if<StartJob>(&decision)) carry_out(*start);
      if (const auto* preempt = std::get_if<PreemptJob>(&decision)) make_leave(preempt->job);
      if (const auto* resize = std::get_if<ResizeJob>(&decision)) carry_out(*resize);
    }
    reserved_ = result.reservations;
    return result;
  }

  /// Renews the share period as the control state does before a full pass.
  void renew_shares(const Policy& rules, PassKind kind) {
    if (kind == PassKind::kFull && keeps_share_period(rules)) {
      renew_share_period(situation(), rules, period_);
    }
  }
  /// From now on victims hold their devices until stop().
  void let_victims_linger() { victims_linger_ = true; }

  void wait(Duration time) { now_ = now_ + time; }
  /// Closes a node for all jobs from `from` after now on.
  void close(NodeId node, Duration from) {
    const std::uint64_t all = (std::uint64_t{1} << fleet_.topology().group(node).devices) - 1;
    closures_.push_back({{{node, all}}, now_ + from, Instant::max()});
  }
  /// Records that devices came free that no job held.
  void free_up() { ++changes_.freed; }
  /// Marks the job's deadline as promised.
  void promise(JobId id) {
    period_.jobs.push_back(id);
    std::sort(period_.jobs.begin(), period_.jobs.end());
  }
  /// Ends a job.
  void finish(JobId id) { (void)take_out(id); }
  /// Removes a waiting job.
  void withdraw(JobId id) {
    std::erase_if(waiting_, [&](const WaitingJob& job) { return job.id == id; });
  }
  /// Stops a running job, which waits again.
  void stop(JobId id) {
    const RunningJob job = take_out(id);
    waiting_.push_back({id, job.request, job.submitted, job.done, job.attained_at(now_)});
    past_[id.value()].waits_since = now_;
  }

  [[nodiscard]] double device_seconds(JobId id, FleetTypeId type, Instant now) const override {
    const auto before = had_.find({id, type});
    double had = before == had_.end() ? 0 : before->second;
    const RunningJob* job = find(id);
    if (job != nullptr && type_of(*job) == type) {
      had += (now - job->started).count_seconds() * job->devices();
    }
    return had;
  }
  [[nodiscard]] JobPast past(JobId id) const override { return past_[id.value()]; }
  [[nodiscard]] const SharePeriod& share_period() const override { return period_; }
  [[nodiscard]] double device_hours(JobId id, FleetTypeId type) const {
    return device_seconds(id, type, now_) / 3600;
  }

  [[nodiscard]] bool runs(JobId id) const { return find(id) != nullptr; }
  [[nodiscard]] const RunningJob* find(JobId id) const {
    for (const RunningJob& job : running_) {
      if (job.id == id) return &job;
    }
    return nullptr;
  }
  [[nodiscard]] const JobRequest& request(JobId id) const { return requests_[id.value()]; }
  [[nodiscard]] const std::vector<RunningJob>& running() const { return running_; }
  [[nodiscard]] std::vector<RunningJob>& running() { return running_; }

 private:
  void make_leave(JobId id) {
    if (!victims_linger_) return stop(id);
    for (RunningJob& job : running_) job.stopping = job.stopping || job.id == id;
  }

  void carry_out(const StartJob& start) {
    const auto at = std::find_if(waiting_.begin(), waiting_.end(),
                                 [&](const WaitingJob& job) { return job.id == start.job; });
    ASSERT_NE(at, waiting_.end());
    for (const PlacedGang& gang : start.gangs) take(fleet_, gang.allocation, gang.host);
    RunningJob job{.id = start.job, .request = at->request, .submitted = at->submitted};
    job.started = job.since = now_;
    job.done = at->done;
    job.attained = at->attained;
    job.checkpoint = at->request->checkpoint_interval;
    job.expected_end = start.expected ? now_ + *start.expected : Instant::max();
    job.gangs = start.gangs;
    job.terms = start.terms;
    count(job, 1);
    running_.push_back(std::move(job));
    ++past_[start.job.value()].starts;
    waiting_.erase(at);
  }

  void carry_out(const ResizeJob& resize) {
    RunningJob job = take_out(resize.job);
    job.gangs = resize.gangs;
    job.terms = resize.terms;
    const std::optional<Duration>& left = resize.terms.front().length;
    job.expected_end = left ? now_ + *left : Instant::max();
    job.started = now_;
    for (const PlacedGang& gang : job.gangs) take(fleet_, gang.allocation, gang.host);
    count(job, 1);
    running_.push_back(std::move(job));
  }

  RunningJob take_out(JobId id) {
    const auto at = std::find_if(running_.begin(), running_.end(),
                                 [&](const RunningJob& job) { return job.id == id; });
    EXPECT_NE(at, running_.end());
    RunningJob job = *at;
    had_[{id, type_of(job)}] = device_seconds(id, type_of(job), now_);
    running_.erase(at);
    give_back(fleet_, std::span<const PlacedGang>(job.gangs));
    count(job, -1);
    ++changes_.freed;
    return job;
  }

  static FleetTypeId type_of(const RunningJob& job) {
    const PlacedGang& gang = job.gangs.front();
    return job.request->roles[gang.role].options[gang.option].gang.type;
  }

  void count(const RunningJob& job, std::int64_t sign) {
    for (const PlacedGang& placed : job.gangs) {
      const GangRequest& request = job.request->roles[placed.role].options[placed.option].gang;
      usage_.apply({job.request->tenant, request.type, rank_of(*job.request),
                    sign * static_cast<std::int64_t>(request.devices)});
    }
  }

  static TenantTree tenants_of(const std::string& yaml, const Topology& topology) {
    if (yaml.empty()) return default_tenant_tree(topology);
    const Result<Document> document = Document::parse(
        "apiVersion: orrery/v1\nkind: Tenants\nname: t\ntenants:\n" + yaml, "tenants.yaml");
    EXPECT_TRUE(document);
    const Result<TenantsSpec> spec = read_tenants_spec(*document);
    EXPECT_TRUE(spec) << (spec ? "" : spec.error().text());
    const Result<TenantTree> tree = build_tenant_tree(*spec, topology);
    EXPECT_TRUE(tree) << (tree ? "" : tree.error().text());
    return *tree;
  }

  Fleet fleet_;
  PlaceTree tree_;
  Scheduler scheduler_;
  TenantTree tenants_;
  TenantUsage usage_;
  std::deque<JobRequest> requests_;
  std::vector<WaitingJob> waiting_;
  std::vector<RunningJob> running_;
  std::vector<Reservation> reserved_;
  std::vector<Closure> closures_;
  Changes changes_;
  std::map<std::pair<JobId, FleetTypeId>, double> had_;  ///< device-seconds, before the present run
  std::vector<JobPast> past_;                            ///< by job
  SharePeriod period_;
  Instant now_;
  bool victims_linger_ = false;
};

}  // namespace orrery

#include "control/scripted_cluster_test.hpp"

#include "control/codec/codec.hpp"
#include "control/settings.hpp"
#include "control/state/invariants.hpp"
#include "control/state/snapshot.hpp"
#include "fleet/fleet_test.hpp"

namespace orrery {

std::string four_nodes() {
  return one_hall(
      "    - name: su\n      racks:\n      - count: 2\n        cooling: in-row-or-dense-air\n"
      "        nodes: [{type: dgx-h100, count: 2}]\n",
      "  fabrics: [{type: ib-ndr, topology: fat-tree}]\n");
}

std::string two_types() {
  return one_hall(
      "    - name: su\n      racks:\n"
      "      - {cooling: in-row-or-dense-air, nodes: [{type: dgx-h100, count: 2}]}\n"
      "      - {name: old, nodes: [{type: dgx-a100-80g, count: 2}]}\n");
}

std::unique_ptr<ScriptedCluster::Version> ScriptedCluster::version_of(Topology topology) const {
  auto version = std::make_unique<Version>();
  version->topology = std::make_unique<const Topology>(std::move(topology));
  version->tree = std::make_unique<const PlaceTree>(*version->topology);
  Result<TenantTree> tenants =
      options_.tenants.empty()
          ? default_tenant_tree(*version->topology)
          : tenants_from(
                "apiVersion: orrery/v1\nkind: Tenants\nname: t\ntenants:\n" + options_.tenants,
                *version->topology);
  EXPECT_TRUE(tenants) << (tenants ? "" : tenants.error().text());
  version->tenants = std::make_unique<const TenantTree>(*std::move(tenants));
  Result<Policy> policy = policy_named(options_.policy);
  EXPECT_TRUE(policy) << (policy ? "" : policy.error().text());
  ControlSetup& setup = version->setup;
  setup.topology = version->topology.get();
  setup.tree = version->tree.get();
  setup.tenants = version->tenants.get();
  setup.plans = [](const PlanKey&) {
    return std::make_shared<const PlanEntry>(
        tl::unexpected(Rejection{.kind = RejectionKind::kMemory, .reason = "too large"}));
  };
  if (options_.power == PowerLimits::kAsBuilt) {
    version->power = std::make_unique<const PowerTree>(*version->topology);
    setup.power = version->power.get();
  }
  setup.policy = *std::move(policy);
  setup.timing = options_.timing;
  setup.failures_per_node_second = options_.failures_per_node_second;
  setup.nodes_begin = options_.nodes_begin;
  return version;
}

ScriptedCluster::ScriptedCluster(const ScriptedOptions& options)
    : options_(options),
      first_(version_of(built(options.fleet))),
      sharing_(options.sharing),
      setup_(first_->setup) {
  setup_.fleets.source = [this](const std::string& fleet) -> Result<const ControlSetup*> {
    Result<Topology> topology = topology_of_yaml(fleet);
    if (!topology) return forward_error(topology);
    std::unique_ptr<Version>& known = changed_[fleet];
    if (known == nullptr) {
      known = version_of(*std::move(topology));
      known->setup.fleets = {setup_.fleets.source, fleet, {}};
    }
    return &known->setup;
  };
  core_ = std::make_unique<Core>(setup_);
  mirror_ = std::make_unique<State>(setup_);
}

ScriptedCluster::~ScriptedCluster() {
  State again(setup_);
  for (const TimedEvent& event : log_) again.apply(event.at, event.what);
  EXPECT_EQ(digest_of(again), digest_of(state()));
  State restored(setup_);
  const Status status = restore(restored, snapshot_of(state()));
  EXPECT_TRUE(status) << (status ? "" : status.error().text());
  EXPECT_EQ(digest_of(restored), digest_of(state()));
  EXPECT_EQ(broken_invariant(restored), std::nullopt);
}

GangRequest ScriptedCluster::gang(std::uint32_t devices, std::string_view type) const {
  GangRequest gang;
  gang.type = *topology().find_type(type);
  gang.devices = devices;
  gang.node_devices = std::min(devices, topology().node_devices_max(gang.type));
  gang.host.cpu = 1000;
  return gang;
}

Submission ScriptedCluster::job(std::uint32_t devices) const {
  Submission submission;
  JobRequest& request = submission.request;
  request.name = "job";
  request.tenant = setup_.tenants->find("default").value_or(TenantId(1));
  request.estimate = Duration::hours(1);
  request.preemptible = true;
  RoleRequest& role = request.roles.emplace_back();
  role.devices_min = role.devices_max = devices;
  role.options.push_back({gang(devices), 1, std::nullopt});
  return submission;
}

Submission ScriptedCluster::elastic_job(std::uint32_t least, std::uint32_t most) const {
  Submission submission = job(most);
  RoleRequest& role = submission.request.roles.front();
  role.devices_min = least;
  for (std::uint32_t devices = most - 8; devices >= least && devices > 0; devices -= 8) {
    role.options.push_back({gang(devices), 1, std::nullopt});
  }
  return submission;
}

void ScriptedCluster::mirror(const Event& event) {
  Encoder out;
  encode(event, out);
  auto decoded =
      decode_event({.type = event.index(), .fields = out.bytes(), .plans = &setup_.plans});
  ASSERT_TRUE(decoded) << event_name(event.index()) << ": " << decoded.error().what;
  log_.push_back({.at = now_, .what = *std::move(decoded)});
  mirror_->apply(now_, log_.back().what);
  const auto broken = broken_invariant(*mirror_);
  ASSERT_EQ(broken, std::nullopt) << "after " << event_name(event.index()) << ", event "
                                  << log_.size();
}

const Outcome& ScriptedCluster::send(InputKind what, const std::string& request_id) {
  const Outcome& outcome =
      core_->handle({.at = now_, .what = std::move(what), .request_id = request_id});
  core_events_ = outcome.events;
  actions_ = outcome.actions;
  for (const Event& event : core_events_) mirror(event);
  EXPECT_EQ(digest_of(*mirror_), digest_of(state()));
  if (sharing_ == Sharing::kNever) {
    EXPECT_EQ(broken_metering(state()), std::nullopt);
  }
  return outcome;
}

void ScriptedCluster::decide(std::vector<Decision> decisions) {
  Proposal proposal{.version = state().version()};
  proposal.result.decisions = std::move(decisions);
  send(std::move(proposal));
}

JobId ScriptedCluster::submit(const Submission& submission, const std::string& request_id) {
  const Outcome& outcome = send(SubmitJob{submission}, request_id);
  EXPECT_TRUE(outcome.answer.status) << outcome.answer.status.error().text();
  return outcome.answer.job;
}

JobId ScriptedCluster::start(const Submission& submission) {
  const JobId id = submit(submission);
  tick();
  EXPECT_EQ(phase(id), JobPhase::kStarting);
  return id;
}

JobId ScriptedCluster::run(const Submission& submission) {
  const JobId id = start(submission);
  up(id);
  return id;
}

void ScriptedCluster::tick() {
  for (int i = 0; i < 20; ++i) {
    send(Tick{});
    const std::vector<Action> actions = actions_;
    for (const Action& action : actions) {
      if (!std::holds_alternative<RunFullPass>(action)) continue;
      Scheduler beside(*state().setup().tree);
      send(full_pass(state(), beside, now_));
    }
    if (core_->wake() > now_) return;
  }
  ADD_FAILURE() << "there is always more to do";
}

void ScriptedCluster::wait(Duration time) {
  const Instant until = now_ + time;
  tick();
  while (core_->wake() < until) {
    now_ = std::max(now_, core_->wake());
    tick();
  }
  now_ = until;
  tick();
}

void ScriptedCluster::up(JobId id) { send(RanksUp{id, job(id).attempt, job(id).epoch}); }

void ScriptedCluster::end(JobId id, ExitKind kind) {
  Blame blame;
  if (kind != ExitKind::kDone) blame = {FaultLayer::kProgram, NodeId(), "exit status 1"};
  const Progress progress{.done = kind == ExitKind::kDone ? 1.0 : job(id).done};
  send(RanksEnded{id, job(id).attempt, kind, blame, progress, true});
}

void ScriptedCluster::gone(JobId id, const std::vector<NodeId>& nodes) {
  send(RanksGone{id, job(id).attempt, nodes, std::nullopt});
}

std::vector<NodeId> ScriptedCluster::nodes(JobId id) const {
  std::vector<NodeId> nodes;
  if (!holds_devices(phase(id))) return nodes;
  for (const NodeDevices& at : state().running(id).gangs.front().allocation.ranks) {
    nodes.push_back(at.node);
  }
  return nodes;
}

}  // namespace orrery

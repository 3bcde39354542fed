#include "verbs/local/local_cluster.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <utility>

#include "api/agents/certificates.hpp"
#include "api/cluster_directory.hpp"
#include "base/format/document.hpp"
#include "base/system/real_clock.hpp"
#include "node/launch/run_directory.hpp"
#include "orrery/v1/orrery.pb.h"
#include "verbs/local/local_gateway.hpp"
#include "verbs/local/program_log.hpp"

namespace orrery {

namespace {

constexpr std::size_t kFileMax = 4 << 20;
constexpr Duration kLook = Duration::milliseconds(20);
constexpr Duration kStartPatience = Duration::seconds(60);
constexpr Duration kEndPatience = Duration::seconds(10);
/// Ranks have their grace before a keeper kills them; then it is killed, which ends them at once.
constexpr Duration kKeeperPatience = Duration::seconds(40);

/// Sends SIGTERM to all processes, then kills those that are left after `patience`.
void end_all(const std::vector<ProcessIdentity>& processes, Duration patience) {
  std::vector<ProcessHandle> handles;
  handles.reserve(processes.size());
  for (const ProcessIdentity& each : processes) handles.emplace_back(each);
  for (const ProcessHandle& handle : handles) handle.signal(SIGTERM);
  const RealClock clock;
  const Instant until = clock.now_monotonic() + patience;
  for (const ProcessHandle& handle : handles) {
    if (handle.ended_within(std::max(Duration(), until - clock.now_monotonic()))) continue;
    handle.signal(SIGKILL);
    (void)handle.ended_within(patience);
  }
}

/// Makes a request for the existing key, so that the agent keeps its identity.
Result<CertificateRequest> request_of(Storage& storage, const std::string& directory) {
  const Result<AgentTls> before = read_agent_tls(storage, directory);
  if (!before) return request_certificate();
  Result<std::string> renewal = request_renewal(before->identity.key);
  if (!renewal) return request_certificate();
  return CertificateRequest{*std::move(renewal), before->identity.key};
}

}  // namespace

Result<LocalCluster> LocalCluster::open(const std::string& directory, Duration patience) {
  LocalCluster cluster;
  std::error_code failed;
  cluster.directory_ = std::filesystem::absolute(directory, failed).lexically_normal().string();
  const std::string path = cluster.directory_ + "/local.lock";
  cluster.lock_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!cluster.lock_.valid()) return environment_error(fmt::format("cannot write {}", path));
  const RealClock clock;
  const Instant until = clock.now_monotonic() + patience;
  while (::flock(cluster.lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (clock.now_monotonic() < until) {
      (void)::poll(nullptr, 0, static_cast<int>(kLook.count_ns() / 1'000'000));
      continue;
    }
    return environment_error(fmt::format(
        "another `orrery up`, `down` or `fleet apply` is running for {}", cluster.directory_));
  }
  if (Status loaded = cluster.load(); !loaded) return forward_error(loaded);
  return cluster;
}

/// Reads the nodes of fleet.yaml, unless the file has not changed since the last call.
Status LocalCluster::read_nodes() {
  Result<std::string> text = read_file(directory_ + "/fleet.yaml", kFileMax);
  if (!text) return forward_error(text);
  if (*text == fleet_text_) return {};
  const Result<std::set<std::string>> lent = read_lent_nodes(directory_);
  if (!lent) return tl::unexpected(lent.error());
  Result<std::vector<LocalNode>> nodes = read_local_fleet(directory_);
  if (!nodes) return forward_error(nodes);
  nodes_ = *std::move(nodes);
  others_.lent =
      std::erase_if(nodes_, [&](const LocalNode& node) { return lent->contains(node.name); });
  fleet_text_ = *std::move(text);
  return {};
}

Status LocalCluster::load() {
  if (Status read = read_nodes(); !read) return read;
  Result<LocalRecord> record = read_local_record(*storage_, directory_);
  if (!record) return forward_error(record);
  *record_ = *std::move(record);
  return {};
}

Status LocalCluster::save() { return write_local_record(*storage_, directory_, *record_); }

LocalServerProcesses LocalCluster::servers() {
  return {*storage_, directory_, *record_, [this] { return save(); }};
}

std::set<std::string> LocalCluster::node_names() const {
  std::set<std::string> names;
  for (const LocalNode& node : nodes_) names.insert(node.name);
  return names;
}

std::vector<std::string> LocalCluster::agents_beside(const std::set<std::string>& nodes) const {
  std::vector<std::string> beside;
  for (const LocalProcess& each : record_->processes) {
    if (each.role == LocalRole::kAgent && !nodes.contains(each.name)) beside.push_back(each.name);
  }
  return beside;
}

std::string LocalCluster::node_directory(const std::string& name) const {
  return directory_ + "/nodes/" + name;
}

/// Jobs of other users go through the directory to what is theirs; every secret in it has a mode of
/// its own.
void LocalCluster::let_users_through() const {
  if (::geteuid() != 0) return;
  constexpr mode_t kSearchable = 0711;
  (void)::chmod(directory_.c_str(), kSearchable);
  (void)::chmod((directory_ + "/nodes").c_str(), kSearchable);
}

Result<bool> LocalCluster::runs_jobs_as_root() {
  Result<ClusterAddress> cluster = read_cluster_address(*storage_, directory_);
  if (!cluster) return forward_error(cluster);
  Client client(client_options(*cluster));
  constexpr std::uint32_t kPage = 1'000;
  v1::ListNodesRequest request;
  request.set_page_size(kPage);
  const auto nodes = client.call<v1::ListNodesResponse>("ListNodes", request);
  if (!nodes) return tl::unexpected(nodes.error());
  return std::any_of(nodes->nodes().begin(), nodes->nodes().end(),
                     [](const v1::Node& node) { return node.job_users() == "any"; });
}

Result<std::vector<std::string>> LocalCluster::start(const ServerStart& options) {
  if (StorageStatus made = storage_->make_directories(directory_ + "/nodes"); !made) {
    return forward_error(made);
  }
  let_users_through();
  if (Status started = start_servers(options); !started) return forward_error(started);
  // After a kill while the fleet changed, the controller completes fleet.yaml as it starts.
  if (Status read = read_nodes(); !read) return forward_error(read);
  if (Status compared = compare_with_cluster(); !compared) return forward_error(compared);
  for (const LocalNode& node : nodes_) {
    if (Status started = start_agent(node); !started) return forward_error(started);
  }
  if (Status ready = wait_for_nodes(); !ready) return forward_error(ready);
  return started_;
}

Status LocalCluster::start_servers(const ServerStart& options) {
  Result<std::vector<std::string>> started = servers().start(options);
  if (!started) return forward_error(started);
  started_ = *std::move(started);
  Result<ClusterAddress> cluster = read_cluster_address(*storage_, directory_);
  if (!cluster) return forward_error(cluster);
  note_addresses(*cluster);
  const Result<GatewayStarted> gateway =
      start_local_gateway(*storage_, *record_,
                          {.program = program_directory() + "/orrery-gateway",
                           .directory = directory_,
                           .controllers = controllers_});
  if (!gateway) return tl::unexpected(gateway.error());
  if (*gateway == GatewayStarted::kNow) started_.emplace_back(kLocalGateway);
  return {};
}

void LocalCluster::note_addresses(const ClusterAddress& cluster) {
  address_ = cluster.address;
  std::vector<std::string> all = cluster.controllers;
  std::ranges::sort(all);  // agents get the same text after each takeover
  controllers_ = fmt::format("{}", fmt::join(all, ","));
}

/// The directory holds the authority's key, so that a local cluster is certified by what starts it.
/// An agent gets a new certificate each time it starts, and keeps its key.
Status LocalCluster::certify_agent(const LocalNode& node) {
  const auto authority_file = [this, tls = servers().tls_directory()](const char* name) {
    return storage_->read_file(fmt::format("{}/{}", tls, name), kFileMax);
  };
  StorageResult<std::string> certificate = authority_file("ca.pem");
  if (!certificate) return forward_error(certificate);
  StorageResult<std::string> key = authority_file("ca.key");
  if (!key) return forward_error(key);
  Result<CertificateRequest> request = request_of(*storage_, node_directory(node.name));
  if (!request) return forward_error(request);
  const RealClock clock;
  Result<std::string> certified = certify_node(
      {*certificate, *key}, {.node = node.name, .request = request->request}, clock.now_wall());
  if (!certified) return forward_error(certified);
  return write_agent_tls(*storage_, node_directory(node.name),
                         {{*certified, request->key}, *certificate});
}

Status LocalCluster::start_agent(const LocalNode& node) {
  const std::string directory = node_directory(node.name);
  LocalProcess& agent = record_->process(LocalRole::kAgent, node.name);
  if (ProcessHandle(agent.process).alive()) {
    if (agent.controller == controllers_) return {};
    // It looks for controllers where they are no more; what it runs goes on without it.
    end_all({agent.process}, kEndPatience);
  }
  StorageStatus made = storage_->make_directories(directory);
  if (!made) return forward_error(made);
  if (Status certified = certify_agent(node); !certified) return certified;
  agent_logs_from_[node.name] = file_size(directory + "/agent.log");
  Result<ProcessIdentity> started = start_process(
      {.program = program_directory() + "/orrery-agent",
       .arguments = {"--controller", controllers_, "--node", node.name, "--dir", directory,
                     "--emulate", fmt::format("{}:{}", node.type, node.accelerators), "--boot",
                     fmt::format("{}", record_->boot), "--allow-agent-user"},
       .log = directory + "/agent.log"});
  if (!started) return forward_error(started);
  agent.process = *started;
  agent.controller = controllers_;
  started_.push_back(node.name);
  StorageStatus put =
      storage_->write_file(directory + "/agent.pid", fmt::format("{}\n", started->pid));
  if (!put) return forward_error(put);
  return save();
}

/// Drops the nodes that fleet.yaml has and the cluster has not, because the file was not applied.
/// Ends the agents of nodes that neither of them has.
Status LocalCluster::compare_with_cluster() {
  Result<ClusterAddress> cluster = read_cluster_address(*storage_, directory_);
  if (!cluster) return forward_error(cluster);
  Client client(client_options(*cluster));
  const auto state = client.call<v1::Cluster>("GetCluster", v1::GetClusterRequest());
  if (!state) return tl::unexpected(state.error());
  for (const std::string& name : state->unknown_nodes()) {
    const auto gone =
        std::erase_if(nodes_, [&](const LocalNode& node) { return node.name == name; });
    if (gone > 0) others_.unknown.push_back(name);
  }
  std::set<std::string> kept = node_names();
  kept.insert(state->missing_nodes().begin(), state->missing_nodes().end());
  const std::vector<std::string> retired = agents_beside(kept);
  if (retired.empty()) return {};
  end_nodes(retired);
  return save();
}

/// Returns whether the agents of all nodes are connected and have reported. A drained node, which
/// does not become ready, counts.
Result<bool> LocalCluster::nodes_settled(Client& client) const {
  constexpr std::uint32_t kPage = 1'000;
  v1::ListNodesRequest request;
  request.set_page_size(kPage);
  const auto answer = client.call<v1::ListNodesResponse>("ListNodes", request);
  if (!answer) return tl::unexpected(answer.error());
  std::set<std::string> settled;
  for (const v1::Node& node : answer->nodes()) {
    const std::string& health = node.health();
    const bool may_change = health == "joining" || health == "suspect" || health == "lost";
    if (node.connected() && !may_change) settled.insert(node.name());
  }
  return std::ranges::includes(settled, node_names());
}

Status LocalCluster::wait_for_nodes() {
  Result<ClusterAddress> cluster = read_cluster_address(*storage_, directory_);
  if (!cluster) return forward_error(cluster);
  Client client(client_options(*cluster));
  std::vector<ProcessHandle> agents;
  agents.reserve(nodes_.size());
  for (const LocalNode& node : nodes_)
    agents.emplace_back(record_->process(LocalRole::kAgent, node.name).process);
  const RealClock clock;
  const Instant until = clock.now_monotonic() + kStartPatience;
  while (true) {
    Result<v1::Cluster> state = client.call<v1::Cluster>("GetCluster", v1::GetClusterRequest());
    if (!state) return forward_error(state);
    if (!state->halted().empty()) return environment_error(state->halted());
    if (state->nodes_ready() >= state->nodes()) return {};
    const Result<bool> settled = nodes_settled(client);
    if (!settled) return tl::unexpected(settled.error());
    if (*settled) return {};
    for (std::size_t i = 0; i < agents.size(); ++i) {
      if (!agents[i].ended_within(i == 0 ? kLook : Duration())) continue;
      return environment_error(fmt::format("the agent of {} exited during startup:{}",
                                           nodes_[i].name,
                                           log_since(node_directory(nodes_[i].name) + "/agent.log",
                                                     agent_logs_from_[nodes_[i].name])));
    }
    if (clock.now_monotonic() > until) return {};  // drained or lost ones stay so: `nodes` says why
  }
}

std::size_t LocalCluster::end_keepers(const std::vector<std::string>& nodes) {
  std::vector<ProcessIdentity> guards;
  for (const std::string& node : nodes) {
    // Each is held for as long as a keeper or its guard lives.
    for (const std::string& lock : attempt_locks(node_directory(node))) {
      const ProcessIdentity guard = lock_holder(lock);
      if (guard.pid > 0) guards.push_back(guard);
    }
  }
  end_all(guards, kKeeperPatience);
  for (const std::string& node : nodes) leave_run_directory(node_directory(node));
  return guards.size();
}

bool LocalCluster::runs() const {
  return std::any_of(record_->processes.begin(), record_->processes.end(),
                     [](const LocalProcess& each) { return ProcessHandle(each.process).alive(); });
}

void LocalCluster::end_nodes(const std::vector<std::string>& nodes) {
  std::vector<ProcessIdentity> agents;
  agents.reserve(nodes.size());
  for (const std::string& node : nodes)
    agents.push_back(record_->process(LocalRole::kAgent, node).process);
  end_all(agents, kEndPatience);
  (void)end_keepers(nodes);
  for (const std::string& node : nodes) {
    std::erase_if(record_->processes, [&](const LocalProcess& each) {
      return each.role == LocalRole::kAgent && each.name == node;
    });
  }
}

Status LocalCluster::wait_until_ready(const std::string& node) {
  Result<ClusterAddress> cluster = read_cluster_address(*storage_, directory_);
  if (!cluster) return forward_error(cluster);
  Client client(client_options(*cluster));
  const ProcessHandle agent(record_->process(LocalRole::kAgent, node).process);
  const std::string log = node_directory(node) + "/agent.log";
  const RealClock clock;
  const Instant until = clock.now_monotonic() + kStartPatience;
  v1::GetNodeRequest request;
  request.set_name(node);
  while (true) {
    const auto state = client.call<v1::Node>("GetNode", request);
    if (!state) return tl::unexpected(state.error());
    if (state->connected() && state->health() == "ready") return {};
    if (agent.ended_within(kLook)) {
      return environment_error(fmt::format("the agent of {} ended while it started:{}", node,
                                           log_since(log, agent_logs_from_[node])));
    }
    if (clock.now_monotonic() > until) {
      return environment_error(fmt::format("{} is {} after {}, expected ready; see {}", node,
                                           state->health(), kStartPatience.text(), log));
    }
  }
}

/// Whether another apply has changed the fleet since open(): it ends the agent, once it gets the
/// lock.
bool LocalCluster::is_retired(const std::string& node) const {
  const auto nodes = read_local_fleet(directory_);
  return nodes && std::ranges::find(*nodes, node, &LocalNode::name) == nodes->end();
}

Result<LocalCluster::Followed> LocalCluster::follow_fleet(const std::set<std::string>& replaced) {
  const Result<ClusterAddress> cluster = read_cluster_address(*storage_, directory_);
  if (!cluster) return tl::unexpected(cluster.error());
  note_addresses(*cluster);
  std::set<std::string> kept = node_names();
  for (const std::string& node : replaced) kept.erase(node);
  Followed done{.started = {}, .ended = agents_beside(kept)};
  const auto known = [&](const std::string& name) {
    return std::any_of(record_->processes.begin(), record_->processes.end(),
                       [&](const LocalProcess& each) {
                         return each.role == LocalRole::kAgent && each.name == name;
                       });
  };
  end_nodes(done.ended);
  if (Status saved = save(); !saved) return forward_error(saved);
  // A node that is there already keeps its agent, or goes on without one.
  for (const LocalNode& node : nodes_) {
    if (known(node.name)) continue;
    if (Status started = start_agent(node); !started) {
      if (is_retired(node.name)) continue;
      return forward_error(started);
    }
    done.started.push_back(node.name);
  }
  let_users_through();
  for (const std::string& node : done.started) {
    if (Status ready = wait_until_ready(node); !ready) {
      if (!is_retired(node)) return forward_error(ready);
    }
  }
  return done;
}

Result<LocalCluster::Ended> LocalCluster::stop(Keepers keepers) {
  Ended ended;
  std::map<LocalRole, std::vector<ProcessIdentity>> living;
  for (const LocalProcess& each : record_->processes) {
    if (ProcessHandle(each.process).alive()) living[each.role].push_back(each.process);
  }
  // Controllers end before agents: they must not take what ends after them for the end of a job.
  for (const LocalRole role :
       {LocalRole::kGateway, LocalRole::kController, LocalRole::kAgent, LocalRole::kStore}) {
    end_all(living[role], kEndPatience);
  }
  ended.controllers = living[LocalRole::kController].size();
  ended.agents = living[LocalRole::kAgent].size();
  ended.stores = living[LocalRole::kStore].size();
  ended.gateways = living[LocalRole::kGateway].size();
  record_->processes.clear();
  if (keepers == Keepers::kEnd) {
    std::vector<std::string> nodes;
    nodes.reserve(nodes_.size());
    for (const LocalNode& node : nodes_) nodes.push_back(node.name);
    ended.keepers = end_keepers(nodes);
    ++record_->boot;
  }
  ended.other_controller = lock_holder(directory_ + "/store/lock").pid;
  if (Status saved = save(); !saved) return forward_error(saved);
  return ended;
}

}  // namespace orrery

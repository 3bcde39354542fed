#include "executor/agents/agent_book.hpp"

#include <fmt/format.h>

#include "base/text/nearest_name.hpp"

namespace orrery {
namespace {

/// An agent that was silent for this long may be dead: it sends a heartbeat a second.
constexpr Duration kSilence = Duration::seconds(3);
/// For this long an agent may retry although another one has its node: that one may be dead.
constexpr Duration kContest = Duration::seconds(15);

bool may_run(const AgentOpening& agent, const std::string& run_as) {
  switch (agent.job_users) {
    case JobUsers::kUntold:
    case JobUsers::kAny:
      return true;
    case JobUsers::kMapped:
      return !run_as.empty();
    case JobUsers::kOwn:
      return run_as.empty() || run_as == agent.user;
  }
  return true;
}

}  // namespace

AgentBook::AgentBook(const Topology& topology)
    : topology_(&topology), agents_(topology.node_count()) {
  name_nodes();
}

void AgentBook::name_nodes() {
  by_name_.clear();
  by_name_.reserve(agents_.size());
  for (std::size_t at = 0; at < agents_.size(); ++at) {
    by_name_.emplace(topology_->node_name(NodeId::at(at)), NodeId::at(at));
  }
}

std::vector<AgentSession*> AgentBook::use(const Topology& topology, const FleetMap& map) {
  std::vector<AgentSession*> ended;
  for (const NodeId node : map.retired()) {
    if (AgentSession* session = of(node).session; session != nullptr) ended.push_back(session);
  }
  std::vector<AgentRecord> agents(map.nodes_before.size());
  for (std::size_t at = 0; at < agents.size(); ++at) {
    const NodeId before = map.nodes_before[at];
    if (before.valid()) agents[at] = std::move(agents_[before.value()]);
  }
  agents_ = std::move(agents);
  topology_ = &topology;
  name_nodes();
  paces_.clear();  // agents report them again within seconds
  return ended;
}

std::optional<NodeId> AgentBook::node_named(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? std::nullopt : std::optional(found->second);
}

Status AgentBook::check(NodeId node, const AgentOpening& opening) const {
  const NodeGroup& group = topology_->group(node);
  const std::string& type = topology_->accelerator(group.type).id;
  const std::uint32_t count = group.devices;
  const bool same_type = topology_->find_type(opening.inventory.accelerator) == group.type;
  if (same_type && opening.inventory.accelerators == count) return {};
  const NodeInventory& has = opening.inventory;
  const std::string found = has.accelerators == 0
                                ? std::string("no accelerators")
                                : fmt::format("{} x {}", has.accelerators, has.accelerator);
  return infeasible(
      fmt::format("node \"{}\" has {}, the fleet says {} x {}", opening.node, found, count, type));
}

/// Whether the connected agent is the same process, has an older key, or may be dead.
bool AgentBook::gives_way(const AgentRecord& holder, const AgentOpening& opening,
                          Instant now) const {
  const AgentOpening& has = *holder.opening;
  const bool same = has.boot == opening.boot && has.incarnation == opening.incarnation &&
                    has.process == opening.process;
  return same || has.key.hash != opening.key.hash || now - holder.last >= kSilence;
}

Result<NodeId> AgentBook::open(const AgentOpening& opening, AgentSession& session, Instant now) {
  const std::optional<NodeId> node = node_named(opening.node);
  if (!node) return infeasible(fmt::format("the fleet has no node \"{}\"", opening.node));
  if (Status fits = check(*node, opening); !fits) return forward_error(fits);
  AgentRecord& record = agents_[node->value()];
  if (record.session != nullptr) {
    if (!gives_way(record, opening, now)) {
      std::string why = fmt::format(
          "another agent speaks for \"{}\" with the same certificate, at {} with boot {:016x}, "
          "this one has boot {:016x}: a node has one agent",
          opening.node, record.opening->address, record.opening->boot, opening.boot);
      const RefusedAgent& refused = refuse(opening, {opening.address, why, now, now, 1, false});
      if (refused.final) return input_error({}, std::move(why));
      return environment_error(std::move(why));
    }
    const Error why{ErrorKind::kInfeasible, "another agent speaks for the node now", {}};
    if (record.opening->key.hash != opening.key.hash) {
      record.session->replace(why);
    } else {
      record.session->close(why);
    }
  }
  record = {&session, opening, {}, now, std::move(record.refused)};
  return *node;
}

Status AgentBook::check_user(const std::string& run_as) const {
  bool connected = false;
  for (const AgentRecord& record : agents_) {
    if (record.session == nullptr) continue;
    connected = true;
    if (may_run(*record.opening, run_as)) return {};
  }
  if (!connected) return {};
  if (run_as.empty()) {
    return infeasible(
        "no node may run it: their agents are root and the job has no user. Expected run_as of "
        "its tenant (tenants.yaml) or of the submitter, or allow_agent_user on the nodes");
  }
  return infeasible(fmt::format(
      "no node may run it as \"{}\": their agents are not root and run as other users", run_as));
}

const RefusedAgent& AgentBook::refuse(const AgentOpening& opening, RefusedAgent refused) {
  std::optional<RefusedAgent>& known = agents_[node_named(opening.node)->value()].refused;
  const bool again = known && known->address == refused.address &&
                     refused.last - known->last < kContest && !known->final;
  if (again) {
    refused.first = known->first;
    refused.times = known->times + 1;
  }
  refused.final = refused.final || refused.last - refused.first >= kContest;
  known = std::move(refused);
  return *known;
}

std::optional<NodeId> AgentBook::close(const AgentSession& session) {
  for (std::size_t n = 0; n < agents_.size(); ++n) {
    if (agents_[n].session != &session) continue;
    agents_[n].session = nullptr;
    return NodeId::at(n);
  }
  return std::nullopt;
}

void AgentBook::note(NodeId node, const AttemptNotes& notes) {
  if (!notes.paces.empty()) note_paces(node, notes);
  AttemptNotes& known = notes_.reported(notes.attempt.job);
  const bool older = notes.attempt.attempt < known.attempt.attempt;
  const bool behind = notes.attempt == known.attempt && notes.progress.step < known.progress.step;
  if (!older && !behind) known = notes;
}

void AgentBook::note_paces(NodeId node, const AttemptNotes& notes) {
  JobPaces& known = paces_.reported(notes.attempt.job);
  if (notes.attempt.attempt < known.attempt) return;
  if (notes.attempt.attempt > known.attempt) known = {notes.attempt.attempt, {}};
  known.nodes[node] = notes.paces;
}

std::vector<NodePaces> AgentBook::paces_of(const AttemptId& id) const {
  std::vector<NodePaces> paces;
  const JobPaces* known = paces_.find(id.job);
  if (known == nullptr || known->attempt != id.attempt) return paces;
  paces.reserve(known->nodes.size());
  for (const auto& [node, ranks] : known->nodes) paces.push_back({node, ranks});
  return paces;
}

const AttemptNotes* AgentBook::notes_of(JobId job) const { return notes_.find(job); }

}  // namespace orrery

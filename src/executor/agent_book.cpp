#include "executor/agent_book.hpp"

#include <fmt/format.h>

#include "base/nearest_name.hpp"

namespace orrery {
namespace {

/// Jobs whose last words are kept; of ended ones the oldest are forgotten.
constexpr std::size_t kNotesMax = 10'000;

}  // namespace

AgentBook::AgentBook(const Topology& topology)
    : topology_(topology), agents_(topology.node_count()) {
  by_name_.reserve(agents_.size());
  for (std::size_t at = 0; at < agents_.size(); ++at) {
    by_name_.emplace(topology.node_name(NodeId::at(at)), NodeId::at(at));
  }
}

std::optional<NodeId> AgentBook::node_named(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? std::nullopt : std::optional(found->second);
}

Status AgentBook::check(NodeId node, const AgentOpening& opening) const {
  const NodeGroup& group = topology_.group(node);
  const std::string& type = topology_.accelerator(group.type).id;
  const std::uint32_t count = group.devices;
  const bool same_type = topology_.find_type(opening.inventory.accelerator) == group.type;
  if (same_type && opening.inventory.accelerators == count) return {};
  const NodeInventory& has = opening.inventory;
  const std::string found = has.accelerators == 0
                                ? std::string("no accelerators")
                                : fmt::format("{} x {}", has.accelerators, has.accelerator);
  return infeasible(
      fmt::format("node \"{}\" has {}, the fleet says {} x {}", opening.node, found, count, type));
}

Result<NodeId> AgentBook::open(const AgentOpening& opening, AgentSession& session) {
  const std::optional<NodeId> node = node_named(opening.node);
  if (!node) return infeasible(fmt::format("the fleet has no node \"{}\"", opening.node));
  if (Status fits = check(*node, opening); !fits) return forward_error(fits);
  AgentRecord& record = agents_[node->value()];
  if (record.session != nullptr) {
    const bool older =
        opening.boot == record.opening->boot && opening.incarnation < record.opening->incarnation;
    if (older) return infeasible(fmt::format("a newer agent of \"{}\" is there", opening.node));
    record.session->close({ErrorKind::kInfeasible, "another agent speaks for the node now", {}});
  }
  record = {&session, opening, {}};
  return *node;
}

void AgentBook::close(const AgentSession& session) {
  for (AgentRecord& record : agents_) {
    if (record.session == &session) record.session = nullptr;
  }
}

void AgentBook::note(NodeId node, const AttemptNotes& notes) {
  if (!notes.paces.empty()) note_paces(node, notes);
  const auto [at, is_new] = notes_.try_emplace(notes.attempt.job, notes);
  AttemptNotes& known = at->second;
  const bool older = notes.attempt < known.attempt;
  const bool behind = notes.attempt == known.attempt && notes.progress.step < known.progress.step;
  if (!is_new && !older && !behind) known = notes;
  if (notes_.size() > kNotesMax) notes_.erase(notes_.begin());
}

void AgentBook::note_paces(NodeId node, const AttemptNotes& notes) {
  JobPaces& known = paces_[notes.attempt.job];
  if (notes.attempt.attempt < known.attempt) return;
  if (notes.attempt.attempt > known.attempt) known = {notes.attempt.attempt, {}};
  known.nodes[node] = notes.paces;
  if (paces_.size() > kNotesMax) paces_.erase(paces_.begin());
}

std::vector<NodePaces> AgentBook::paces_of(const AttemptId& id) const {
  std::vector<NodePaces> paces;
  const auto found = paces_.find(id.job);
  if (found == paces_.end() || found->second.attempt != id.attempt) return paces;
  paces.reserve(found->second.nodes.size());
  for (const auto& [node, ranks] : found->second.nodes) paces.push_back({node, ranks});
  return paces;
}

const AttemptNotes* AgentBook::notes_of(JobId job) const {
  const auto found = notes_.find(job);
  return found == notes_.end() ? nullptr : &found->second;
}

}  // namespace orrery

#include "serving/admission/fair_queue.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace orrery {

std::string_view name_of(ServiceClass service_class) {
  switch (service_class) {
    case ServiceClass::kInteractive:
      return "interactive";
    case ServiceClass::kBatch:
      return "batch";
  }
  return "";
}

/// Takes a flow out of the orders of its level, before its tag, weight or load changes.
void FairQueue::unlink(Flow flow) {
  const FlowState& state = flows_[flow];
  if (state.waiting.empty()) return;
  Level& level = levels_[state.level];
  level.starts.erase({state.start, flow});
  level.loads.erase({state.tokens / state.weight, flow});
}

void FairQueue::link(Flow flow) {
  const FlowState& state = flows_[flow];
  if (state.waiting.empty()) return;
  Level& level = levels_[state.level];
  level.starts.insert({state.start, flow});
  level.loads.insert({state.tokens / state.weight, flow});
}

FairQueue::Flow FairQueue::flow(const QueueLevel& level, std::string_view tenant, double weight) {
  ORRERY_ASSERT(weight > 0, "a tenant has a weight");
  const auto fresh = static_cast<Flow>(flows_.size());
  const auto [at, added] = names_.try_emplace({level, std::string(tenant)}, fresh);
  if (added) flows_.push_back({.level = level, .weight = weight});
  if (flows_[at->second].weight != weight) {
    unlink(at->second);
    flows_[at->second].weight = weight;
    link(at->second);
  }
  return at->second;
}

void FairQueue::pass(Flow flow, std::uint64_t tokens) {
  FlowState& state = flows_[flow];
  Level& level = levels_[state.level];
  ORRERY_ASSERT(state.waiting.empty(), "requests that wait come first");
  level.served = std::max(level.served, state.start);
  state.start = level.served + static_cast<double>(tokens) / state.weight;
}

FairQueue::Ticket FairQueue::push(Flow flow, std::uint64_t tokens, Instant deadline) {
  const Ticket ticket = ++last_ticket_;
  FlowState& state = flows_[flow];
  unlink(flow);
  if (state.waiting.empty()) state.start = std::max(state.start, levels_[state.level].served);
  const auto counted = static_cast<double>(tokens);
  state.tokens += counted;
  state.waiting.insert({deadline, ticket});
  requests_.emplace(ticket, Request{flow, counted, deadline});
  link(flow);
  return ticket;
}

FairQueue::Ticket FairQueue::push_again() {
  again_.insert(++last_ticket_);
  return last_ticket_;
}

void FairQueue::take_out(Ticket ticket) {
  const auto at = requests_.find(ticket);
  ORRERY_ASSERT(at != requests_.end(), "the request waits");
  const Request request = at->second;
  requests_.erase(at);
  FlowState& state = flows_[request.flow];
  state.waiting.erase({request.deadline, ticket});
  // A sum of differences would keep the errors of rounding.
  state.tokens = state.waiting.empty() ? 0 : state.tokens - request.tokens;
}

void FairQueue::serve(Ticket ticket) {
  ORRERY_ASSERT(front() == ticket, "the front is served");
  if (again_.erase(ticket) > 0) return;
  const Request request = requests_.at(ticket);
  FlowState& state = flows_[request.flow];
  unlink(request.flow);
  take_out(ticket);
  levels_[state.level].served = state.start;
  state.start += request.tokens / state.weight;
  link(request.flow);
}

void FairQueue::erase(Ticket ticket) {
  if (again_.erase(ticket) > 0) return;
  const Flow flow = requests_.at(ticket).flow;
  unlink(flow);
  take_out(ticket);
  link(flow);
}

void FairQueue::settle(Flow flow, double tokens_more) {
  unlink(flow);
  FlowState& state = flows_[flow];
  const double start = state.start + tokens_more / state.weight;
  state.start = std::max(start, levels_[state.level].served);
  link(flow);
}

std::optional<FairQueue::Ticket> FairQueue::front() const {
  if (!again_.empty()) return *again_.begin();
  for (const auto& [key, level] : levels_) {
    if (level.starts.empty()) continue;
    return flows_[level.starts.begin()->second].waiting.begin()->second;
  }
  return std::nullopt;
}

std::optional<FairQueue::Ticket> FairQueue::last_but(Flow flow, std::uint64_t tokens) const {
  const FlowState& state = flows_[flow];
  for (auto at = levels_.rbegin(); at != levels_.rend() && at->first >= state.level; ++at) {
    if (at->second.loads.empty()) continue;
    const auto& [load, longest] = *at->second.loads.rbegin();
    const double own = (state.tokens + static_cast<double>(tokens)) / state.weight;
    if (at->first == state.level && (longest == flow || load <= own)) return std::nullopt;
    return flows_[longest].waiting.rbegin()->second;
  }
  return std::nullopt;
}

std::vector<FairQueue::Ticket> FairQueue::tickets() const {
  std::vector<Ticket> all(again_.begin(), again_.end());
  for (const auto& [ticket, request] : requests_) all.push_back(ticket);
  return all;
}

double FairQueue::tokens_ahead(Flow flow, std::uint64_t tokens) const {
  const FlowState& own = flows_[flow];
  const double share = (own.tokens + static_cast<double>(tokens)) / own.weight;
  double ahead = own.tokens;
  for (const FlowState& each : flows_) {
    if (&each == &own) continue;
    if (each.level < own.level) ahead += each.tokens;
    if (each.level == own.level) ahead += std::min(each.tokens, share * each.weight);
  }
  return ahead;
}

}  // namespace orrery

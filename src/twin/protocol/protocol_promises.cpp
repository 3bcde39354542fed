// Promises that a protocol world must keep after every input, and at its end.
#include <fmt/format.h>

#include <algorithm>

#include "control/state/invariants.hpp"
#include "twin/protocol/protocol_world.hpp"

namespace orrery {
namespace {

std::string_view word_of(JobPhase phase) {
  for (const EnumWord<JobPhase>& each : enum_words(phase)) {
    if (each.value == phase) return each.word;
  }
  return {};
}

std::string_view word_of(NodeHealth health) {
  for (const EnumWord<NodeHealth>& each : enum_words(health)) {
    if (each.value == health) return each.word;
  }
  return {};
}

}  // namespace

void ProtocolWorld::note_durable(std::span<const Event> events) {
  for (const Event& event : events) {
    if (const auto* end = std::get_if<JobEnded>(&event)) {
      ended_.resize(std::max(ended_.size(), std::size_t{end->job.value()} + 1), JobPhase::kHeld);
      ended_[end->job.value()] = end->phase;
    }
    const auto* submitted = std::get_if<JobSubmitted>(&event);
    if (submitted == nullptr) continue;
    for (std::size_t n = 0; n < clients_.size(); ++n) {
      if (submitted->submission.request.name != fmt::format("job-{}", n)) continue;
      if (clients_[n].made) return wrong(fmt::format("submission {} became two jobs", n));
      clients_[n].made = submitted->job;
      nodes_.know(submitted->job, clients_[n].job);
    }
  }
}

void ProtocolWorld::check_jobs() {
  ended_.resize(std::max(ended_.size(), state().jobs()), JobPhase::kHeld);
  for (std::size_t n = 0; n < clients_.size(); ++n) {
    const Client& client = clients_[n];
    if (!client.made) continue;
    const JobId id = *client.made;
    if (!state().has(id) || state().job(id).name != fmt::format("job-{}", n)) {
      return wrong(fmt::format("submission {} is lost", n));
    }
    const Job& job = state().job(id);
    const JobPhase end = ended_[id.value()];
    if (ended(end) && job.phase != end) {
      return wrong(fmt::format("job {} was {} and is {}", n, word_of(end), word_of(job.phase)));
    }
    if (client.cancelled && !ended(job.phase) && job.phase != JobPhase::kStopping) {
      return wrong(fmt::format("job {} goes on though it was cancelled", n));
    }
  }
  if (const std::optional<std::string> broken = broken_invariant(state())) return wrong(*broken);
  show_changes();
}

/// The deciding part of the state: a line for each job and each node.
std::vector<std::string> ProtocolWorld::picture(const State& state) const {
  std::vector<std::string> lines;
  lines.reserve(state.jobs() + nodes_.size() + 1);
  for (std::size_t at = 0; at < state.jobs(); ++at) {
    const Job& job = state.job(JobId::at(at));
    std::string line =
        fmt::format("job {} {} attempt {} epoch {} up {} stop {} cancel {}", at, word_of(job.phase),
                    job.attempt, job.epoch, job.up, static_cast<int>(job.stop), job.cancel);
    if (holds_devices(job.phase)) {
      for (const PlacedGang& gang : state.running(job.id).gangs) {
        for (const NodeDevices& part : gang.allocation.ranks) {
          line += fmt::format(" {}:{:x}", part.node.value(), part.devices);
        }
      }
    }
    lines.push_back(std::move(line));
  }
  for (std::size_t at = 0; at < nodes_.size(); ++at) {
    const NodeRecord& node = state.node(NodeId::at(at));
    lines.push_back(fmt::format("node {} {} boot {} free {:x} spare {}", at, word_of(node.health),
                                node.boot, state.fleet().view().node(NodeId::at(at)).free_mask,
                                node.spare));
  }
  std::string ghosts = "ghosts";
  for (const Ghost& ghost : state.ghosts()) {
    ghosts += fmt::format(" {}.{}.{}@{}:{:x}", ghost.job.value(), ghost.attempt, ghost.epoch,
                          ghost.at.node.value(), ghost.at.devices);
  }
  lines.push_back(std::move(ghosts));
  return lines;
}

void ProtocolWorld::show_changes() {
  if (!trace_) return;
  std::vector<std::string> now = picture(state());
  for (const std::string& line : now) {
    if (std::find(shown_.begin(), shown_.end(), line) == shown_.end()) note("  " + line);
  }
  shown_ = std::move(now);
}

bool ProtocolWorld::settled() {
  if (!controller_ || !unwritten_.empty()) return false;
  for (const Client& client : clients_) {
    if (!client.made || !ended(state().job(*client.made).phase)) return false;
  }
  return state().ghosts().empty() && nodes_.keepers() == 0 && controller_->link().attempts() == 0;
}

std::string ProtocolWorld::unsettled() {
  std::string text = fmt::format("{} keepers, {} attempts linked", nodes_.keepers(),
                                 controller_ ? controller_->link().attempts() : 0);
  if (!controller_) return text;
  for (const std::string& line : picture(state())) text += "; " + line;
  return text;
}

}  // namespace orrery

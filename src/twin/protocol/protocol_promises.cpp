#include "twin/protocol/protocol_promises.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/format/field_writer.hpp"
#include "control/state/invariants.hpp"

namespace orrery {

std::vector<std::string> picture_of(const State& state) {
  const std::size_t nodes = state.setup().topology->node_count();
  std::vector<std::string> lines;
  lines.reserve(state.jobs() + nodes + 1);
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
  for (std::size_t at = 0; at < nodes; ++at) {
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

void ProtocolPromises::crash(const State* durable) {
  expected_.reset();
  if (durable != nullptr) expected_ = picture_of(*durable);
}

void ProtocolPromises::begin(const State& state) {
  if (expected_ && *expected_ != picture_of(state)) {
    context_.wrong("a restart finds another state than was durable");
  }
  accounts_.reset();
  if (state.policy().quotas == Quotas::kHeld) accounts_.emplace(state);
}

void ProtocolPromises::note(std::span<const Event> events) {
  if (!accounts_) return;
  for (const Event& event : events) {
    if (const std::string broken = accounts_->take(event); !broken.empty()) context_.wrong(broken);
  }
}

void ProtocolPromises::check(const State& state) {
  if (const std::string broken = clients_.broken_promise(state); !broken.empty()) {
    return context_.wrong(broken);
  }
  if (const std::optional<std::string> broken = broken_invariant(state)) {
    return context_.wrong(*broken);
  }
  if (context_.traces()) show_changes(state);
}

void ProtocolPromises::show_changes(const State& state) {
  std::vector<std::string> now = picture_of(state);
  for (const std::string& line : now) {
    if (std::find(shown_.begin(), shown_.end(), line) == shown_.end()) context_.note("  " + line);
  }
  shown_ = std::move(now);
}

}  // namespace orrery

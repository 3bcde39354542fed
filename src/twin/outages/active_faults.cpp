#include "twin/outages/active_faults.hpp"

#include <algorithm>

namespace orrery {
namespace {

/// Health of a link that the fault affects.
float health_under(const Fault& fault) {
  return fault.slowdown > 1 ? static_cast<float>(1 / fault.slowdown) : 0.0F;
}

/// Whether nothing passes the link; a flap does not count, as senders ride it out.
bool is_dead(const Fault& fault) {
  return health_under(fault) <= 0 && fault.kind != FaultKind::kLinkFlap;
}

}  // namespace

std::string evidence_of(const Fault& fault) {
  return std::string(word_of_fault(fault.kind)) + " (" + std::string(fault.evidence) + ")";
}

bool halts_jobs(const Fault& fault) { return fault.slowdown <= 1 && fault.kind != FaultKind::kSdc; }

bool spans_nodes(const RunningJob& placed) {
  const NodeId first = placed.gangs.front().allocation.ranks.front().node;
  return std::ranges::any_of(placed.gangs, [first](const PlacedGang& gang) {
    return std::ranges::any_of(gang.allocation.ranks,
                               [first](const NodeDevices& at) { return at.node != first; });
  });
}

std::uint32_t ActiveFaults::add(const Fault& fault) {
  felt_.push_back({fault, 0});
  return static_cast<std::uint32_t>(felt_.size() - 1);
}

void ActiveFaults::delay_detection(std::uint32_t index, Duration least) {
  Duration& detection = felt_[index].fault.detection;
  detection = std::max(detection, least);
}

std::span<const std::uint32_t> ActiveFaults::faults_on(const Part& part) const {
  const auto found = faults_on_.find(part);
  return found == faults_on_.end() ? std::span<const std::uint32_t>() : found->second;
}

bool ActiveFaults::lift(const Part& part, std::uint32_t index) {
  const auto found = faults_on_.find(part);
  if (found == faults_on_.end() || std::erase(found->second, index) == 0) return false;
  if (found->second.empty()) faults_on_.erase(found);
  return true;
}

void ActiveFaults::lift_past(NodeId node, Instant (Fault::*time)() const, Instant now) {
  const auto found = faults_on_.find(node);
  if (found == faults_on_.end()) return;
  std::erase_if(found->second,
                [&](std::uint32_t fault) { return (felt_[fault].fault.*time)() <= now; });
  if (found->second.empty()) faults_on_.erase(found);
}

bool ActiveFaults::awaits_repair(NodeId node, Instant now) const {
  return std::ranges::any_of(faults_on(node), [&](std::uint32_t index) {
    const Fault& fault = felt_[index].fault;
    return takes_node(fault) && fault.known_at() <= now;
  });
}

std::optional<Instant> ActiveFaults::cut_off_until(NodeId node) const {
  std::optional<Instant> until;
  if (faults_on_.empty()) return until;
  for (const FabricInstance& fabric : topology_->fabrics()) {
    const auto found = std::ranges::lower_bound(fabric.nodes, node);
    if (found == fabric.nodes.end() || *found != node) continue;
    const auto at = static_cast<std::uint32_t>(found - fabric.nodes.begin());
    for (std::uint32_t port = 0; port < fabric.graph.ports_per_node(); ++port) {
      const LinkId link(fabric.first_link + fabric.graph.link_of_port({at, port}).value());
      std::optional<Instant> back;
      for (const std::uint32_t fault : faults_on(link)) {
        if (!is_dead(felt_[fault].fault)) continue;
        back = std::max(back.value_or(Instant()), felt_[fault].fault.over_at());
      }
      if (!back) return std::nullopt;
      until = std::min(until.value_or(Instant::max()), *back);
    }
  }
  return until;
}

template <class Visit>
void ActiveFaults::for_each_fault(const RunningJob& placed, Visit&& visit) const {
  if (faults_on_.empty()) return;
  for (const PlacedGang& gang : placed.gangs) {
    for (const NodeDevices& at : gang.allocation.ranks) {
      for (const std::uint32_t index : faults_on(at.node)) visit(felt_[index].fault);
    }
  }
}

double ActiveFaults::slowness(const RunningJob& placed) const {
  double most = 1;
  for_each_fault(placed, [&](const Fault& fault) { most = std::max(most, fault.slowdown); });
  return most;
}

std::optional<Instant> ActiveFaults::corrupt_until(const RunningJob& placed) const {
  std::optional<Instant> known;
  for_each_fault(placed, [&](const Fault& fault) {
    if (fault.kind == FaultKind::kSdc && !known) known = fault.known_at();
  });
  return known;
}

Instant ActiveFaults::stands_until(const RunningJob& placed, Instant now) const {
  Instant until = now;
  for_each_fault(placed, [&](const Fault& fault) {
    if (halts_jobs(fault)) until = std::max(until, fault.known_at());
  });
  if (faults_on_.empty() || !spans_nodes(placed)) return until;
  for (const PlacedGang& gang : placed.gangs) {
    for (const NodeDevices& at : gang.allocation.ranks) {
      until = std::max(until, cut_off_until(at.node).value_or(now));
    }
  }
  return until;
}

float ActiveFaults::known_health(LinkId link, Instant now) const {
  float health = 1;
  for (const std::uint32_t index : faults_on(link)) {
    const Fault& fault = felt_[index].fault;
    if (fault.known_at() <= now) health = std::min(health, health_under(fault));
  }
  return health;
}

bool ActiveFaults::known_out(PowerDomainId domain, Instant now) const {
  return std::ranges::any_of(
      faults_on(domain), [&](std::uint32_t index) { return felt_[index].fault.known_at() <= now; });
}

}  // namespace orrery

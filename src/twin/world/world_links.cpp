// Links, switches and supplies that fail, and nodes that thereby lose contact with all others.
//
// A switch fails with its links, and several faults may affect one link or supply: it is whole when
// the last is over. A job that spans a node whose ports are all dead stands still; it ends when
// that is known, and the node takes no work until one of its links is back.
#include <algorithm>

#include "twin/world/world.hpp"

namespace orrery {
namespace {

constexpr std::uint8_t kFaultRank = 1;

/// Capacity left of a supply without redundancy while one of its units is out (assumed).
constexpr double kSupplyLeft = 0.5;

/// Whether the domain's limit is what it carries with a unit down.
bool redundant(const PowerDomain& domain) {
  return domain.supply.find("N+") != std::string::npos ||
         domain.supply.find("2N") != std::string::npos;
}

/// Health of a link that the fault affects.
float health_under(const Fault& fault) {
  return fault.slowdown > 1 ? static_cast<float>(1 / fault.slowdown) : 0.0F;
}

/// Whether nothing passes the link; a flap does not count, as senders ride it out.
bool is_dead(const Fault& fault) {
  return health_under(fault) <= 0 && fault.kind != FaultKind::kLinkFlap;
}

const FabricInstance& fabric_of(const Topology& topology, LinkId link) {
  return *std::ranges::find_if(topology.fabrics(), [link](const FabricInstance& fabric) {
    return link.value() - fabric.first_link < fabric.graph.link_count();
  });
}

std::vector<LinkId> links_of(const FabricInstance& fabric, SwitchIndex at) {
  std::vector<LinkId> links;
  const Fabric& graph = fabric.graph;
  const auto add = [&](FabricLinkId link) {
    links.push_back(LinkId(fabric.first_link + link.value()));
  };
  for (std::uint32_t node = 0; node < graph.node_count(); ++node) {
    for (std::uint32_t port = 0; port < graph.ports_per_node(); ++port) {
      if (graph.leaf_of({node, port}) == at) add(graph.link_of_port({node, port}));
    }
  }
  for (std::uint32_t lower = 0; lower < graph.switches().size(); ++lower) {
    const Fabric::Uplinks up = graph.uplinks(SwitchIndex(lower));
    for (std::uint32_t k = 0; k < up.uppers.size(); ++k) {
      if (SwitchIndex(lower) == at || up.uppers[k] == at) add(FabricLinkId(up.first.value() + k));
    }
  }
  return links;
}

}  // namespace

// For a switch, O(links of the fabric).
std::vector<LinkId> World::links_struck(const FaultScope& scope) const {
  if (const auto* link = std::get_if<LinkId>(&scope)) return {*link};
  const auto* place = std::get_if<SwitchPlace>(&scope);
  if (place == nullptr) return {};
  return links_of(topology_->fabrics()[place->fabric.value()], place->at);
}

NodeId World::node_at(LinkId link) const {
  const FabricInstance& fabric = fabric_of(*topology_, link);
  const FabricLinkId local(link.value() - fabric.first_link);
  if (!fabric.graph.is_port_link(local)) return {};
  return fabric.nodes[fabric.graph.port_of(local).node];
}

std::optional<Instant> World::cut_off_until(NodeId node) const {
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

void World::strike_links(std::span<const LinkId> links, std::uint32_t index, const State& state) {
  const Fault fault = felt_[index].fault;
  std::vector<NodeId> cut;
  for (const LinkId link : links) {
    const NodeId node = node_at(link);
    const bool there = node.valid() && !cut_off_until(node);
    faults_on_[link].push_back(index);
    if (there && cut_off_until(node)) cut.push_back(node);
    queue_.push(fault.known_at(), kFaultRank, {.kind = Kind::kKnown, .index = index, .link = link});
    if (fault.is_over_some_day()) {
      queue_.push(fault.over_at(), kFaultRank, {.kind = Kind::kOver, .index = index, .link = link});
    }
  }
  for (const NodeId node : cut) {
    for (const JobId id : state.jobs_on(node)) {
      Run& run = runs_[id.value()];
      if (!run.up || run.halted || !spans_nodes(state.running(id))) continue;
      ++felt_[index].jobs;
      settle(run, fault.at);
      halt(id, fault.at);
    }
    queue_.push(fault.known_at(), kFaultRank, {.kind = Kind::kCut, .index = index, .node = node});
  }
  if (!cut.empty()) share(state, fault.at);
}

Input World::link_observed(LinkId link, Instant now) {
  float health = 1;
  for (const std::uint32_t fault : faults_on(link)) {
    if (felt_[fault].fault.known_at() > now) continue;
    health = std::min(health, health_under(felt_[fault].fault));
  }
  if (links_told_.empty()) queue_.push(now, kFaultRank + 1, {.kind = Kind::kLinks});
  links_told_.push_back(link);
  return {now, LinkObserved{link, {health, 0}}, {}};
}

// Called once all links of the instant have changed: steps of jobs that cross them take longer, or
// no longer do.
void World::feel_links(const State& state, Instant now) {
  book_.links_changed();
  const std::vector<LinkId> told = std::exchange(links_told_, {});
  if (!contention_) return;
  for (const LinkId link : told) contention_->link_changed(state.fleet().view(), link);
  for (const RunningJob& placed : state.running()) {
    Run& run = runs_[placed.id.value()];
    if (!run.up || run.halted || !contention_->reprice(placed, state)) continue;
    settle(run, now);
    set_rate(run, state, placed.id);
    schedule_end(run, placed.id, now);
  }
  share(state, now);
}

Input World::supply_observed(PowerDomainId domain, Instant now) const {
  const PowerDomain& supply = topology_->power_domains()[domain.value()];
  const auto seen = [&](std::uint32_t fault) { return felt_[fault].fault.known_at() <= now; };
  std::optional<Watts> left;
  if (supply.limit && !redundant(supply) && std::ranges::any_of(faults_on(domain), seen)) {
    left = *supply.limit * kSupplyLeft;
  }
  return {now, SupplyObserved{domain, left}, {}};
}

Input World::link_over(const Event& event, Instant now) {
  const NodeId node = node_at(event.link);
  const bool away = node.valid() && cut_off_until(node);
  lift(event.link, event.index);
  if (away && !cut_off_until(node)) {
    queue_.push(now, kFaultRank, {.kind = Kind::kReached, .node = node});
  }
  return link_observed(event.link, now);
}

// Control learns of all cut-off nodes before the first job ends, or that job would restart on the
// next of them.
std::optional<Input> World::cut(const Event& event, Instant now) {
  queue_.push(now, kFaultRank + 1,
              {.kind = Kind::kParted, .index = event.index, .node = event.node});
  const bool told = is_there(event.node, now) && !silent_.contains(event.node);
  if (!told || !cut_off_until(event.node)) return std::nullopt;
  NodeFault fault{event.node, FaultLayer::kNetwork, evidence_of(felt_[event.index].fault), true,
                  false};
  return Input{now, std::move(fault), {}};
}

std::optional<Input> World::parted(const Event& event, const State& state, Instant now) {
  for (const JobId id : state.jobs_on(event.node)) {
    const Run& run = runs_[id.value()];
    const RunningJob& placed = state.running(id);
    const bool ends = state.job(id).phase != JobPhase::kStopping && spans_nodes(placed) &&
                      (run.halted || (!run.up && stands_until(placed, now) > now));
    if (!ends) continue;
    queue_.push(now, kFaultRank + 1, event);  // then the next job
    const std::string evidence = evidence_of(felt_[event.index].fault);
    return ends_here(id, {FaultLayer::kNetwork, event.node, evidence}, now);
  }
  return std::nullopt;
}

}  // namespace orrery

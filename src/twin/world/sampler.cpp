#include "twin/world/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace orrery {
namespace {

constexpr std::size_t kColumns = 120;
constexpr std::uint32_t kNoRow = 0xffffffff;

std::vector<DomainId> domains_at(const Topology& topology, Level level) {
  std::vector<DomainId> found;
  for (std::uint32_t d = 0; d < topology.domains().size(); ++d) {
    if (topology.domains()[d].level == level) found.push_back(DomainId(d));
  }
  return found;
}

}  // namespace

Sampler::Sampler(const Topology& topology) : topology_(&topology) {
  rows_ = domains_at(topology, Level::kRack);
  if (rows_.size() > kRowsMax) rows_ = domains_at(topology, Level::kPod);
  if (rows_.size() > kRowsMax) rows_.resize(kRowsMax);
  for (const PowerDomain& domain : topology.power_domains()) {
    std::uint32_t row = kNoRow;
    if (domain.kind == PowerKind::kRack && !rows_.empty()) {
      const DomainId at = topology.ancestor(domain.domain, topology.domain(rows_.front()).level);
      const auto found = std::ranges::find(rows_, at);
      if (found != rows_.end()) row = static_cast<std::uint32_t>(found - rows_.begin());
    }
    row_of_.push_back(row);
  }
}

void Sampler::look(Instant now, const State& state) {
  if (!samples_.empty() && now - samples_.back().at < every_) return;
  if (samples_.size() == kSamplesMax) {
    for (std::size_t i = 1; i < kSamplesMax / 2; ++i) samples_[i] = std::move(samples_[2 * i]);
    samples_.resize(kSamplesMax / 2);
    const Duration span = samples_.back().at - samples_.front().at;
    every_ = Duration::nanoseconds(span.count_ns() / static_cast<std::int64_t>(kSamplesMax / 2));
  }
  samples_.push_back(take(now, state));
}

// Share of the free devices that are in nodes with other devices in use.
float Sampler::stranded_in(const State& state, DomainId domain) const {
  double free = 0;
  double partial = 0;
  const FleetView view = state.fleet().view();
  for (const FleetTypeId type : topology_->types_of(domain)) {
    const std::span<const std::uint32_t> nodes = view.nodes_by_available(domain, type);
    const FreeCount count = view.free(domain, type);
    free += count.devices;
    for (std::size_t k = 1; k < nodes.size(); ++k) partial += static_cast<double>(k * nodes[k]);
    partial -= static_cast<double>(count.nodes) * topology_->node_devices_max(type);
  }
  if (free <= 0) return std::numeric_limits<float>::quiet_NaN();
  return static_cast<float>(std::clamp(partial / free, 0.0, 1.0));
}

Sampler::Sample Sampler::take(Instant now, const State& state) const {
  Sample sample;
  sample.at = now;
  const Ledger& ledger = state.ledger();
  sample.busy.resize(ledger.types());
  for (std::uint32_t t = 0; t < ledger.types(); ++t) {
    for (std::size_t u = 0; u < kDeviceUses; ++u) {
      const auto use = static_cast<DeviceUse>(u);
      const double count = ledger.count(FleetTypeId(t), use);
      if (use <= DeviceUse::kExclusive) {
        sample.busy[t] += count;
      } else if (use <= DeviceUse::kSpare) {
        sample.free += count;
      } else {
        sample.down += count;
      }
    }
  }
  const Situation s = state.situation(now);
  if (s.power != nullptr) add_power(sample, s);
  sample.queue = static_cast<double>(s.waiting.size());
  sample.stranded.reserve(rows_.size());
  for (const DomainId row : rows_) sample.stranded.push_back(stranded_in(state, row));
  return sample;
}

// All figures are taken at the nodes, where the limits of every level are comparable: a site's cap
// at the meter leaves its nodes less. A domain may draw what its own limit and those below it
// allow.
void Sampler::add_power(Sample& sample, const Situation& situation) const {
  const std::span<const PowerDomain> domains = topology_->power_domains();
  const PowerCaps& caps = *situation.caps;
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  std::vector<double> below(domains.size());
  std::vector<double> planned(rows_.size());
  std::vector<double> allowed(rows_.size());
  // A domain has a higher number than its parent.
  for (auto d = static_cast<std::uint32_t>(domains.size()); d-- > 0;) {
    const PowerDomain& domain = domains[d];
    const PowerDomainId id(d);
    if (domain.kind == PowerKind::kCoolingLoop) continue;
    const double room = caps.limit(id) ? watts_of(caps.room(id)).value() : kNoLimit;
    const double may = domain.kind == PowerKind::kRack ? room : std::min(room, below[d]);
    const double draws = watts_of(situation.power->excess(caps, id) + caps.room(id)).value();
    if (domain.parent.valid()) {
      below[domain.parent.value()] += may;
    } else {
      sample.watts += draws;
      sample.cap += may;
    }
    if (row_of_[d] == kNoRow) continue;
    planned[row_of_[d]] += draws;
    allowed[row_of_[d]] += caps.limit(id) ? room : domain.max_power.value();
  }
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    sample.draw.push_back(allowed[r] > 0 ? static_cast<float>(planned[r] / allowed[r])
                                         : std::numeric_limits<float>::quiet_NaN());
  }
}

FleetSamples Sampler::samples() const {
  FleetSamples all;
  const std::size_t types = samples_.empty() ? 0 : samples_.front().busy.size();
  all.busy.resize(types);
  bool powered = false;
  bool capped = true;
  for (const Sample& sample : samples_) {
    all.at.push_back(sample.at);
    for (std::size_t t = 0; t < types; ++t) all.busy[t].push_back(sample.busy[t]);
    all.free.push_back(sample.free);
    all.down.push_back(sample.down);
    all.power_w.push_back(sample.watts);
    all.cap_w.push_back(sample.cap);
    all.queue.push_back(sample.queue);
    powered = powered || sample.watts > 0;
    capped = capped && std::isfinite(sample.cap);
  }
  if (!powered) all.power_w.clear();
  if (!powered || !capped) all.cap_w.clear();
  return all;
}

RowMap Sampler::fragmentation() const { return map_of(&Sample::stranded); }

RowMap Sampler::power() const { return map_of(&Sample::draw); }

RowMap Sampler::map_of(std::vector<float> Sample::* shares) const {
  RowMap map;
  if (samples_.size() < 2 || (samples_.front().*shares).empty()) return map;
  map.columns = std::min(kColumns, samples_.size());
  const Instant from = samples_.front().at;
  const double span = std::max((samples_.back().at - from).count_seconds(), 1e-9);
  std::vector<std::size_t> last(map.columns);
  for (std::size_t i = 0, c = 0; c < map.columns; ++c) {
    const double until = span * static_cast<double>(c + 1) / static_cast<double>(map.columns);
    while (i + 1 < samples_.size() && (samples_[i + 1].at - from).count_seconds() <= until) ++i;
    last[c] = i;
  }
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    map.rows.push_back(topology_->path(rows_[r]));
    for (const std::size_t i : last) map.shares.push_back((samples_[i].*shares)[r]);
  }
  return map;
}

}  // namespace orrery

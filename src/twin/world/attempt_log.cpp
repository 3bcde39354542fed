#include "twin/world/attempt_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <numeric>
#include <variant>

#include "base/format/field_writer.hpp"

namespace orrery {
namespace {

constexpr std::size_t kColumns = 120;

std::uint32_t devices_of(const Topology& topology, DomainId domain) {
  std::uint32_t devices = 0;
  for (const FleetTypeId type : topology.types_of(domain)) {
    devices += topology.device_count(domain, type);
  }
  return devices;
}

double work_of(const AttemptSpan& span, Instant to) {
  return span.devices * (std::min(span.to, to) - span.from).count_seconds();
}

}  // namespace

JobPlace place_of(std::span<const PlacedGang> gangs) {
  JobPlace place{.first = gangs.front().allocation.ranks.front().node};
  for (const PlacedGang& gang : gangs) {
    place.devices += gang.allocation.devices();
    place.nodes += static_cast<std::uint32_t>(gang.allocation.ranks.size());
  }
  return place;
}

std::string place_text(const Topology& topology, const JobPlace& place) {
  return fmt::format("{} x {} on {} node{}, starting at {}", place.devices,
                     topology.accelerator(topology.group(place.first).type).id, place.nodes,
                     place.nodes == 1 ? "" : "s", topology.node_name(place.first));
}

AttemptLog::AttemptLog(const Topology& topology)
    : topology_(&topology), by_node_(topology.node_count() <= kNodeRows) {
  if (by_node_) {
    for (std::uint32_t n = 0; n < topology.node_count(); ++n) {
      rows_.push_back({topology.node_name(NodeId(n)), topology.group(NodeId(n)).devices});
    }
    return;
  }
  const std::span<const Domain> domains = topology.domains();
  for (std::uint32_t d = 0; d < domains.size(); ++d) {
    if (domains[d].level != Level::kRack) continue;
    if (rows_.empty()) first_rack_ = d;
    rows_.push_back({topology.path(DomainId(d)), devices_of(topology, DomainId(d))});
  }
}

std::uint32_t AttemptLog::row_of(NodeId node) const {
  return by_node_ ? node.value() : topology_->place(node).rack.value() - first_rack_;
}

AttemptSpan* AttemptLog::running(JobId job) {
  if (job.value() >= open_.size() || open_[job.value()] == kNone) return nullptr;
  return &spans_[open_[job.value()]];
}

void AttemptLog::open(Instant at, JobId job, std::span<const PlacedGang> gangs) {
  AttemptSpan span{.job = job, .from = at, .place = place_of(gangs)};
  span.parts_begin = static_cast<std::uint32_t>(parts_.size());
  const auto add = [&](const NodeDevices& on, std::uint16_t share) {
    const double devices = std::popcount(on.devices) * (static_cast<double>(share) / kWholeDevice);
    span.devices += devices;
    const std::uint32_t row = row_of(on.node);
    if (parts_.size() == span.parts_begin || parts_.back().row != row) parts_.push_back({row});
    parts_.back().devices += devices;
  };
  for (const PlacedGang& gang : gangs) {
    for (const NodeDevices& on : gang.allocation.ranks) add(on, gang.allocation.share);
    for (const NodeDevices& on : gang.allocation.idle) add(on, kWholeDevice);
  }
  span.parts_end = static_cast<std::uint32_t>(parts_.size());
  if (job.value() >= open_.size()) open_.resize(job.value() + 1, kNone);
  open_[job.value()] = static_cast<std::uint32_t>(spans_.size());
  spans_.push_back(span);
}

void AttemptLog::close(Instant at, JobId job) {
  if (AttemptSpan* span = running(job)) {
    span->to = at;
    open_[job.value()] = kNone;
  }
}

void AttemptLog::look(Instant at, std::span<const Event> events) {
  for (const Event& event : events) {
    if (const auto* started = std::get_if<JobStarted>(&event)) {
      open(at, started->job, started->gangs);
    } else if (const auto* resized = std::get_if<JobResized>(&event)) {
      if (AttemptSpan* span = running(resized->job)) span->resized = true;
      close(at, resized->job);
      open(at, resized->job, resized->gangs);
    } else if (const auto* stopping = std::get_if<JobStopping>(&event)) {
      if (AttemptSpan* span = running(stopping->job)) {
        span->reason = stopping->reason;
        span->in_favour_of = stopping->in_favour_of;
      }
    } else if (const auto* requeued = std::get_if<JobRequeued>(&event)) {
      close(at, requeued->job);
    } else if (const auto* ended = std::get_if<JobEnded>(&event)) {
      close(at, ended->job);
    }
  }
}

RowMap AttemptLog::use(Instant from, Instant to) const {
  RowMap map;
  if (to <= from || spans_.empty()) return map;
  map.columns = kColumns;
  for (const GanttRow& row : rows_) map.rows.push_back(row.name);
  map.shares.resize(rows_.size() * kColumns);
  const double width = (to - from).count_seconds() / static_cast<double>(kColumns);
  for (const AttemptSpan& span : spans_) {
    const double begin = std::max(0.0, (span.from - from).count_seconds() / width);
    const double end = std::min(static_cast<double>(kColumns),
                                (std::min(span.to, to) - from).count_seconds() / width);
    for (auto c = static_cast<std::size_t>(begin); c < kColumns; ++c) {
      const auto left = static_cast<double>(c);
      const double part = std::min(end, left + 1) - std::max(begin, left);
      if (part <= 0) break;
      for (const RowPart& on : parts(span)) {
        map.shares[on.row * kColumns + c] += part * on.devices / rows_[on.row].devices;
      }
    }
  }
  for (double& share : map.shares) share = std::min(share, 1.0);
  return map;
}

std::vector<std::uint32_t> AttemptLog::chart_rows(GanttChart& chart) const {
  std::vector<std::uint32_t> to_row(rows_.size());
  if (rows_.size() <= kNodeRows) {
    chart.rows = rows_;
    std::iota(to_row.begin(), to_row.end(), 0u);
    return to_row;
  }
  for (const Level level : {Level::kPod, Level::kHall, Level::kSite, Level::kFleet}) {
    chart.rows.clear();
    DomainId last;
    for (std::uint32_t r = 0; r < rows_.size(); ++r) {
      const DomainId at = topology_->ancestor(DomainId(first_rack_ + r), level);
      if (at != last) chart.rows.push_back({topology_->path(at), devices_of(*topology_, at)});
      to_row[r] = static_cast<std::uint32_t>(chart.rows.size() - 1);
      last = at;
    }
    if (chart.rows.size() <= kNodeRows) break;
  }
  return to_row;
}

std::vector<std::uint32_t> AttemptLog::chart_groups(GanttChart& chart, const GanttNames& names,
                                                    Instant to) const {
  std::map<std::string, double> work;
  std::vector<std::string> group_of(spans_.size());
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    group_of[i] = names.group(spans_[i].job);
    work[group_of[i]] += work_of(spans_[i], to);
  }
  for (const auto& [group, sum] : work) chart.groups.push_back(group);
  std::ranges::stable_sort(chart.groups, std::greater(),
                           [&](const std::string& group) { return work.at(group); });
  if (chart.groups.size() > kGroupsMax) {
    chart.groups.resize(kGroupsMax);
    chart.groups.emplace_back("others");
  }
  std::vector<std::uint32_t> numbers;
  numbers.reserve(spans_.size());
  for (const std::string& group : group_of) {
    const auto found = std::ranges::find(chart.groups, group);
    const auto at = static_cast<std::size_t>(found - chart.groups.begin());
    numbers.push_back(static_cast<std::uint32_t>(std::min(at, chart.groups.size() - 1)));
  }
  return numbers;
}

GanttChart AttemptLog::chart(const GanttNames& names, Instant to) const {
  GanttChart chart{.grouped_by = names.grouped_by};
  const std::vector<std::uint32_t> row_of = chart_rows(chart);
  const std::vector<std::uint32_t> group_of = chart_groups(chart, names, to);
  std::vector<std::uint32_t> order(spans_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, std::greater(),
                           [&](std::uint32_t i) { return work_of(spans_[i], to); });
  for (const std::uint32_t i : order) {
    const AttemptSpan& span = spans_[i];
    std::map<std::uint32_t, double> devices;
    for (const RowPart& part : parts(span)) devices[row_of[part.row]] += part.devices;
    if (chart.bars.size() + devices.size() > kBarsMax) {
      ++chart.left_out;
      continue;
    }
    for (const auto& [row, count] : devices) {
      chart.bars.push_back({.job = names.job(span.job),
                            .row = row,
                            .group = group_of[i],
                            .devices = count,
                            .from = span.from,
                            .to = std::min(span.to, to),
                            .fault = span.to != Instant::max() && !span.resized &&
                                     span.reason == StopReason::kInfra});
    }
  }
  std::ranges::stable_sort(chart.bars, {}, &GanttBar::from);
  return chart;
}

std::string AttemptLog::start_line(const AttemptSpan& span) const {
  return fmt::format("{}  starts: {}", span.from.text(), place_text(*topology_, span.place));
}

std::string AttemptLog::end_line(const AttemptSpan& span, const std::string& favoured) const {
  std::string line = fmt::format("{}  stops: {}", span.to.text(), word_of(span.reason));
  if (!favoured.empty()) line += " in favour of " + favoured;
  return line;
}

}  // namespace orrery

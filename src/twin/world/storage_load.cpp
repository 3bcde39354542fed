#include "twin/world/storage_load.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "fleet/topology.hpp"
#include "perf/calibration.hpp"
#include "perf/site/storage_path.hpp"

namespace orrery {

StorageLoad::StorageLoad(SharedLinks& links, const Topology& topology,
                         const Calibration& calibration)
    : links_(&links), topology_(&topology), calibration_(&calibration) {
  for (std::uint32_t site = 0; site < topology.sites().size(); ++site) {
    for (const StorageSpec& spec : topology.sites()[site].spec.storage) {
      System system{
          .spec = &spec, .type = topology.catalog().find<StorageSystem>(spec.system), .site = site};
      ORRERY_ASSERT(system.type != nullptr, "a built fleet names systems of the catalog");
      if (place_of(*system.type) == StoragePlace::kShared) {
        system.read = links.add_resource(system.type->read * spec.units);
        if (system.type->write) system.write = links.add_resource(*system.type->write * spec.units);
      }
      systems_.push_back(system);
    }
  }
  for (const StorageSystem& type : topology.catalog().all<StorageSystem>()) {
    if (memory_ == nullptr && place_of(type) == StoragePlace::kPeer) memory_ = &type;
  }
  add_wan(topology);
}

void StorageLoad::add_wan(const Topology& topology) {
  const auto site_named = [&](const std::string& name) {
    const auto found = std::ranges::find(topology.sites(), name,
                                         [](const SiteFacts& site) { return site.spec.name; });
    ORRERY_ASSERT(found != topology.sites().end(), "a built fleet joins sites it has");
    return static_cast<std::uint32_t>(found - topology.sites().begin());
  };
  wan_.reserve(2 * topology.wan().size());
  for (const WanSpec& link : topology.wan()) {
    const std::uint32_t from = site_named(link.from);
    const std::uint32_t to = site_named(link.to);
    wan_.push_back({from, to, links_->add_resource(link.bandwidth)});
    wan_.push_back({to, from, links_->add_resource(link.bandwidth)});
  }
}

std::optional<StorageId> StorageLoad::find(std::uint32_t site, std::string_view name) const {
  for (std::size_t i = 0; i < systems_.size(); ++i) {
    if (systems_[i].site == site && systems_[i].spec->name == name) return StorageId::at(i);
  }
  return std::nullopt;
}

Result<BytesPerSecond> StorageLoad::node_limit(const TransferRequest& request) const {
  if (request.from && request.to) return FlowTerms().demand;
  ORRERY_ASSERT(request.node != nullptr, "nodes have a type");
  StoragePath nodes{.system = memory_, .nodes = request.nodes};
  if (const std::optional<StorageId> end = request.from ? request.from : request.to) {
    nodes.system = systems_[end->value()].type;
    nodes.units = static_cast<double>(systems_[end->value()].spec->units);
  }
  if (nodes.system == nullptr) return input_error({}, "the catalog has no storage of kind memory");
  return storage_rate(nodes, *request.node, *calibration_,
                      request.from ? Transfer::kRead : Transfer::kWrite);
}

Result<ResourceId> StorageLoad::wan(std::uint32_t from, std::uint32_t to) const {
  for (const Wan& link : wan_) {
    if (link.from == from && link.to == to) return link.resource;
  }
  return input_error(
      {}, fmt::format("no wan link of the fleet joins {} and {}",
                      topology_->sites()[from].spec.name, topology_->sites()[to].spec.name));
}

Status StorageLoad::add_system(StorageId id, ResourceId resource,
                               std::vector<ResourceUse>& uses) const {
  const System& system = systems_[id.value()];
  if (resource.valid()) {
    uses.push_back({resource, 1});
    return {};
  }
  if (place_of(*system.type) == StoragePlace::kShared) {
    return input_error(system.type->where,
                       fmt::format("the write rate of {} is not published; give "
                                   "write_bytes_per_s of one {}",
                                   system.type->id, system.type->unit));
  }
  return input_error(system.spec->where,
                     fmt::format("{} is inside nodes: only they reach it", system.spec->name));
}

Result<std::vector<ResourceUse>> StorageLoad::path(const TransferRequest& request) const {
  const auto site_of = [&](const std::optional<StorageId>& end) {
    return end ? systems_[end->value()].site : request.site;
  };
  const std::uint32_t from = site_of(request.from);
  const std::uint32_t to = site_of(request.to);
  std::vector<ResourceUse> uses;
  if (!request.from && !request.to) return uses;
  const bool staging = request.from && request.to;
  const StorageId near = request.from ? *request.from : *request.to;
  const bool local = place_of(*systems_[near.value()].type) != StoragePlace::kShared;
  if (!staging && local && from == to) return uses;
  Status added;
  if (request.from) {
    added = add_system(*request.from, systems_[request.from->value()].read, uses);
  }
  if (added && request.to) {
    added = add_system(*request.to, systems_[request.to->value()].write, uses);
  }
  if (!added) return forward_error(added);
  if (from != to) {
    Result<ResourceId> link = wan(from, to);
    if (!link) return forward_error(link);
    uses.push_back({*link, 1});
  }
  std::ranges::sort(uses, {}, &ResourceUse::resource);
  return uses;
}

Result<BytesPerSecond> StorageLoad::rate_alone(const TransferRequest& request) const {
  Result<std::vector<ResourceUse>> uses = path(request);
  if (!uses) return forward_error(uses);
  Result<BytesPerSecond> rate = node_limit(request);
  if (!rate) return rate;
  for (const ResourceUse& use : *uses) {
    rate = std::min(*rate, links_->capacity(use.resource) * (1 / use.multiplicity));
  }
  return rate;
}

Result<TransferId> StorageLoad::start(const TransferRequest& request, Instant now) {
  ORRERY_ASSERT(request.bytes.value() >= 0 && request.nodes >= 1, "something moves the bytes");
  Result<std::vector<ResourceUse>> uses = path(request);
  if (!uses) return forward_error(uses);
  Result<BytesPerSecond> limit = node_limit(request);
  if (!limit) return forward_error(limit);
  if (free_.empty()) {
    free_.push_back(TransferId::at(transfers_.size()));
    transfers_.emplace_back();
  }
  const TransferId id = free_.back();
  free_.pop_back();
  const FlowId flow = links_->add_flow({.weight = request.nodes, .demand = *limit}, *uses);
  transfers_[id.value()] = {.flow = flow, .left = request.bytes, .settled = now};
  if (by_flow_.size() <= flow.value()) by_flow_.resize(std::size_t{flow.value()} + 1);
  by_flow_[flow.value()] = id;
  if (request.bytes.value() <= 0) plan_finish(id, now);
  return id;
}

void StorageLoad::settle(Moving& transfer, Instant now) {
  transfer.left = left(by_flow_[transfer.flow.value()], now);
  transfer.settled = now;
}

Bytes StorageLoad::left(TransferId id, Instant now) const {
  const Moving& transfer = transfers_[id.value()];
  const Seconds since((now - transfer.settled).count_seconds());
  return std::max(Bytes(), transfer.left - transfer.rate * since);
}

void StorageLoad::plan_finish(TransferId id, Instant finish) {
  Moving& transfer = transfers_[id.value()];
  if (transfer.finish == finish) return;
  if (transfer.finish != Instant::max()) finishes_.erase({transfer.finish, id});
  transfer.finish = finish;
  if (finish != Instant::max()) finishes_.emplace(finish, id);
}

void StorageLoad::rates_changed(std::span<const FlowId> flows, Instant now) {
  for (const FlowId flow : flows) {
    if (flow.value() >= by_flow_.size() || !by_flow_[flow.value()].valid()) continue;
    const TransferId id = by_flow_[flow.value()];
    Moving& transfer = transfers_[id.value()];
    settle(transfer, now);
    transfer.rate = links_->rate(flow);
    if (transfer.rate.value() > 0) {
      plan_finish(id, now + Duration::from_seconds((transfer.left / transfer.rate).value()));
    } else if (transfer.left.value() > 0) {
      plan_finish(id, Instant::max());
    }
  }
}

Instant StorageLoad::next_completion() const {
  return finishes_.empty() ? Instant::max() : finishes_.begin()->first;
}

void StorageLoad::end(TransferId id) {
  plan_finish(id, Instant::max());
  Moving& transfer = transfers_[id.value()];
  by_flow_[transfer.flow.value()] = TransferId();
  links_->remove_flow(transfer.flow);
  transfer = {};
  free_.push_back(id);
}

Bytes StorageLoad::cancel(TransferId id, Instant now) {
  const Bytes rest = left(id, now);
  end(id);
  return rest;
}

std::vector<TransferId> StorageLoad::advance(Instant to) {
  ORRERY_ASSERT(to <= next_completion(), "rates change when a transfer is through");
  std::vector<TransferId> through;
  while (!finishes_.empty() && finishes_.begin()->first == to) {
    through.push_back(finishes_.begin()->second);
    end(through.back());
  }
  return through;
}

void StorageLoad::set_health(StorageId id, double share) {
  ORRERY_ASSERT(share >= 0 && share <= 1, "a part of what was built");
  const System& system = systems_[id.value()];
  const double units = share * system.spec->units;
  if (system.read.valid()) links_->set_capacity(system.read, system.type->read * units);
  if (system.write.valid()) links_->set_capacity(system.write, *system.type->write * units);
}

}  // namespace orrery

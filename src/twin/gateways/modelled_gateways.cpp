#include "twin/gateways/modelled_gateways.hpp"

#include <utility>

namespace orrery {

ModelledGateways::ModelledGateways(const RequestTrace& trace, const ServiceSetup& setup) {
  gateways_.reserve(setup.gateways);
  for (std::uint32_t i = 0; i < setup.gateways; ++i) gateways_.emplace_back(trace, setup, i);
  if (setup.gateways < 2) return;
  Rng draws = Rng::stream(setup.seed, "gateways.requests");
  gateway_of_.reserve(trace.requests.size());
  for (std::size_t i = 0; i < trace.requests.size(); ++i) {
    gateway_of_.push_back(static_cast<std::uint32_t>(draws.below(setup.gateways)));
  }
}

void ModelledGateways::set_replicas(const std::vector<ReadyReplica>& ready) {
  for (ModelledGateway& each : gateways_) each.set_replicas(ready);
}

bool ModelledGateways::tell() {
  std::uint64_t changes = 0;
  for (const ModelledGateway& each : gateways_) changes += each.changes();
  if (std::exchange(told_, changes) == changes) return false;
  std::vector<std::vector<ReplicaCharges>> charges;
  charges.reserve(gateways_.size());
  for (const ModelledGateway& each : gateways_) charges.push_back(each.charges());
  for (std::size_t i = 0; i < gateways_.size(); ++i) {
    std::vector<ReplicaCharges> others;
    for (std::size_t other = 0; other < gateways_.size(); ++other) {
      if (other == i) continue;
      others.insert(others.end(), charges[other].begin(), charges[other].end());
    }
    gateways_[i].hear(summed(std::move(others)), static_cast<std::uint32_t>(gateways_.size() - 1));
  }
  return true;
}

std::optional<ModelledGateway::Sent> ModelledGateways::next(Instant now) {
  for (ModelledGateway& each : gateways_) {
    if (const auto sent = each.next(now)) return sent;
  }
  return std::nullopt;
}

std::size_t ModelledGateways::waiting() const {
  std::size_t sum = 0;
  for (const ModelledGateway& each : gateways_) sum += each.waiting();
  return sum;
}

std::size_t ModelledGateways::in_flight() const {
  std::size_t sum = 0;
  for (const ModelledGateway& each : gateways_) sum += each.in_flight();
  return sum;
}

}  // namespace orrery

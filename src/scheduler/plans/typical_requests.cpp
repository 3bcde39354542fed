#include "scheduler/plans/typical_requests.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace orrery {
namespace {

constexpr double kCommonShare = 0.95;  // the value of the authors of FGD
constexpr double kByPrice = 0.5;

std::vector<TypicalRequests::Common> common_of(std::span<const ShareRequest> requests) {
  std::map<TypicalRequests::Common, double> counts;
  for (const ShareRequest& request : requests) {
    counts[{.cpu = request.cpu,
            .devices = request.devices,
            .thousandths = request.thousandths,
            .types = request.types}] += 1;
  }
  std::vector<TypicalRequests::Common> all;
  for (const auto& [kind, count] : counts) {
    all.push_back(kind);
    all.back().frequency = count;
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.frequency > b.frequency; });
  double covered = 0;
  std::size_t kept = 0;
  while (kept < all.size() && covered < kCommonShare * static_cast<double>(requests.size())) {
    covered += all[kept++].frequency;
  }
  all.resize(kept);
  for (TypicalRequests::Common& kind : all) kind.frequency /= covered;
  return all;
}

PartPrices worth_of(std::span<const ShareRequest> requests) {
  std::map<int, double> counts;
  for (const ShareRequest& request : requests) {
    if (request.asks_device() && request.thousandths < kDeviceThousandths) {
      counts[request.thousandths] += request.devices;
    }
  }
  std::vector<PartDemand> demand;
  demand.reserve(counts.size());
  for (const auto& [size, count] : counts) demand.push_back({size, count});
  PartPrices worth = part_prices(demand);
  for (std::size_t free = 0; free <= kDeviceThousandths; ++free) {
    const double amount = static_cast<double>(free) / kDeviceThousandths;
    worth[free] = kByPrice * worth[free] + (1 - kByPrice) * amount;
  }
  return worth;
}

std::vector<TypicalRequests::Host> hosts_of(std::span<const ShareRequest> requests,
                                            const PartPrices& worth) {
  std::map<std::tuple<double, double, std::uint32_t>, double> demand;
  double whole = 0;
  for (const ShareRequest& request : requests) {
    if (!request.asks_device()) continue;
    const double asked = request.devices * worth[static_cast<std::size_t>(request.thousandths)];
    demand[{static_cast<double>(request.cpu) / asked, static_cast<double>(request.memory) / asked,
            request.types}] += asked;
    whole += asked;
  }
  std::vector<TypicalRequests::Host> hosts;
  hosts.reserve(demand.size());
  for (const auto& [need, asked] : demand) {
    hosts.push_back({.cpu_per_worth = std::get<0>(need),
                     .memory_per_worth = std::get<1>(need),
                     .types = std::get<2>(need),
                     .share = asked / whole});
  }
  return hosts;
}

}  // namespace

TypicalRequests TypicalRequests::make(std::span<const ShareRequest> requests) {
  TypicalRequests typical;
  typical.common_ = common_of(requests);
  typical.worth_ = worth_of(requests);
  typical.hosts_ = hosts_of(requests, typical.worth_);
  return typical;
}

}  // namespace orrery

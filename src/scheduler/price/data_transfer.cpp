#include "scheduler/price/data_transfer.hpp"

#include <algorithm>

namespace orrery {
namespace {

constexpr double kUnlinked = 86'400;  // a day to ship disks

}  // namespace

DataTransfer transfer_of(const DataRequest& data, std::uint32_t to, const Topology& topology) {
  const auto& source = topology.sites()[data.site].spec.name;
  const auto& target = topology.sites()[to].spec.name;
  for (const WanSpec& wan : topology.wan()) {
    const bool joins =
        (wan.from == source && wan.to == target) || (wan.to == source && wan.from == target);
    if (!joins) continue;
    const double egress = wan.egress ? data.size.value() * wan.egress->value() : 0;
    return {(wan.latency + data.size / wan.bandwidth).value(), egress};
  }
  return {kUnlinked, 0};
}

std::uint32_t site_ordinal(const Topology& topology, NodeId node) {
  const DomainId domain = topology.ancestor(topology.place(node).rack, Level::kSite);
  const auto found = std::ranges::find(topology.sites(), domain, &SiteFacts::domain);
  return static_cast<std::uint32_t>(found - topology.sites().begin());
}

DataTransfer transfer_to(std::uint32_t site, const Topology& topology, const JobRequest& job,
                         SiteSet there) {
  DataTransfer sum;
  if ((there & site_bit(site)) != 0) return sum;
  for (const DataRequest& data : job.data) {
    if (data.site == site) continue;
    const DataTransfer one = transfer_of(data, site, topology);
    sum.seconds += one.seconds;
    sum.dollars += one.dollars;
  }
  return sum;
}

}  // namespace orrery

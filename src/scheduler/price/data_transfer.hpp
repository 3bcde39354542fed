// scheduler/price/data_transfer.hpp - the time and cost of moving a job's data from their sites to
// the site where it runs.
//
// Prices, bills and the twin use the functions. Pure. O(data x links between sites).
#pragma once

#include <cstdint>

#include "fleet/topology.hpp"
#include "scheduler/request/request.hpp"

namespace orrery {

/// One bit for each of the first 64 sites, by ordinal. Transfers to later sites are not remembered:
/// the data are moved and paid for again.
using SiteSet = std::uint64_t;

[[nodiscard]] constexpr SiteSet site_bit(std::uint32_t site) {
  return site < 64 ? SiteSet{1} << site : 0;
}

/// Ordinal of the site of a node.
[[nodiscard]] std::uint32_t site_ordinal(const Topology& topology, NodeId node);

struct DataTransfer {
  double seconds = 0;  ///< data sets one after another, on links that no other job uses
  double dollars = 0;  ///< egress
};

/// The transfer of one data set to another site than its own, by ordinal. Between sites that no
/// link joins it takes a day and has no egress.
[[nodiscard]] DataTransfer transfer_of(const DataRequest& data, std::uint32_t site,
                                       const Topology& topology);

/// The transfer of all data of a job to a site, by ordinal. Data that lie there are not moved, and
/// no data are if the site is one of `there`.
[[nodiscard]] DataTransfer transfer_to(std::uint32_t site, const Topology& topology,
                                       const JobRequest& job, SiteSet there);

}  // namespace orrery

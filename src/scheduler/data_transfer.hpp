// scheduler/data_transfer.hpp - what it takes to bring a job's data from their sites to where it
// runs.
//
// Prices, bills and the twin use it. Pure. O(data x links between sites).
#pragma once

#include <cstdint>

#include "fleet/topology.hpp"
#include "scheduler/request.hpp"

namespace orrery {

/// One bit for each of the first 64 sites, by ordinal. What is brought to a later site is not
/// remembered: it is brought and paid for again.
using SiteSet = std::uint64_t;

[[nodiscard]] constexpr SiteSet site_bit(std::uint32_t site) {
  return site < 64 ? SiteSet{1} << site : 0;
}

/// Ordinal of the site of a node.
[[nodiscard]] std::uint32_t site_ordinal(const Topology& topology, NodeId node);

struct DataTransfer {
  double seconds = 0;  ///< one after another, on links that no other job uses
  double dollars = 0;  ///< egress
};

/// One data set, to another site than its own, by ordinal. Sites that no link joins: a day,
/// without egress.
[[nodiscard]] DataTransfer transfer_of(const DataRequest& data, std::uint32_t site,
                                       const Topology& topology);

/// All data of a job, to a site, by ordinal. Data that lie there, and all data if it is one of
/// `there`, are not moved.
[[nodiscard]] DataTransfer transfer_to(std::uint32_t site, const Topology& topology,
                                       const JobRequest& job, SiteSet there);

}  // namespace orrery

#include "scheduler/price/expected_bill.hpp"

#include <algorithm>

#include "scheduler/price/data_transfer.hpp"

namespace orrery {
namespace {

void add_use(ExpectedBill& bill, const Situation& s, const DeviceCosts* costs,
             const DeviceTimeUse& use) {
  const double held = use.devices * use.seconds;
  if (costs == nullptr || !costs->hire) bill.assumed_hire += held * kAssumedHire;
  if (costs == nullptr) return;
  const DollarsPerJoule electricity = mean_or(s.electricity, costs->electricity, s, use);
  const GramsCo2PerJoule carbon = mean_or(s.carbon, costs->carbon, s, use);
  const double joules = held * costs->metered(use.draw).value();
  if (costs->hire) bill.hire += held * costs->hire->value();
  bill.electricity += held * costs->electricity_beside(use.draw, electricity).value();
  bill.joules += joules;
  bill.co2_grams += joules * carbon.value();
}

}  // namespace

ExpectedBill expected_bill(const PriceContext& context, const WaitingJob& job,
                           std::span<const PlacedGang> gangs, std::span<const GangTerms> terms) {
  const Topology& topology = context.view.topology();
  ExpectedBill bill;
  for (std::size_t i = 0; i < gangs.size(); ++i) {
    bill.seconds = std::max(bill.seconds, seconds_of(context, job, gangs[i], terms[i]));
  }
  const std::uint32_t site = site_ordinal(topology, gangs.front().allocation.ranks.front().node);
  const DataTransfer data =
      transfer_to(site, topology, *job.request, job.data_at | context.beside.data_at);
  bill.seconds += data.seconds;
  bill.egress = data.dollars;
  for (std::size_t i = 0; i < gangs.size(); ++i) {
    const double share = gangs[i].allocation.share / static_cast<double>(kWholeDevice);
    for (const PricedPart& part : parts_of(context, gangs[i])) {
      if (part.devices == 0) continue;
      add_use(bill, context.situation, part.costs,
              {part.devices * share, bill.seconds, terms[i].draw});
    }
  }
  return bill;
}

}  // namespace orrery

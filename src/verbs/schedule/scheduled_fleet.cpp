#include "verbs/schedule/scheduled_fleet.hpp"

#include "fleet/spec/builder.hpp"

namespace orrery {

Status ScheduledFleet::load(const CommandOptions& options, const std::string& path) {
  const Result<FleetFile> file = load_fleet_file(path);
  if (!file) return tl::unexpected(file.error());
  Result<Facts> known = load_facts(options, file->facts);
  if (!known) return forward_error(known);
  facts_ = *std::move(known);
  Result<Topology> topology = build_topology(file->spec, facts_.catalog());
  if (!topology) return forward_error(topology);
  pristine_ = std::make_unique<PristineFleet>(*std::move(topology));
  const PlannerFacts facts{facts_.catalog(), facts_.calibration()};
  Result<FleetCosts> costs = FleetCosts::make(facts, pristine_->topology(), {});
  if (!costs) return forward_error(costs);
  costs_ = *std::move(costs);
  power_.emplace(pristine_->topology());
  sizes_.emplace(PlanSources{facts, pristine_->topology()});
  return {};
}

}  // namespace orrery

#include "verbs/simulate/simulated_fleet.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/format/field_writer.hpp"
#include "base/text/utf8.hpp"
#include "fleet/spec/accelerator_fleet.hpp"
#include "perf/site/money.hpp"
#include "verbs/option_text.hpp"

namespace orrery {
namespace {

Result<std::vector<AcceleratorCount>> accelerator_counts(const std::string& list) {
  std::vector<AcceleratorCount> counts;
  for (const std::string& piece : pieces(list)) {
    const std::size_t colon = piece.rfind(':');
    int count = 0;
    const char* begin = piece.data() + (colon == std::string::npos ? piece.size() : colon + 1);
    const char* end = piece.data() + piece.size();
    const auto [stop, failed] = std::from_chars(begin, end, count);
    if (failed != std::errc() || stop != end || colon == std::string::npos) {
      return wrong("accelerators", fmt::format("\"{}\": expected TYPE:N, such as h100:64", piece));
    }
    counts.push_back({piece.substr(0, colon), count});
  }
  return counts;
}

/// Reads the ownership from the words of `plan --price`, which also decide the payer of
/// electricity.
Result<NodeOwnership> ownership_asked_for(const SimulateOptions& asked, RunNotes& notes) {
  const std::string price = price_of_accelerators(asked);
  const bool owned = price == word_of(PriceBasis::kOwned);
  if (!owned && price != word_of(PriceBasis::kOnDemand)) {
    return wrong("price", fmt::format("\"{}\": expected owned or on-demand", price));
  }
  notes.assumptions.push_back(
      fmt::format("--price {}: {}", price,
                  owned ? "the cost is depreciation, maintenance and electricity"
                        : "the cost is the rent, which includes electricity"));
  return owned ? NodeOwnership::kOwned : NodeOwnership::kRented;
}

}  // namespace

std::string price_of_accelerators(const SimulateOptions& asked) {
  if (asked.machines.accelerators.empty() || !asked.machines.price.empty())
    return asked.machines.price;
  return std::string(
      word_of(asked.world.prices.empty() ? PriceBasis::kOnDemand : PriceBasis::kOwned));
}

/// Loads the fleet file and the facts, with those that the file adds.
Status SimulatedFleet::load_facts(const CommandOptions& options, const SimulateOptions& asked,
                                  SpecFiles& files) {
  FactOverlay brought;
  if (!asked.machines.fleet.empty()) {
    Result<FleetFile> file = files.keep_fleet(asked.machines.fleet);
    if (!file) return forward_error(file);
    fleet_ = std::move(file->spec);
    brought = std::move(file->facts);
  }
  Result<Facts> facts = orrery::load_facts(options, brought);
  if (!facts) return forward_error(facts);
  facts_ = *std::move(facts);
  return {};
}

/// Returns the fleet of --fleet, or one made for --accelerators. A file states which nodes are
/// owned.
Result<FleetSpec> SimulatedFleet::fleet_asked_for(const SimulateOptions& asked,
                                                  const Loading& loading) {
  if (asked.machines.fleet.empty() == asked.machines.accelerators.empty()) {
    return input_error({}, "expected either --fleet FILE or --accelerators TYPE:N");
  }
  if (!asked.machines.fleet.empty()) {
    if (!asked.machines.price.empty()) {
      return wrong("price", fmt::format("{}: expected no --price with {}, whose key `ownership` "
                                        "(of a site, or of the nodes of a rack) decides it",
                                        asked.machines.price, asked.machines.fleet));
    }
    return *fleet_;
  }
  Result<NodeOwnership> ownership = ownership_asked_for(asked, loading.notes);
  if (!ownership) return forward_error(ownership);
  Result<std::vector<AcceleratorCount>> counts = accelerator_counts(asked.machines.accelerators);
  if (!counts) return forward_error(counts);
  Result<AcceleratorFleet> fleet = fleet_of_accelerators(
      facts_.catalog(), {*std::move(counts), loading.rules.node_accelerators});
  if (!fleet) return forward_error(fleet);
  if (!fleet->nodes.empty()) {
    Result<Catalog> more = facts_.catalog().with(fleet->nodes);
    if (!more) return forward_error(more);
    with_parts_ = *std::move(more);
  }
  for (SiteSpec& site : fleet->spec.sites) site.ownership = *ownership;
  std::vector<std::string>& notes = loading.notes.notes;
  notes.insert(notes.end(), fleet->assumptions.begin(), fleet->assumptions.end());
  return std::move(fleet->spec);
}

Status SimulatedFleet::load_cluster(const SimulateOptions& asked, const Loading& loading) {
  Result<FleetSpec> spec = fleet_asked_for(asked, loading);
  if (!spec) return forward_error(spec);
  const Catalog& catalog = with_parts_ ? *with_parts_ : facts_.catalog();
  if (!asked.scheduling.tenants.empty()) {
    Result<Document> document = loading.files.keep(asked.scheduling.tenants);
    if (!document) return forward_error(document);
    Result<TenantsSpec> tenants = read_tenants_spec(*document);
    if (!tenants) return forward_error(tenants);
    tenants_ = *std::move(tenants);
    const std::string& what = tenants_->description;
    loading.notes.notes.push_back(fmt::format("tenants of {}{}", printable(tenants_->name, 60),
                                              what.empty() ? "" : ": " + printable(what, 200)));
  }
  Result<std::unique_ptr<ControlFacts>> cluster = ControlFacts::make(
      {catalog, facts_.calibration(), facts_.models()}, *spec, tenants_ ? &*tenants_ : nullptr);
  if (!cluster) return forward_error(cluster);
  cluster_ = *std::move(cluster);
  const FleetCosts& costs = cluster_->costs();
  std::vector<std::string>& assumptions = loading.notes.assumptions;
  assumptions.insert(assumptions.end(), costs.assumptions().begin(), costs.assumptions().end());
  for (const std::string& missing : costs.missing()) {
    assumptions.push_back("left out: " + missing);
  }
  return {};
}

Status SimulatedFleet::check_prices(const SimulateOptions& asked) const {
  const Topology& fleet = cluster_->topology();
  bool owned = asked.world.prices.empty();
  for (std::uint32_t i = 0; i < fleet.node_count() && !owned; ++i) {
    owned = fleet.group(NodeId(i)).ownership == NodeOwnership::kOwned;
  }
  if (owned) return {};
  return wrong(
      "prices",
      fmt::format("{}: no node is owned, and the rent includes electricity; {}", asked.world.prices,
                  asked.machines.fleet.empty()
                      ? "--price owned makes the nodes owned"
                      : "`ownership: owned` of a site or of the nodes of a rack makes them owned"));
}

}  // namespace orrery

// twin/design/design_candidate.hpp - what one accelerator of a type costs, draws and does of each
// work of a design.
//
// Values that point into the catalog, which must outlive them. Cost: a plan search a work.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perf/facts.hpp"
#include "perf/site/purchase_price.hpp"
#include "planner/economics.hpp"
#include "twin/design/design_spec.hpp"

namespace orrery {

/// How fast a type does one work.
struct WorkRate {
  std::uint32_t accelerators = 1;  ///< of one job
  double tokens = 0;               ///< a second and accelerator; of a service those generated
  double step_seconds = 0;         ///< of training
  std::string layout;
};

/// A rate, or why there is none.
using MaybeRate = tl::expected<WorkRate, Error>;

struct DesignCandidate {
  const Accelerator* accelerator = nullptr;
  const NodeType* node = nullptr;
  std::optional<PurchasePrice> price;  ///< of one accelerator with its share of the server
  Watts power;                         ///< rating of one accelerator with its share of the node
  double pue = 1;
  std::vector<MaybeRate> rates;  ///< by work

  [[nodiscard]] double node_accelerators() const { return node->accelerators_per_node; }
};

/// Returns the candidates that the spec names, else every type whose node has a rated power and,
/// where there is a budget, a purchase price; without those it excludes. Errors: unknown names,
/// with their position; no candidate; a named one without the figures, naming them.
[[nodiscard]] Result<std::vector<DesignCandidate>> design_candidates(const FactsView& facts,
                                                                     const DesignSpec& spec);

/// Finds the best plan of one job of the work on such nodes. Errors: kInput for user errors in the
/// work; else why there is no plan, with the smallest changes that help.
[[nodiscard]] MaybeRate rate_of(const FactsView& facts, const DesignCandidate& candidate,
                                const DesignWork& work);

}  // namespace orrery

// perf/site/purchase_price.hpp - what buying a server costs, by accelerator: the part of an owned
// machine's price that comes before years and utilisation (perf/site/money.hpp).
//
// Values, pure. Cost: a few look-ups.
#pragma once

#include <optional>
#include <string>

#include "perf/site/money.hpp"

namespace orrery {

/// What buying one accelerator with its share of the server costs, without network and storage.
struct PurchasePrice {
  Dollars each;
  std::string basis;                   ///< "dgx-h100 (press)", "operator"
  std::optional<std::string> assumed;  ///< what stands in for an unpublished price of a server
};

/// The operator's price of the node, else the catalog's of the node, of a rack made of such nodes,
/// or of the accelerator times money.server.factor. Errors: none of these is known.
[[nodiscard]] Result<PurchasePrice> purchase_price(const PriceSources& sources,
                                                   const NodeType& node,
                                                   const PriceOptions& options);

}  // namespace orrery

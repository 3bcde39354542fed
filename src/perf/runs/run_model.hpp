// perf/runs/run_model.hpp - the model a published row means.
//
// A row gives a name, a shape, or both. A name alone is the catalog's model. With a shape, the
// shape counts ("truncated" layers, padded heads), and a catalog model of that name and width adds
// what rows do not say: windows, biases, norms, latent attention. Without one the rules of the
// name's family do, else those of Llama (gated) or GPT-2.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/format/document.hpp"
#include "workload/models/model_catalog.hpp"

namespace orrery {

/// The catalog's model of that name without regard to case and punctuation, and without what rows
/// add to names: parentheses, "pad", "-MaxText", "LoRA". nullptr: none. Cost: O(names).
[[nodiscard]] const CatalogModel* find_run_model(std::string_view name,
                                                 const ModelCatalog& catalog);

/// `node` is a name, or a mapping with `name`, a shape, or both; other keys of it are ignored.
/// `sequence`: rows of a learned position table that is not the catalog's. What was not understood
/// goes to `warnings`. Errors: the first wrong or missing field, with its position; an unknown name
/// without a shape, with the nearest one. Cost: O(names + layers).
[[nodiscard]] Result<Model> read_run_model(const DocumentNode& node, const ModelCatalog& catalog,
                                           std::optional<std::int64_t> sequence,
                                           std::vector<std::string>& warnings);

}  // namespace orrery

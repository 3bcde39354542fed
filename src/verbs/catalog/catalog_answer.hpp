// verbs/catalog/catalog_answer.hpp - facts of the catalog for people and programs.
#pragma once

#include <functional>
#include <string>

#include "hardware/catalog.hpp"
#include "verbs/verb_answer.hpp"
#include "workload/models/model_catalog.hpp"

namespace orrery {

/// Models are loaded only by questions that need them.
struct CatalogFacts {
  const Catalog& catalog;
  std::function<Result<ModelCatalog>()> models;
};

/// Lists the kinds of facts (`kind` empty), or the rows of one kind. Errors: an unknown kind, with
/// the kinds that there are; those of the models.
[[nodiscard]] Result<VerbAnswer> list_catalog(const CatalogFacts& facts, const std::string& kind);

/// A name, and the kind of facts to look in ("": all).
struct CatalogName {
  std::string kind;
  std::string name;
};

/// Shows one row by id or alias, an evidence, a model, or the model of a config.json. Errors: an
/// unknown name, with a near one; those of the file and of the models.
[[nodiscard]] Result<VerbAnswer> show_catalog(const CatalogFacts& facts, const CatalogName& wanted);

/// Shows which framework runs on which accelerator; `first` and `second` name one of each in either
/// order, and an empty one stands for all. Errors: an unknown name; two names of one kind.
[[nodiscard]] Result<VerbAnswer> show_stacks(const Catalog& catalog, const std::string& first,
                                             const std::string& second);

}  // namespace orrery

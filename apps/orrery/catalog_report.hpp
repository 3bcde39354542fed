// apps/orrery/catalog_report.hpp - facts of the catalog for people and programs.
#pragma once

#include <string>

#include "apps/orrery/context.hpp"

namespace orrery {

/// Lists the kinds of facts (`kind` empty), or the rows of one kind.
[[nodiscard]] Status list_catalog(const CommandOptions& options, const std::string& kind);

/// A name, and the kind of facts to look in ("": all).
struct CatalogName {
  std::string kind;
  std::string name;
};

/// Shows one row by id or alias, an evidence, a model, or the model of a config.json.
[[nodiscard]] Status show_catalog(const CommandOptions& options, const CatalogName& wanted);

/// Shows which framework runs on which accelerator; `first` and `second` name one of each in either
/// order, and an empty one stands for all.
[[nodiscard]] Status show_stacks(const CommandOptions& options, const std::string& first,
                                 const std::string& second);

}  // namespace orrery

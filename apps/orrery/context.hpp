// apps/orrery/context.hpp - what the verbs of `orrery` share: options, the catalog, output.
#pragma once

#include <string>

#include "base/error.hpp"
#include "base/field_writer.hpp"
#include "hardware/catalog.hpp"
#include "perf/calibration.hpp"
#include "workload/model_catalog.hpp"

namespace orrery {

enum class OutputFormat { kText, kJson };

/// Options that stand before or after any verb.
struct CommandOptions {
  std::string catalog_directory;
  OutputFormat output = OutputFormat::kText;
};

/// The catalog compiled in, overlaid with --catalog.
[[nodiscard]] Result<Catalog> load_catalog(const CommandOptions& options);
[[nodiscard]] Result<ModelCatalog> load_models(const CommandOptions& options);
[[nodiscard]] Result<Calibration> load_calibration(const CommandOptions& options);

/// To standard output. A failed write is noticed once, at the end: main() then exits with 1.
void print_text(const std::string& text);

/// To standard error; what cannot be written there is lost.
void print_message(const std::string& text);

/// One JSON document on standard output.
void print_json(const Json& json);

}  // namespace orrery

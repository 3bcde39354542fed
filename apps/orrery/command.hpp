// apps/orrery/command.hpp - what every verb of `orrery` shares: options, output and exit codes.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/error.hpp"
#include "base/field_writer.hpp"
#include "hardware/catalog.hpp"
#include "workload/model_catalog.hpp"

namespace orrery {

enum class OutputFormat { kText, kJson };

/// Options that stand before or after any verb.
struct CommandOptions {
  std::string catalog_directory;
  OutputFormat output = OutputFormat::kText;
};

/// What a verb does when it was the one called; its Status decides the exit code.
using Action = std::function<Status()>;

/// The catalog compiled in, overlaid with --catalog.
[[nodiscard]] Result<Catalog> load_catalog(const CommandOptions& options);
[[nodiscard]] Result<ModelCatalog> load_models(const CommandOptions& options);

/// One JSON document on standard output.
void print_json(const Json& json);

void add_catalog_commands(CLI::App& app, CommandOptions& options, Action& chosen);
void add_fleet_commands(CLI::App& app, CommandOptions& options, Action& chosen);

}  // namespace orrery

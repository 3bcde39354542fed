// verbs/command_options.hpp - what the verbs of `orrery` share: options and the facts they rest on.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "perf/facts.hpp"

namespace orrery {

enum class OutputFormat { kText, kJson };
enum class Colour { kOff, kOn };

/// Options that may precede or follow any verb.
struct CommandOptions {
  std::string catalog_directory;
  OutputFormat output = OutputFormat::kText;
  Colour colour = Colour::kOff;                     ///< colour of text on standard output
  std::string cluster_directory;                    ///< --dir or ORRERY_DIR; empty: the default
  std::string home;                                 ///< home directory of the user; empty: unknown
  std::string terminal_type = "dumb";               ///< TERM
  double retry_s = 10;                              ///< how long a verb tries to reach a controller
  std::optional<std::vector<std::string>> command;  ///< the words after "--"
  int exit_status = 0;  ///< exit status of the command that a successful verb has run
  /// Shows a message while a verb still works; empty: messages are dropped.
  std::function<void(const std::string&)> message = {};
};

/// Loads the built-in facts, overlaid with those of --catalog and then those of a fleet file.
[[nodiscard]] Result<Facts> load_facts(const CommandOptions& options,
                                       const FactOverlay& fleet = {});
/// For verbs that need one part of the facts.
[[nodiscard]] Result<Catalog> load_catalog(const CommandOptions& options);
[[nodiscard]] Result<ModelCatalog> load_models(const CommandOptions& options);

}  // namespace orrery

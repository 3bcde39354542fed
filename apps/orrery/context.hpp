// apps/orrery/context.hpp - what the verbs of `orrery` share: options, the catalog, output.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/format/field_writer.hpp"
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
};

/// Loads the built-in facts, overlaid with those of --catalog and then those of a fleet file.
[[nodiscard]] Result<Facts> load_facts(const CommandOptions& options,
                                       const FactOverlay& fleet = {});
/// For verbs that need one part of the facts.
[[nodiscard]] Result<Catalog> load_catalog(const CommandOptions& options);
[[nodiscard]] Result<ModelCatalog> load_models(const CommandOptions& options);

/// Prints lines for people to standard output; control characters are escaped, since names and
/// causes come from users. A failed write is noticed once, at the end: main() then exits with 1.
void print_text(const std::string& text);
/// Makes one line of a sentence with names or causes of users: line breaks in them are escaped.
[[nodiscard]] std::string one_line(std::string_view text);
/// Prints text whose parts were escaped, such as a TextTable with its colours.
void print_shown(const std::string& text);
/// Prints bytes unchanged: logs, specs, files.
void print_bytes(std::string_view bytes);

/// Prints to standard error, escaped as print_text does; text that cannot be written is lost.
void print_message(const std::string& text);

/// Prints to a terminal on standard error, with the controls that redraw a line of progress.
/// Precondition: names in it are escaped.
void print_progress(const std::string& text);

/// Prints one JSON document to standard output.
void print_json(const Json& json);

}  // namespace orrery

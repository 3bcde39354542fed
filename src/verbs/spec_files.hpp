// verbs/spec_files.hpp - the files that options name: on disk, beside the file that names
// them, or passed as text.
//
// On the command line a name is a path. Studies and records name files beside their own. Values.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/format/document.hpp"
#include "fleet/spec/spec.hpp"

namespace orrery {

struct SpecFiles {
  std::string directory;                     ///< where a relative path is looked for first
  std::map<std::string, std::string> texts;  ///< by name, in place of files

  /// Returns the path of a file: in `directory` if there is such a file, else the name itself.
  [[nodiscard]] std::string path(const std::string& name) const;
  /// Errors: those of Document::load and Document::parse.
  [[nodiscard]] Result<Document> document(const std::string& name) const;
  /// Errors: those of read_fleet_file.
  [[nodiscard]] Result<FleetFile> fleet(const std::string& name) const;
  /// Reads a document and keeps its text, so that a holder of these files can read it again.
  [[nodiscard]] Result<Document> keep(const std::string& name);
  [[nodiscard]] Result<FleetFile> keep_fleet(const std::string& name);

 private:
  /// Keeps the text of a file; returns the name of the file in messages.
  [[nodiscard]] Result<std::string> keep_text(const std::string& name);
};

/// Whether an option that takes a name or a file means a file: one with a slash (before the options
/// of a name) or with the suffix .yaml, .yml or .json.
[[nodiscard]] bool is_file_name(std::string_view text);

}  // namespace orrery

// fleet/import/slurm_conf.hpp - the line format Slurm's configuration files share, read strictly.
//
// A line is one or more key=value settings; '#' begins a comment, a '\' at the end of a line joins
// the next, a value with blanks is in double quotes, keys are case-insensitive. The meaning of a
// key is left to the caller. Mistakes that Slurm would silently ignore are errors with their
// position: an unclosed quote, a word that is not a setting, a duplicate key in a line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace orrery {

struct SlurmSetting {
  std::string key;  ///< in lower case
  std::string value;
  SourcePosition where;  ///< position of the key
};

/// The settings of one line, at least one, in their order; the first identifies the kind of line.
struct SlurmLine {
  std::vector<SlurmSetting> settings;

  [[nodiscard]] const SlurmSetting& first() const { return settings.front(); }
  /// Finds a setting by its key in lower case; nullptr if the line has none.
  [[nodiscard]] const SlurmSetting* find(std::string_view key) const;
};

/// Limits of one configuration, including its included files.
inline constexpr std::size_t kSlurmConfBytesMax = 8u << 20;
inline constexpr std::size_t kSlurmConfFilesMax = 1024;
inline constexpr std::size_t kSlurmConfDepthMax = 16;
inline constexpr std::size_t kSlurmConfSettingsMax = 500'000;

/// Returns the lines of a file, with those of `Include FILE` in its place; FILE is relative to the
/// directory of `path`. Errors (kInput, with file:line): malformed lines, exceeded limits, files
/// that include themselves, files that are missing or not text. Cost O(bytes).
[[nodiscard]] Result<std::vector<SlurmLine>> read_slurm_conf(const std::string& path);

}  // namespace orrery

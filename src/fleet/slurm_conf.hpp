// fleet/slurm_conf.hpp - the line format Slurm's configuration files share, read strictly.
//
// A line is one or more key=value settings; '#' begins a comment, a '\' at the end of a line joins
// the next, a value with blanks stands in double quotes, keys are case-insensitive. What a key
// means is its reader's business. Everything Slurm would pass over in silence but a person would
// not is an error at its place: a quote never closed, a word that is no setting, a key twice in a
// line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace orrery {

struct SlurmSetting {
  std::string key;  ///< in lower case
  std::string value;
  SourcePosition where;  ///< of the key
};

/// The settings of one line, at least one, in their order; the first says what the line is about.
struct SlurmLine {
  std::vector<SlurmSetting> settings;

  [[nodiscard]] const SlurmSetting& first() const { return settings.front(); }
  /// By key in lower case; nullptr when the line has none.
  [[nodiscard]] const SlurmSetting* find(std::string_view key) const;
};

/// Limits of one configuration, its included files counted in.
inline constexpr std::size_t kSlurmConfBytesMax = 8u << 20;
inline constexpr std::size_t kSlurmConfFilesMax = 1024;
inline constexpr std::size_t kSlurmConfDepthMax = 16;
inline constexpr std::size_t kSlurmConfSettingsMax = 500'000;

/// The lines of a file, those of `Include FILE` in their place; FILE is relative to the directory
/// of `path`. Errors (kInput, with file:line): see above; limits, files that include themselves,
/// files that are missing or not text. Cost O(bytes).
[[nodiscard]] Result<std::vector<SlurmLine>> read_slurm_conf(const std::string& path);

}  // namespace orrery

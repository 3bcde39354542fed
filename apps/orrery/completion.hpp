// apps/orrery/completion.hpp - the possible next words of a command line of `orrery`, found in the
// tree of its verbs and options, so that completion always matches them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "verbs/cluster/live_words.hpp"

namespace orrery {

/// Candidates that only the shell or a cluster knows, beside or instead of words.
enum class CompletionSource : std::uint8_t {
  kNone,
  kFiles,        ///< files, completed by the shell
  kDirectories,  ///< directories, completed by the shell
  kJobs,         ///< jobs of a running cluster
  kLiveJobs,     ///< those of them that have not ended
  kNodes,        ///< nodes of a running cluster
};

struct Completion {
  std::vector<CompletionWord> words;  ///< candidates that begin with the last word; sorted
  CompletionSource source = CompletionSource::kNone;
  std::string begun;      ///< the last word, as typed so far
  std::string directory;  ///< given by --dir; empty: not given
};

/// Completes the words after the program's name, the last of which may be empty. O(options).
[[nodiscard]] Completion complete(const CLI::App& app, const std::vector<std::string>& words);

/// Returns, for "bash", "zsh" or "fish", a script that asks `orrery __complete WORD..` for one word
/// per line (a tab before its description), or ":files" and ":directories" for names that the shell
/// knows; else empty.
[[nodiscard]] std::string_view completion_script(std::string_view shell);

}  // namespace orrery

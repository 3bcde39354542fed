// apps/orrery/completion.hpp - what may stand next on a command line of `orrery`, found in the tree
// of its verbs and options, so that it is never behind them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

struct CompletionWord {
  std::string word;
  std::string what;  ///< it is, in a line; may be empty
};

/// What only others know, beside or instead of words.
enum class CompletionSource : std::uint8_t {
  kNone,
  kFiles,        ///< of the shell
  kDirectories,  ///< of the shell
  kJobs,         ///< of a running cluster
  kLiveJobs,     ///< those of them that have not ended
  kNodes,        ///< of a running cluster
};

struct Completion {
  std::vector<CompletionWord> words;  ///< those that go on as the last word begins; sorted
  CompletionSource source = CompletionSource::kNone;
  std::string begun;      ///< the last word, as far as it is there
  std::string directory;  ///< that --dir gives; empty: it is not there
};

/// Completes the words after the program's name, the last of which may be empty. O(options).
[[nodiscard]] Completion complete(const CLI::App& app, const std::vector<std::string>& words);

/// For "bash", "zsh" or "fish": a script that asks `orrery __complete WORD..` for a line each word
/// (a tab before what it is), or ":files" and ":directories" for what the shell knows; else empty.
[[nodiscard]] std::string_view completion_script(std::string_view shell);

}  // namespace orrery

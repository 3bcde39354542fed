// orrery completion
#include <fmt/format.h>

#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/completion.hpp"
#include "apps/orrery/output.hpp"
#include "verbs/cluster/live_words.hpp"

namespace orrery {
namespace {

LiveWords words_of(CompletionSource source) {
  if (source == CompletionSource::kNodes) return LiveWords::kNodes;
  return source == CompletionSource::kJobs ? LiveWords::kJobs : LiveWords::kLiveJobs;
}

void print_word(const CompletionWord& word) {
  print_bytes(word.what.empty() ? word.word + "\n" : fmt::format("{}\t{}\n", word.word, word.what));
}

Status print_script(const std::string& shell) {
  const std::string_view script = completion_script(shell);
  if (script.empty()) {
    return input_error({}, fmt::format("shell \"{}\": expected bash, zsh or fish", shell));
  }
  print_bytes(std::string(script));
  return {};
}

}  // namespace

void print_completion(const CLI::App& app, CommandOptions options,
                      const std::vector<std::string>& words) {
  const Completion found = complete(app, words);
  for (const CompletionWord& word : found.words) print_word(word);
  switch (found.source) {
    case CompletionSource::kNone:
      return;
    case CompletionSource::kFiles:
      return print_bytes(":files\n");
    case CompletionSource::kDirectories:
      return print_bytes(":directories\n");
    case CompletionSource::kJobs:
    case CompletionSource::kLiveJobs:
    case CompletionSource::kNodes:
      break;
  }
  if (!found.directory.empty()) options.cluster_directory = found.directory;
  options.retry_s = 0;
  for (const CompletionWord& word : live_words(options, words_of(found.source), found.begun)) {
    print_word(word);
  }
}

void add_completion_commands(CLI::App& app, CommandOptions&, Verb& chosen) {
  auto shell = std::make_shared<std::string>();
  CLI::App& verb = *app.add_subcommand(
      "completion", "print a shell script that completes verbs, options, jobs and nodes");
  verb.add_option("shell", *shell, "shell to write the script for")
      ->type_name("bash|zsh|fish")
      ->required();
  verb.footer(
      "Permanent installation:\n"
      "  echo 'source <(orrery completion bash)' >> ~/.bashrc\n"
      "  echo 'source <(orrery completion zsh)' >> ~/.zshrc    (after compinit)\n"
      "  orrery completion fish > ~/.config/fish/completions/orrery.fish");
  verb.callback([&chosen, shell] { chosen = [shell] { return print_script(*shell); }; });
}

}  // namespace orrery

#include "apps/orrery/completion.hpp"

#include <algorithm>
#include <span>

namespace orrery {
namespace {

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// Options stand behind any inner verb, too.
const CLI::Option* option_named(const CLI::App& verb, const std::string& name) {
  for (const CLI::App* app = &verb; app != nullptr; app = app->get_parent()) {
    if (const CLI::Option* found = app->get_option_no_throw(name); found != nullptr) return found;
  }
  return nullptr;
}

const CLI::App* verb_named(const CLI::App& app, const std::string& name) {
  const auto found =
      app.get_subcommands([&](const CLI::App* each) { return each->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

/// The argument without a name that stands at `place` among those; null: there is none.
const CLI::Option* argument_at(const CLI::App& verb, int place) {
  for (const CLI::Option* option : verb.get_options()) {
    if (!option->get_positional()) continue;
    if (place < option->get_items_expected_max()) return option;
    place -= option->get_items_expected_max();
  }
  return nullptr;
}

/// The command line but for its last word.
struct Begun {
  const CLI::App* verb = nullptr;
  const CLI::Option* option = nullptr;  ///< that waits for its value
  int arguments = 0;                    ///< of the verb, so far
  bool own_command = false;             ///< behind "--"
  std::string directory;
};

Begun read(const CLI::App& app, std::span<const std::string> words) {
  Begun begun{.verb = &app};
  for (const std::string& word : words) {
    if (word == "--") {
      begun.own_command = true;
      return begun;
    }
    if (word == "=") continue;  // between an option and its value, where bash parts words
    if (begun.option != nullptr) {
      if (begun.option->check_lname("dir")) begun.directory = word;
      begun.option = nullptr;
    } else if (word.starts_with('-')) {
      const CLI::Option* option = option_named(*begun.verb, word);
      if (option != nullptr && takes_value(*option)) begun.option = option;
    } else if (const CLI::App* inner = verb_named(*begun.verb, word); inner != nullptr) {
      begun.verb = inner;
      begun.arguments = 0;
    } else {
      ++begun.arguments;
    }
  }
  return begun;
}

class Candidates {
 public:
  explicit Candidates(std::string begun) { completion_.begun = std::move(begun); }

  void add(const std::string& word, const std::string& what) {
    if (!word.starts_with(completion_.begun)) return;
    completion_.words.push_back({word, what.substr(0, what.find('\n'))});
  }
  void add_verbs(const CLI::App& app) {
    const auto shown = [](const CLI::App* each) { return !each->get_group().empty(); };
    for (const CLI::App* verb : app.get_subcommands(shown)) {
      add(verb->get_name(), verb->get_description());
    }
  }
  void add_options(const CLI::App& verb) {
    for (const CLI::App* app = &verb; app != nullptr; app = app->get_parent()) {
      for (const CLI::Option* option : app->get_options()) {
        if (option->get_group().empty()) continue;
        for (const std::string& name : option->get_lnames()) {
          add("--" + name, option->get_description());
        }
      }
    }
  }
  /// By the name of its type: "FILE", "DIR", "JOB", "JOB.." (those that one can still do something
  /// about), "NODE", "this|that".
  void add_values(const CLI::Option& option);

  [[nodiscard]] Completion take() {
    std::ranges::sort(completion_.words, {}, &CompletionWord::word);
    return std::move(completion_);
  }
  void from(CompletionSource source) { completion_.source = source; }
  void in(std::string directory) { completion_.directory = std::move(directory); }

 private:
  Completion completion_;
};

void Candidates::add_values(const CLI::Option& option) {
  const std::string type =
      option.get_type_name() == "TEXT" ? option.get_name(true) : option.get_type_name();
  // A text without a more specific type is probably a file.
  const bool file = type.starts_with("FILE") || type == "file" || type == "DIR|FILE";
  if (file || (type.empty() && !option.get_positional())) {
    from(CompletionSource::kFiles);
  } else if (type.starts_with("DIR") || option.check_lname("directory")) {
    from(CompletionSource::kDirectories);
  } else if (type == "JOB" && option.get_positional()) {
    from(CompletionSource::kJobs);
  } else if (type == "JOB..") {
    from(CompletionSource::kLiveJobs);
  } else if (type.starts_with("NODE")) {
    from(CompletionSource::kNodes);
  } else if (type.find('|') != type.npos) {
    for (std::size_t at = 0; at <= type.size();) {
      const std::size_t end = std::min(type.find('|', at), type.size());
      add(type.substr(at, end - at), "");
      at = end + 1;
    }
  }
}

constexpr std::string_view kBash = R"(# bash completion of orrery:  source <(orrery completion bash)
_orrery() {
  local line paths=
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files) paths=-f ;;
      :directories) paths=-d ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <("${1/#\~/$HOME}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [ -n "$paths" ]; then
    compopt -o filenames 2>/dev/null
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen $paths -- "$2")
  fi
}
complete -F _orrery orrery
)";

constexpr std::string_view kZsh = R"(#compdef orrery
# zsh completion of orrery:  source <(orrery completion zsh), after compinit
_orrery() {
  local line word
  local -a found
  for line in "${(@f)$(${~words[1]} __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
      :files) _files ;;
      :directories) _files -/ ;;
      ?*) word=${line%%$'\t'*}; found+=("${word//:/\\:}:${line#*$'\t'}") ;;
    esac
  done
  (( $#found )) && _describe -o orrery found
}
compdef _orrery orrery
)";

constexpr std::string_view kFish = R"(# fish completion of orrery:  orrery completion fish | source
function __orrery_complete
  set -l words (commandline -opc)
  set -l last (commandline -ct)
  for line in ($words[1] __complete $words[2..-1] "$last" 2>/dev/null)
    switch $line
      case ':files'
        __fish_complete_path "$last"
      case ':directories'
        __fish_complete_directories "$last"
      case '*'
        printf '%s\n' $line
    end
  end
end
complete -c orrery -f -a '(__orrery_complete)'
)";

}  // namespace

Completion complete(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) return {};
  const Begun begun = read(app, std::span(words).first(words.size() - 1));
  Candidates candidates(words.back() == "=" ? "" : words.back());
  candidates.in(begun.directory);
  if (begun.own_command) {
    candidates.from(CompletionSource::kFiles);
  } else if (begun.option != nullptr) {
    candidates.add_values(*begun.option);
  } else if (words.back().starts_with('-')) {
    candidates.add_options(*begun.verb);
  } else {
    if (begun.arguments == 0) candidates.add_verbs(*begun.verb);
    const CLI::Option* argument = argument_at(*begun.verb, begun.arguments);
    if (argument != nullptr) candidates.add_values(*argument);
  }
  return candidates.take();
}

std::string_view completion_script(std::string_view shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  return shell == "fish" ? kFish : "";
}

}  // namespace orrery

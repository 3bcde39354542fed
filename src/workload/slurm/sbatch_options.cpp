#include "workload/slurm/sbatch_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text/nearest_name.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

enum class Takes : std::uint8_t { kNothing, kValue, kPerhaps };

/// What happens to an option.
enum class Fate : std::uint8_t {
  kUsed,
  kNoted,    ///< accepted, without effect
  kRefused,  ///< omitting it would change the job
};

struct KnownOption {
  std::string_view name;
  char letter = 0;
  Takes takes = Takes::kValue;
  Fate fate = Fate::kUsed;
  std::string_view why = {};
};

constexpr std::string_view kPlaced = "placed by what is asked for";
constexpr std::string_view kOwnKind = "cores are not bound to tasks";
constexpr std::string_view kNobody = "there is nothing of the kind";
constexpr std::string_view kAtOnce = "a job starts as soon as it can";
constexpr std::string_view kNodes = "no node can be named";
constexpr std::string_view kPrints = "it only prints a text";

constexpr auto kKnown = std::to_array<KnownOption>({
    {"account", 'A'},
    {"array", 'a'},
    {"chdir", 'D'},
    {"cpus-per-gpu"},
    {"cpus-per-task", 'c'},
    {"dependency", 'd'},
    {"error", 'e'},
    {"exclusive", 0, Takes::kPerhaps},
    {"export"},
    {"gpus", 'G'},
    {"gpus-per-node"},
    {"gpus-per-task"},
    {"gres"},
    {"hold", 'H', Takes::kNothing},
    {"job-name", 'J'},
    {"mem"},
    {"mem-per-cpu"},
    {"mem-per-gpu"},
    {"no-requeue", 0, Takes::kNothing},
    {"nodes", 'N'},
    {"ntasks", 'n'},
    {"ntasks-per-gpu"},
    {"ntasks-per-node"},
    {"output", 'o'},
    {"partition", 'p'},
    {"qos", 'q'},
    {"requeue", 0, Takes::kNothing},
    {"time", 't'},

    {"acctg-freq", 0, Takes::kValue, Fate::kNoted, kNobody},
    {"clusters", 'M', Takes::kValue, Fate::kNoted, kPlaced},
    {"comment", 0, Takes::kValue, Fate::kNoted, kNobody},
    {"constraint", 'C', Takes::kValue, Fate::kNoted, kPlaced},
    {"contiguous", 0, Takes::kNothing, Fate::kNoted, kPlaced},
    {"core-spec", 'S', Takes::kValue, Fate::kNoted, kOwnKind},
    {"cores-per-socket", 0, Takes::kValue, Fate::kNoted, kOwnKind},
    {"cpu-freq", 0, Takes::kValue, Fate::kNoted, kNobody},
    {"delay-boot", 0, Takes::kValue, Fate::kNoted, kNobody},
    {"distribution", 'm', Takes::kValue, Fate::kNoted, "tasks fill node after node"},
    {"extra-node-info", 'B', Takes::kValue, Fate::kNoted, kOwnKind},
    {"get-user-env", 0, Takes::kPerhaps, Fate::kNoted, "see --export"},
    {"gpu-bind", 0, Takes::kValue, Fate::kNoted, "srun --gpus-per-task gives each its own"},
    {"gpu-freq", 0, Takes::kValue, Fate::kNoted, kNobody},
    {"gres-flags", 0, Takes::kValue, Fate::kNoted, kOwnKind},
    {"hint", 0, Takes::kValue, Fate::kNoted, kOwnKind},
    {"ignore-pbs", 0, Takes::kNothing, Fate::kNoted, "lines of PBS are never read"},
    {"input", 'i', Takes::kValue, Fate::kNoted, "there is nothing to read"},
    {"kill-on-invalid-dep", 0, Takes::kValue, Fate::kNoted, kNobody},
    {"licenses", 'L', Takes::kValue, Fate::kNoted, kNobody},
    {"mail-type", 0, Takes::kValue, Fate::kNoted, "no mail is sent; see `orrery wait`"},
    {"mail-user", 0, Takes::kValue, Fate::kNoted, "no mail is sent; see `orrery wait`"},
    {"mem-bind", 0, Takes::kValue, Fate::kNoted, kOwnKind},
    {"mincpus", 0, Takes::kValue, Fate::kNoted, kPlaced},
    {"network", 0, Takes::kValue, Fate::kNoted, kNobody},
    {"nice", 0, Takes::kPerhaps, Fate::kNoted, "see --priority of `orrery submit`"},
    {"no-kill", 'k', Takes::kPerhaps, Fate::kNoted, "a job ends when a node is lost"},
    {"ntasks-per-core", 0, Takes::kValue, Fate::kNoted, kOwnKind},
    {"ntasks-per-socket", 0, Takes::kValue, Fate::kNoted, kOwnKind},
    {"open-mode", 0, Takes::kValue, Fate::kNoted, "the first attempt begins a file anew"},
    {"overcommit", 'O', Takes::kNothing, Fate::kNoted, kOwnKind},
    {"oversubscribe", 's', Takes::kNothing, Fate::kNoted, kPlaced},
    {"parsable", 0, Takes::kNothing, Fate::kNoted, "see -o json"},
    {"prefer", 0, Takes::kValue, Fate::kNoted, kPlaced},
    {"priority", 0, Takes::kValue, Fate::kNoted, "its scale is another: see `orrery submit`"},
    {"profile", 0, Takes::kValue, Fate::kNoted, kNobody},
    {"propagate", 0, Takes::kPerhaps, Fate::kNoted, "limits are those of the node"},
    {"quiet", 'Q', Takes::kNothing, Fate::kNoted, kNobody},
    {"reservation", 0, Takes::kValue, Fate::kNoted, kPlaced},
    {"signal", 0, Takes::kValue, Fate::kNoted, "SIGTERM comes 30 s before SIGKILL"},
    {"sockets-per-node", 0, Takes::kValue, Fate::kNoted, kOwnKind},
    {"spread-job", 0, Takes::kNothing, Fate::kNoted, kPlaced},
    {"switches", 0, Takes::kValue, Fate::kNoted, kPlaced},
    {"thread-spec", 0, Takes::kValue, Fate::kNoted, kOwnKind},
    {"threads-per-core", 0, Takes::kValue, Fate::kNoted, kOwnKind},
    {"time-min", 0, Takes::kValue, Fate::kNoted, "--time holds"},
    {"tmp", 0, Takes::kValue, Fate::kNoted, kPlaced},
    {"use-min-nodes", 0, Takes::kNothing, Fate::kNoted, kPlaced},
    {"verbose", 'v', Takes::kNothing, Fate::kNoted, kNobody},
    {"wait-all-nodes", 0, Takes::kValue, Fate::kNoted, "all nodes are there"},
    {"wckey", 0, Takes::kValue, Fate::kNoted, kNobody},

    {"batch", 0, Takes::kValue, Fate::kRefused, kNodes},
    {"bb", 0, Takes::kValue, Fate::kRefused, kNobody},
    {"bbf", 0, Takes::kValue, Fate::kRefused, kNobody},
    {"begin", 'b', Takes::kValue, Fate::kRefused, kAtOnce},
    {"cluster-constraint", 0, Takes::kValue, Fate::kRefused, kNobody},
    {"container", 0, Takes::kValue, Fate::kRefused, kNobody},
    {"deadline", 0, Takes::kValue, Fate::kRefused, kAtOnce},
    {"exclude", 'x', Takes::kValue, Fate::kRefused, kNodes},
    {"export-file", 0, Takes::kValue, Fate::kRefused, "see --export"},
    {"gid", 0, Takes::kValue, Fate::kRefused, "it runs as its own user"},
    {"gpus-per-socket", 0, Takes::kValue, Fate::kRefused, "see --gpus-per-node"},
    {"help", 'h', Takes::kNothing, Fate::kRefused, kPrints},
    {"mcs-label", 0, Takes::kValue, Fate::kRefused, kNobody},
    {"nodefile", 'F', Takes::kValue, Fate::kRefused, kNodes},
    {"nodelist", 'w', Takes::kValue, Fate::kRefused, kNodes},
    {"power", 0, Takes::kValue, Fate::kRefused, kNobody},
    {"reboot", 0, Takes::kNothing, Fate::kRefused, kNobody},
    {"test-only", 0, Takes::kNothing, Fate::kRefused, "see `orrery submit --dry-run`"},
    {"uid", 0, Takes::kValue, Fate::kRefused, "it runs as its own user"},
    {"usage", 0, Takes::kNothing, Fate::kRefused, kPrints},
    {"version", 'V', Takes::kNothing, Fate::kRefused, kPrints},
    {"wait", 'W', Takes::kNothing, Fate::kRefused, "see `orrery submit --wait`"},
    {"wrap", 0, Takes::kValue, Fate::kRefused, "the script is there already"},
});

constexpr std::string_view kMark = "#SBATCH";

struct Word {
  std::string text;
  int column = 0;
};

bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// The words of the rest of a line, up to a comment.
Result<std::vector<Word>> words_of(std::string_view line, SourcePosition where) {
  std::vector<Word> words;
  for (std::size_t at = kMark.size(); at < line.size();) {
    if (is_blank(line[at])) {
      ++at;
      continue;
    }
    if (line[at] == '#') break;
    Word word{{}, static_cast<int>(at) + 1};
    char quote = 0;
    for (; at < line.size() && (quote != 0 || !is_blank(line[at])); ++at) {
      const char c = line[at];
      if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
      } else if (c == quote) {
        quote = 0;
      } else {
        if (c == '\\' && quote != '\'' && at + 1 < line.size()) ++at;
        word.text += line[at];
      }
    }
    if (quote != 0) {
      where.column = word.column;
      return input_error(where, "a quote that is never closed");
    }
    words.push_back(std::move(word));
  }
  return words;
}

class OptionReader {
 public:
  OptionReader(const std::string& file, UnknownSbatchOption unknown)
      : file_(file), unknown_(unknown) {}

  Status read_line(std::string_view line, int number) {
    Result<std::vector<Word>> words = words_of(line, {file_, number, 1});
    if (!words) return forward_error(words);
    for (std::size_t at = 0; at < words->size(); ++at) {
      const Word& word = (*words)[at];
      const SourcePosition where{file_, number, word.column};
      Result<Found> found = find(word.text, where);
      if (!found) return forward_error(found);
      if (found->option == nullptr) {
        // Its value, if it has one, may be a separate word.
        while (at + 1 < words->size() && !(*words)[at + 1].text.starts_with('-')) ++at;
        continue;
      }
      if (found->option->takes == Takes::kValue && !found->value) {
        if (at + 1 == words->size()) {
          return input_error(where, fmt::format("--{} has no value", found->option->name));
        }
        found->value = (*words)[++at].text;
      }
      if (Status kept = keep(*found, where); !kept) return kept;
    }
    return {};
  }

  void note(int line, std::string_view what) {
    options_.notes.push_back(fmt::format("{}:{}: {}", file_, line, what));
  }
  [[nodiscard]] SbatchOptions take() { return std::move(options_); }

 private:
  struct Found {
    const KnownOption* option = nullptr;  ///< nullptr: unknown, and ignored
    std::optional<std::string> value;
  };

  Result<Found> find(const std::string& word, const SourcePosition& where) {
    if (word.starts_with("--") && word.size() > 2) {
      const std::size_t mark = word.find('=');
      const std::string name = word.substr(2, mark == word.npos ? word.npos : mark - 2);
      Found found{long_option(name), std::nullopt};
      if (mark != word.npos) found.value = word.substr(mark + 1);
      if (found.option == nullptr) return unknown("--" + name, where);
      return found;
    }
    if (!word.starts_with('-') || word.size() < 2) {
      return input_error(where, fmt::format("\"{}\": expected an option", printable(word, 60)));
    }
    for (const KnownOption& known : kKnown) {
      if (known.letter != word[1]) continue;
      Found found{&known, std::nullopt};
      if (word.size() > 2) found.value = word.substr(2);
      return found;
    }
    return unknown(word.substr(0, 2), where);
  }

  static const KnownOption* long_option(std::string_view name) {
    const KnownOption* begun = nullptr;
    int count = 0;
    for (const KnownOption& known : kKnown) {
      if (known.name == name) return &known;
      if (name.empty() || !known.name.starts_with(name)) continue;
      begun = &known;
      ++count;
    }
    return count == 1 ? begun : nullptr;
  }

  Result<Found> unknown(const std::string& option, const SourcePosition& where) {
    std::vector<std::string> names;
    names.reserve(kKnown.size());
    for (const KnownOption& known : kKnown) names.push_back("--" + std::string(known.name));
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    const std::string what = fmt::format("{} is no option of sbatch{}", printable(option, 60),
                                         did_you_mean(option, candidates));
    if (unknown_ == UnknownSbatchOption::kError) return input_error(where, what);
    note(where.line, what + ": passed over");
    return Found{};
  }

  Status keep(const Found& found, const SourcePosition& where) {
    const KnownOption& option = *found.option;
    if (option.takes == Takes::kNothing && found.value) {
      return input_error(where, fmt::format("--{} takes no value, found \"{}\"", option.name,
                                            printable(*found.value, 60)));
    }
    if (option.takes == Takes::kValue && found.value->empty()) {
      return input_error(where, fmt::format("--{} has an empty value", option.name));
    }
    if (option.fate == Fate::kUsed) {
      options_.used.push_back({option.name, found.value.value_or(""), where});
      return {};
    }
    const std::string what = fmt::format("--{} has no effect: {}", option.name, option.why);
    if (option.fate == Fate::kRefused && unknown_ == UnknownSbatchOption::kError) {
      return input_error(where, what + "; --lenient goes on without it");
    }
    note(where.line, what);
    return {};
  }

  const std::string& file_;
  UnknownSbatchOption unknown_;
  SbatchOptions options_;
};

}  // namespace

std::optional<SbatchLetter> sbatch_letter(char letter) {
  const auto known = std::ranges::find(kKnown, letter, &KnownOption::letter);
  if (letter == 0 || known == kKnown.end()) return std::nullopt;
  return SbatchLetter{known->name, known->takes != Takes::kNothing};
}

Result<SbatchOptions> read_sbatch_options(std::string_view script, const std::string& file,
                                          UnknownSbatchOption unknown) {
  OptionReader reader(file, unknown);
  bool commands = false;
  int number = 0;
  while (!script.empty()) {
    const std::size_t end = script.find('\n');
    const std::string_view line = script.substr(0, end);
    script.remove_prefix(end == script.npos ? script.size() : end + 1);
    ++number;
    const bool marked =
        line.starts_with(kMark) && (line.size() == kMark.size() || is_blank(line[kMark.size()]));
    if (commands) {
      if (marked) reader.note(number, "#SBATCH after the first command is not read");
      continue;
    }
    if (line.ends_with('\r')) {
      return input_error({file, number, static_cast<int>(line.size())},
                         "a line that ends in a carriage return, expected lines of Unix");
    }
    if (marked) {
      if (Status read = reader.read_line(line, number); !read) return forward_error(read);
    }
    const std::size_t first = line.find_first_not_of(" \t");
    commands = first != line.npos && line[first] != '#';
  }
  return reader.take();
}

}  // namespace orrery

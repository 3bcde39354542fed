#include "node/steps/srun_options.hpp"

#include <fmt/format.h>
#include <getopt.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "base/test_hooks.hpp"
#include "base/text/nearest_name.hpp"
#include "node/launch/process_environment.hpp"

namespace orrery {
namespace {

/// How an option is treated.
enum class Fate : std::uint8_t {
  kUsed,
  kPassed,   ///< of no consequence here
  kNoted,    ///< ignored, with a note
  kRefused,  ///< it would change the step
};

struct SrunOption {
  const char* name;
  char letter;
  int takes;  ///< in getopt's terms
  Fate fate;
};

constexpr auto kOptions = std::to_array<SrunOption>({
    {"chdir", 'D', required_argument, Fate::kUsed},
    {"cpus-per-task", 'c', required_argument, Fate::kUsed},
    {"error", 'e', required_argument, Fate::kUsed},
    {"export", 0, required_argument, Fate::kUsed},
    {"gpus-per-task", 0, required_argument, Fate::kUsed},
    {"input", 'i', required_argument, Fate::kUsed},
    {"kill-on-bad-exit", 'K', optional_argument, Fate::kUsed},
    {"label", 'l', no_argument, Fate::kUsed},
    {"nodelist", 'w', required_argument, Fate::kUsed},
    {"nodes", 'N', required_argument, Fate::kUsed},
    {"ntasks", 'n', required_argument, Fate::kUsed},
    {"ntasks-per-node", 0, required_argument, Fate::kUsed},
    {"open-mode", 0, required_argument, Fate::kUsed},
    {"output", 'o', required_argument, Fate::kUsed},
    {"relative", 'r', required_argument, Fate::kUsed},
    {"unbuffered", 'u', no_argument, Fate::kUsed},

    {"account", 'A', required_argument, Fate::kPassed},
    {"comment", 0, required_argument, Fate::kPassed},
    {"cpu-bind", 0, required_argument, Fate::kPassed},
    {"distribution", 'm', required_argument, Fate::kNoted},
    {"exact", 0, no_argument, Fate::kPassed},
    {"exclusive", 0, optional_argument, Fate::kNoted},
    {"gpu-bind", 0, required_argument, Fate::kPassed},
    {"gpus", 'G', required_argument, Fate::kNoted},
    {"gpus-per-node", 0, required_argument, Fate::kNoted},
    {"gres", 0, required_argument, Fate::kNoted},
    {"hint", 0, required_argument, Fate::kPassed},
    {"immediate", 'I', optional_argument, Fate::kPassed},
    {"job-name", 'J', required_argument, Fate::kPassed},
    {"jobid", 0, required_argument, Fate::kPassed},
    {"mem", 0, required_argument, Fate::kPassed},
    {"mem-bind", 0, required_argument, Fate::kPassed},
    {"mem-per-cpu", 0, required_argument, Fate::kPassed},
    {"mem-per-gpu", 0, required_argument, Fate::kPassed},
    {"mpi", 0, required_argument, Fate::kNoted},
    {"no-kill", 'k', optional_argument, Fate::kPassed},
    {"overcommit", 'O', no_argument, Fate::kPassed},
    {"overlap", 0, no_argument, Fate::kPassed},
    {"oversubscribe", 's', no_argument, Fate::kPassed},
    {"partition", 'p', required_argument, Fate::kPassed},
    {"propagate", 0, optional_argument, Fate::kPassed},
    {"qos", 'q', required_argument, Fate::kPassed},
    {"quiet", 'Q', no_argument, Fate::kPassed},
    {"threads-per-core", 0, required_argument, Fate::kPassed},
    {"time", 't', required_argument, Fate::kNoted},
    {"verbose", 'v', no_argument, Fate::kPassed},
    {"wait", 'W', required_argument, Fate::kNoted},

    {"bcast", 0, optional_argument, Fate::kRefused},
    {"container", 0, required_argument, Fate::kRefused},
    {"epilog", 0, required_argument, Fate::kRefused},
    {"exclude", 'x', required_argument, Fate::kRefused},
    {"het-group", 0, required_argument, Fate::kRefused},
    {"multi-prog", 0, no_argument, Fate::kRefused},
    {"prolog", 0, required_argument, Fate::kRefused},
    {"pty", 0, no_argument, Fate::kRefused},
    {"task-epilog", 0, required_argument, Fate::kRefused},
    {"task-prolog", 0, required_argument, Fate::kRefused},
});

Result<std::uint32_t> number(std::string_view option, std::string_view text, std::uint32_t least) {
  constexpr std::uint32_t kMost = 1u << 20;
  std::uint32_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = failed == std::errc() && end == text.data() + text.size();
  if (whole && value >= least && value <= kMost) return value;
  return input_error({}, fmt::format("--{}: \"{}\": expected a whole number from {} to {}", option,
                                     text, least, kMost));
}

/// getopt's view of the table; the value of an option is its index there.
class OptionTable {
 public:
  static constexpr int kFirst = 256;

  OptionTable() : letters_("+:") {
    long_.reserve(kOptions.size() + 1);
    for (std::size_t i = 0; i < kOptions.size(); ++i) {
      const SrunOption& each = kOptions[i];
      long_.push_back({each.name, each.takes, nullptr, kFirst + static_cast<int>(i)});
      if (each.letter == 0) continue;
      letters_ += each.letter;
      letters_ += std::string(static_cast<std::size_t>(each.takes), ':');
    }
    long_.push_back({nullptr, 0, nullptr, 0});
  }

  [[nodiscard]] int next(int count, char** arguments) const {
    return ::getopt_long(count, arguments, letters_.c_str(), long_.data(), nullptr);
  }
  [[nodiscard]] static const SrunOption& of(int found) {
    if (found >= kFirst) return kOptions[static_cast<std::size_t>(found - kFirst)];
    return *std::ranges::find_if(kOptions,
                                 [&](const SrunOption& each) { return each.letter == found; });
  }

 private:
  std::string letters_;
  std::vector<option> long_;
};

class OptionsReader {
 public:
  Status take(const SrunOption& known, const std::string& value) {
    const std::string_view name = known.name;
#ifdef ORRERY_TEST_HOOKS
    const std::string option = fmt::format("srun --{}", name);
    test_hooks::trace_option(option);
    if (test_hooks::ignores_option(option)) return {};
#endif
    switch (known.fate) {
      case Fate::kPassed:
        return {};
      case Fate::kNoted:
        options_.notes.push_back(fmt::format("--{} has no effect", name));
        return {};
      case Fate::kRefused:
        return input_error({}, fmt::format("--{} is not supported", name));
      case Fate::kUsed:
        return use(name, value);
    }
    return {};
  }
  [[nodiscard]] SrunOptions& options() { return options_; }

 private:
  template <class Field>
  Status count(std::string_view name, const std::string& value, Field& field) {
    Result<std::uint32_t> read = number(name, value, 1);
    if (!read) return forward_error(read);
    field = *read;
    return {};
  }

  Status use(std::string_view name, const std::string& value) {
    if (name == "ntasks") return count(name, value, options_.tasks);
    if (name == "ntasks-per-node") return count(name, value, options_.node_tasks);
    if (name == "nodes") return count(name, value.substr(0, value.find('-')), options_.nodes);
    if (name == "gpus-per-task") {
      return count(name, value.substr(value.rfind(':') + 1), options_.task_devices);
    }
    if (name == "relative") {
      Result<std::uint32_t> read = number(name, value, 0);
      if (!read) return forward_error(read);
      options_.first_node = *read;
      return {};
    }
    if (name == "input") return use_input(value);
    if (name == "open-mode") return use_open_mode(value);
    use_text(name, value);
    return {};
  }

  void use_text(std::string_view name, const std::string& value) {
    if (name == "cpus-per-task") options_.cpus = value;
    if (name == "chdir") options_.directory = value;
    if (name == "error") options_.errors = value;
    if (name == "export") options_.exports = value;
    if (name == "nodelist") options_.node_list = value;
    if (name == "output") options_.output = value;
    if (name == "label") options_.label = SrunOptions::Label::kYes;
    if (name == "unbuffered") options_.lines = SrunOptions::Lines::kAsTheyCome;
    if (name == "kill-on-bad-exit" && value != "0") {
      options_.bad_exit = SrunOptions::BadExit::kEndAll;
    }
  }

  Status use_open_mode(const std::string& value) {
    const bool appends = value == "append" || value == "a";
    if (!appends && value != "truncate" && value != "t") {
      return input_error({},
                         fmt::format("--open-mode: \"{}\": expected append or truncate", value));
    }
    options_.files = appends ? SrunOptions::Files::kAppend : SrunOptions::Files::kTruncate;
    return {};
  }

  Status use_input(const std::string& value) {
    options_.readers = value == "none" ? StepReaders::kNone : StepReaders::kAll;
    if (value == "none" || value == "all") return {};
    Result<std::uint32_t> task = number("input", value, 0);
    if (!task)
      return input_error({}, fmt::format("--input: \"{}\": expected all, none or a task", value));
    options_.readers = StepReaders::kOne;
    options_.reader = *task;
    return {};
  }

  SrunOptions options_;
};

tl::unexpected<Error> unknown_option(const std::string& word) {
  std::vector<std::string> names;
  names.reserve(kOptions.size());
  for (const SrunOption& each : kOptions) names.push_back(fmt::format("--{}", each.name));
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const std::string name = word.substr(0, word.find('='));
  return input_error({}, fmt::format("{} is no option{}", name, did_you_mean(name, candidates)));
}

/// Takes the script's sizes where the command line gives none.
void take_environment(const Variables& environment, SrunOptions& options) {
  const auto known = [&](const char* name) -> std::optional<std::uint32_t> {
    const std::string text = variable_of(environment, name);
    const Result<std::uint32_t> read = number(name, text.substr(text.rfind(':') + 1), 1);
    return read ? std::optional(*read) : std::nullopt;
  };
  const bool sized = options.tasks || options.node_tasks > 0;
  if (!sized) {
    options.tasks = known("SLURM_NTASKS");
    options.node_tasks = known("SLURM_NTASKS_PER_NODE").value_or(0);
  }
  if (options.task_devices == 0) options.task_devices = known("SLURM_GPUS_PER_TASK").value_or(0);
  if (options.cpus.empty()) options.cpus = variable_of(environment, "SLURM_CPUS_PER_TASK");
}

}  // namespace

#ifdef ORRERY_TEST_HOOKS
std::vector<std::string> audited_srun_options() {
  std::vector<std::string> names;
  for (const SrunOption& each : kOptions) {
    if (each.fate != Fate::kPassed) names.push_back(fmt::format("srun --{}", each.name));
  }
  return names;
}
#endif

Result<SrunOptions> read_srun_options(const std::vector<std::string>& arguments,
                                      const Variables& environment) {
  const OptionTable table;
  std::vector<std::string> words = {"srun"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const auto count = static_cast<int>(words.size());
  OptionsReader reader;
  optind = 0;  // it keeps its place between calls
  opterr = 0;
  for (int found = 0; (found = table.next(count, pointers.data())) != -1;) {
    const std::string word = pointers[static_cast<std::size_t>(std::max(optind - 1, 1))];
    if (found == ':') return input_error({}, fmt::format("{} has no value", word));
    if (found == '?') return unknown_option(word);
    if (Status taken = reader.take(OptionTable::of(found), optarg == nullptr ? "" : optarg);
        !taken) {
      return forward_error(taken);
    }
  }
  SrunOptions& options = reader.options();
  options.command.assign(words.begin() + optind, words.end());
  if (options.command.empty()) return input_error({}, "no command, expected a program to run");
  take_environment(environment, options);
  return std::move(options);
}

Variables exported(const Variables& environment, const std::string& exports) {
  std::map<std::string, std::string> all;
  const auto hand_over = [&](auto&& wanted) {
    for (const auto& [name, value] : environment) {
      if (wanted(name)) all.insert_or_assign(name, value);
    }
  };
  hand_over([](std::string_view name) { return name.starts_with("SLURM_"); });
  for (std::size_t begin = 0; begin <= exports.size();) {
    const std::size_t end = std::min(exports.find(',', begin), exports.size());
    const std::string part = exports.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t mark = part.find('=');
    if (part == "ALL") {
      hand_over([](std::string_view) { return true; });
    } else if (mark != part.npos) {
      all.insert_or_assign(part.substr(0, mark), part.substr(mark + 1));
    } else {
      hand_over([&](std::string_view name) { return name == part; });
    }
  }
  std::erase_if(all, [](const auto& each) { return each.first.starts_with("ORRERY_"); });
  return {all.begin(), all.end()};
}

std::string srun_file(const std::string& pattern, const SrunFileFacts& facts) {
  std::string name;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '%' || at + 1 == pattern.size()) {
      name += pattern[at];
      continue;
    }
    std::size_t letter = at + 1;
    while (letter + 1 < pattern.size() && pattern[letter] >= '0' && pattern[letter] <= '9')
      ++letter;
    std::size_t width = 0;
    std::from_chars(pattern.data() + at + 1, pattern.data() + letter, width);
    width = std::min<std::size_t>(width, 10);  // of Slurm
    const std::string task = fmt::format("{}", facts.task);
    const std::string node = fmt::format("{}", facts.node);
    const std::map<char, std::string> known = {
        {'j', facts.job},  {'J', facts.job + "." + facts.step},
        {'s', facts.step}, {'t', task},
        {'n', node},       {'N', facts.host},
        {'%', "%"}};
    const auto found = known.find(pattern[letter]);
    if (found == known.end()) {
      name += pattern.substr(at, letter + 1 - at);
    } else {
      const bool counts = std::string_view("jstn").find(found->first) != std::string_view::npos;
      name += counts ? fmt::format("{:0>{}}", found->second, width) : found->second;
    }
    at = letter;
  }
  return name;
}

}  // namespace orrery

#include "executor/slurm/pilot_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text/utf8.hpp"
#include "workload/slurm/sbatch_options.hpp"

namespace orrery {
namespace {

struct RefusedName {
  std::string_view name;
  std::string_view why;
};

constexpr std::string_view kWhyOneJob = "a hold is one job of one Slurm cluster, without an array";
constexpr std::string_view kWhyName = "the controller finds its jobs by it";
constexpr std::string_view kWhyUser = "the controller finds only the jobs of its own user";
constexpr std::string_view kWhyNodes = "pilots.nodes, or the job, sets the number of nodes";
constexpr std::string_view kWhyTime = "pilots.time and jobs.time set it";
constexpr std::string_view kWhyOutput = "slurm.output sets it";
constexpr std::string_view kWhyId = "sbatch must submit a job and print its number";
constexpr std::string_view kWhyOwn = "the controller sets it";
constexpr std::string_view kWhyExclude = "expected \"--exclude=NODES\"";

constexpr auto kRefused = std::to_array<RefusedName>({
    {"account", "slurm.account sets it"},
    {"array", kWhyOneJob},
    {"chdir", kWhyOwn},
    {"clusters", kWhyOneJob},
    {"comment", kWhyName},
    {"dependency", kWhyOwn},
    {"error", kWhyOutput},
    {"exclude", kWhyExclude},
    {"exclusive", kWhyOwn},
    {"help", kWhyId},
    {"job-name", kWhyName},
    {"no-kill", kWhyOwn},
    {"no-requeue", kWhyOwn},
    {"nodes", kWhyNodes},
    {"ntasks", kWhyNodes},
    {"output", kWhyOutput},
    {"oversubscribe", "a hold has whole nodes"},
    {"parsable", kWhyOwn},
    {"partition", "slurm.partition sets it"},
    {"qos", "slurm.qos sets it"},
    {"quiet", kWhyId},
    {"requeue", "the controller sets --no-requeue"},
    {"reservation", "slurm.reservation sets it"},
    {"test-only", kWhyId},
    {"time", kWhyTime},
    {"uid", kWhyUser},
    {"usage", kWhyId},
    {"version", kWhyId},
    {"wait", kWhyId},
    {"wrap", "the controller writes the script"},
});

/// Finds a refused name by the whole of it or an abbreviation. No allowed option is an abbreviation
/// of a refused one.
const RefusedName* find_long(std::string_view name) {
  const auto exact = std::find_if(kRefused.begin(), kRefused.end(),
                                  [&](const RefusedName& each) { return each.name == name; });
  if (exact != kRefused.end()) return &*exact;
  const auto begun = std::find_if(kRefused.begin(), kRefused.end(), [&](const RefusedName& each) {
    return !name.empty() && each.name.starts_with(name);
  });
  return begun == kRefused.end() ? nullptr : &*begun;
}

/// Finds the refused name among letters: those of options without a value may be followed by
/// others, as in "-Ha0-1".
const RefusedName* find_short(std::string_view letters) {
  for (const char letter : letters) {
    const std::optional<SbatchLetter> option = sbatch_letter(letter);
    if (!option) return nullptr;
    const auto found = std::ranges::find(kRefused, option->name, &RefusedName::name);
    if (found != kRefused.end()) return &*found;
    if (option->takes_value) return nullptr;
  }
  return nullptr;
}

/// Returns why an option is refused; empty: it is not.
std::string_view why_refused(std::string_view option) {
  if (!option.starts_with("--")) {
    const RefusedName* found = find_short(option.substr(1));
    return found == nullptr ? "" : found->why;
  }
  const std::size_t mark = option.find('=');
  const RefusedName* found = find_long(option.substr(2, mark == option.npos ? mark : mark - 2));
  if (found == nullptr) return "";
  return option.starts_with("--exclude=") ? "" : found->why;
}

}  // namespace

std::optional<RefusedOption> refused_option(std::span<const std::string> options) {
  bool takes_value = false;  // whether the option before may have its value in a word of its own
  for (std::size_t at = 0; at < options.size(); ++at) {
    const std::string_view option = options[at];
    const bool is_option = option.size() > 1 && option.starts_with('-') && option != "--";
    std::string_view why;
    if (is_option) {
      why = why_refused(option);
    } else if (!takes_value || option == ":" || option == "--") {
      why = "expected an option of sbatch";
    }
    if (!why.empty()) {
      return RefusedOption{at, fmt::format("\"{}\": {}", printable(option, 60), why)};
    }
    takes_value = is_option && option.find('=') == option.npos;
  }
  return std::nullopt;
}

}  // namespace orrery

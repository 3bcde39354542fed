#include "apps/orrery/verb_hint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/nearest_name.hpp"

namespace orrery {
namespace {

/// Words of Slurm, Kubernetes and others for what is done here by another verb.
constexpr std::pair<std::string_view, std::string_view> kElsewhere[] = {
    {"status", "top"},      {"info", "top"},       {"squeue", "jobs"},   {"queue", "jobs"},
    {"ps", "jobs"},         {"list", "jobs"},      {"get", "jobs"},      {"sinfo", "nodes"},
    {"scancel", "cancel"},  {"kill", "cancel"},    {"delete", "cancel"}, {"stop", "cancel"},
    {"sacct", "usage"},     {"bill", "usage"},     {"sbatch", "submit"}, {"run", "submit"},
    {"srun", "submit"},     {"apply", "submit"},   {"describe", "job"},  {"scontrol", "job"},
    {"log", "logs"},        {"tail", "logs"},      {"why", "explain"},   {"cordon", "drain"},
    {"uncordon", "resume"}, {"start", "up"},       {"shutdown", "down"}, {"check", "doctor"},
    {"update", "change"},   {"renice", "change"},  {"suspend", "hold"},  {"retry", "requeue"},
    {"salloc", "shell"},    {"sattach", "attach"}, {"ssh", "exec"}};

/// Whether the option takes a value, which is the next word then.
bool takes_value(const CLI::App& app, const std::string& word) {
  if (word.find('=') != word.npos) return false;
  const CLI::Option* option = app.get_option_no_throw(word);
  return option != nullptr && option->get_expected_min() > 0 && option->get_type_size() > 0;
}

}  // namespace

std::optional<std::string> unknown_verb(const CLI::App& app,
                                        const std::vector<std::string>& arguments) {
  auto at = arguments.begin();
  while (at != arguments.end() && at->starts_with('-')) {
    const bool value = takes_value(app, *at);
    ++at;
    if (value && at != arguments.end()) ++at;
  }
  if (at == arguments.end()) return std::nullopt;
  std::vector<std::string_view> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) verbs.push_back(verb->get_name());
  if (std::ranges::find(verbs, *at) != verbs.end()) return std::nullopt;
  const auto* elsewhere =
      std::ranges::find(kElsewhere, *at, [](const auto& each) { return each.first; });
  if (elsewhere != std::end(kElsewhere)) {
    return fmt::format("no verb \"{}\"; the corresponding verb is `orrery {}`", *at,
                       elsewhere->second);
  }
  return fmt::format("no verb \"{}\"{}", *at, did_you_mean(*at, verbs));
}

}  // namespace orrery

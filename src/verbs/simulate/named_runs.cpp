#include "verbs/simulate/named_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "scheduler/asked_policy.hpp"
#include "verbs/option_text.hpp"

namespace orrery {
namespace {

/// "fifo:blocking=true,node_fit=best,srtf" names two policies: an option goes with the name before.
std::vector<std::string> policy_texts(const std::string& list) {
  std::vector<std::string> texts;
  for (const std::string& piece : pieces(list)) {
    const std::size_t equals = piece.find('=');
    const bool option = equals != std::string::npos && piece.find(':') > equals;
    if (option && !texts.empty()) {
      texts.back() += "," + piece;
    } else {
      texts.push_back(piece);
    }
  }
  return texts;
}

std::string file_name_of(const std::string& label) {
  std::string name = label;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_') c = '_';
  }
  return name;
}

/// Labels that differ may have one file name; the later ones get a number.
void name_files(const SimulateOptions& asked, std::vector<NamedRun>& runs,
                std::vector<std::string>& notes) {
  std::set<std::string> taken;
  for (NamedRun& run : runs) {
    const std::string usual = file_name_of(run.label);
    run.file_name = usual;
    for (int n = 2; !taken.insert(run.file_name).second; ++n) {
      run.file_name = fmt::format("{}-{}", usual, n);
    }
    if (run.file_name == usual || (asked.results.out.empty() && asked.results.record.empty()))
      continue;
    notes.push_back(fmt::format("the files of {} are named {}: {} is the name for another policy",
                                run.label, run.file_name, usual));
  }
}

}  // namespace

// A file has the name that it gives, unless that is taken: built-in policies keep theirs.
Result<std::vector<NamedRun>> named_runs(const SimulateOptions& asked, Information information,
                                         const SimulatedFleet::Loading& loading) {
  std::vector<NamedRun> runs;
  const auto taken = [&](const std::string& name) {
    return policy_named(name).has_value() ||
           std::any_of(runs.begin(), runs.end(),
                       [&](const NamedRun& run) { return run.label == name; });
  };
  for (const std::string& text : policy_texts(asked.scheduling.policies)) {
    if (!is_file_name(text)) {
      Result<Policy> policy = policy_under(loading.rules, text, asked.scheduling.policy_version);
      if (!policy) return wrong("policy", policy.error().message);
      runs.push_back({text, *std::move(policy), text});
      continue;
    }
    Result<Document> document = loading.files.keep(text);
    if (!document) return forward_error(document);
    Result<Policy> policy = asked.scheduling.policy_version == 0
                                ? asked_policy(*document)
                                : read_policy(*document, asked.scheduling.policy_version);
    if (!policy) return forward_error(policy);
    const std::string label = taken(policy->name) ? text : policy->name;
    runs.push_back({label, *std::move(policy), text});
  }
  for (const NamedRun& run : runs) {
    const bool asks_for_times = run.policy.order == QueueOrder::kFinishTime ||
                                run.policy.order == QueueOrder::kDeadlineShares;
    if (!asks_for_times || information != Information::kBlind) continue;
    return wrong("policy", fmt::format("{} orders jobs by their end times, which are unknown with "
                                       "--information blind: expected oracle or estimate",
                                       run.label));
  }
  name_files(asked, runs, loading.notes.notes);
  return runs;
}

}  // namespace orrery

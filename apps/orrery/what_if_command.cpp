// orrery what-if
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/fork_text.hpp"
#include "apps/orrery/live_fork.hpp"
#include "apps/orrery/live_session.hpp"
#include "apps/orrery/option_text.hpp"
#include "base/document.hpp"
#include "control/settings.hpp"

namespace orrery {
namespace {

struct WhatIfAsked {
  std::vector<std::string> files;
  std::uint32_t copies = 1;
  std::vector<std::string> drain;
  bool at_once = false;
  std::string policy;
  std::string span = "7 days";
  std::string store;
};

Result<NodeId> node_named(const Topology& topology, const std::string& name) {
  std::vector<std::string> names;
  names.reserve(topology.node_count());
  for (std::uint32_t at = 0; at < topology.node_count(); ++at) {
    names.push_back(topology.node_name(NodeId(at)));
    if (names.back() == name) return NodeId(at);
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  return wrong("drain", fmt::format("no node \"{}\"{}", name, did_you_mean(name, known)));
}

/// A Policy file, or the name of one that comes with the programs.
Result<SetPolicy> policy_asked(const std::string& asked) {
  if (!std::filesystem::exists(asked)) {
    if (const Result<Policy> known = policy_named(asked); !known) {
      return wrong("policy", known.error().message);
    }
    if (asked.find(':') != asked.npos) {
      return wrong("policy",
                   "options of a policy stand in a file here: expected its name, or a name");
    }
    return SetPolicy{fmt::format("apiVersion: orrery/v1\nkind: Policy\nname: {}\n", asked)};
  }
  Result<std::string> text = read_file(asked, Document::kSizeMax);
  if (!text) return forward_error(text);
  if (const Result<Policy> read = policy_from(*text); !read) return tl::unexpected(read.error());
  return SetPolicy{*std::move(text)};
}

Result<ForkChange> change_asked(const WhatIfAsked& asked, LiveFork& fork) {
  ForkChange change;
  if (!asked.policy.empty()) {
    Result<SetPolicy> policy = policy_asked(asked.policy);
    if (!policy) return forward_error(policy);
    change.commands.emplace_back(*std::move(policy));
  }
  for (const std::string& name : asked.drain) {
    const Result<NodeId> node = node_named(*fork.state().setup().topology, name);
    if (!node) return tl::unexpected(node.error());
    change.commands.emplace_back(DrainNode{*node, asked.at_once, "what if"});
  }
  for (const std::string& file : asked.files) {
    Result<std::string> text = read_file(file, Document::kSizeMax);
    if (!text) return forward_error(text);
    for (std::uint32_t copy = 0; copy < asked.copies; ++copy) {
      Result<std::vector<SubmitJob>> jobs = fork.jobs_of({*text, file, ""});
      if (!jobs) return forward_error(jobs);
      for (SubmitJob& job : *jobs) change.jobs.push_back(std::move(job));
    }
  }
  if (change.jobs.empty() && change.commands.empty()) {
    return input_error({}, "nothing is to be changed: expected --submit, --drain or --policy");
  }
  return change;
}

Status what_if(const CommandOptions& options, const WhatIfAsked& asked) {
  const Result<Seconds> span = quantity_option<Seconds>("span", asked.span);
  if (!span) return tl::unexpected(span.error());
  const std::string store =
      asked.store.empty() ? cluster_directory(options) + "/store" : asked.store;
  Result<std::unique_ptr<LiveFork>> fork = LiveFork::read(options, store);
  if (!fork) return forward_error(fork);
  const Result<ForkChange> change = change_asked(asked, **fork);
  if (!change) return tl::unexpected(change.error());
  const Duration time = Duration::from_seconds(span->value());
  ForkPair pair{.state = (*fork)->state(), .change = *change, .now = (*fork)->now(), .span = time};
  Result<std::vector<JobFate>> as_is = (*fork)->play({}, time);
  if (!as_is) return forward_error(as_is);
  Result<std::vector<JobFate>> changed = (*fork)->play(*change, time);
  if (!changed) return forward_error(changed);
  pair.as_is = *std::move(as_is);
  pair.changed = *std::move(changed);
  if (options.output == OutputFormat::kJson) {
    print_json(fork_json(pair));
  } else {
    print_text(fork_text(pair));
  }
  return {};
}

}  // namespace

void add_what_if_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<WhatIfAsked>();
  CLI::App& verb = *app.add_subcommand(
      "what-if", "play a running cluster's state on in the twin, as it is and with a change");
  verb.add_option("--submit", asked->files, "a job's spec; several with several --submit")
      ->type_name("FILE")
      ->allow_extra_args(false);
  verb.add_option("--copies", asked->copies, "of each job that is submitted")
      ->type_name("N")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  verb.add_option("--drain", asked->drain, "start no new work on these machines")
      ->type_name("NODE,..")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_flag("--now", asked->at_once, "and move what runs there elsewhere");
  verb.add_option("--policy", asked->policy, "one by name, or a Policy file")
      ->type_name("NAME|FILE");
  verb.add_option("--span", asked->span, "how far to look")
      ->type_name("TIME")
      ->capture_default_str();
  verb.add_option("--store", asked->store,
                  "the log of the controller, or a backup of it (default: store in --dir)")
      ->type_name("DIR|FILE");
  verb.footer(
      "The cluster is only read; nothing changes in it. A job is taken to run as long as its "
      "plan,\n"
      "estimate or time limit says; nothing fails, and what is lost or in repair stays away.\n\n"
      "Examples:\n  orrery what-if --submit big.yaml --copies 2\n"
      "  orrery what-if --drain node-3,node-4 --now\n  orrery what-if --policy easy -o json");
  verb.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return what_if(options, *asked); };
  });
}

}  // namespace orrery

#include "verbs/fork/what_if.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/format/document.hpp"
#include "base/format/field_writer.hpp"
#include "control/settings.hpp"
#include "scheduler/asked_policy.hpp"
#include "verbs/cluster/live_session.hpp"
#include "verbs/fork/fork_text.hpp"
#include "verbs/option_text.hpp"

namespace orrery {
namespace {

/// `option`: the one that names it.
Result<NodeId> node_named(const Topology& topology, const char* option, const std::string& name) {
  std::vector<std::string> names;
  names.reserve(topology.node_count());
  for (std::uint32_t at = 0; at < topology.node_count(); ++at) {
    names.push_back(topology.node_name(NodeId(at)));
    if (names.back() == name) return NodeId(at);
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  return wrong(option, fmt::format("no node \"{}\"{}", name, did_you_mean(name, known)));
}

tl::unexpected<Error> in_file(Error error, const std::string& file) {
  error.where.file = file;
  return tl::unexpected(std::move(error));
}

/// A Policy file, or the name of one that comes with the programs.
Result<SetPolicy> policy_asked(const std::string& asked) {
  if (!std::filesystem::exists(asked)) {
    if (const Result<Policy> known = policy_named(asked); !known) {
      return wrong("policy", known.error().message);
    }
    if (asked.find(':') != asked.npos) {
      return wrong("policy",
                   "expected the name of a policy without options, or a Policy file with options");
    }
    return SetPolicy{fmt::format("apiVersion: orrery/v1\nkind: Policy\nname: {}\n", asked)};
  }
  Result<std::string> text = read_file(asked, Document::kSizeMax);
  if (!text) return forward_error(text);
  const Result<Document> document = Document::parse(*text, asked);
  if (!document) return tl::unexpected(document.error());
  if (const Result<Policy> read = asked_policy(*document); !read) {
    return tl::unexpected(read.error());
  }
  return SetPolicy{*std::move(text)};
}

/// What brings a machine to work that does not: one that is lost or has not joined yet comes with
/// nothing running, one in repair is mended, one that is drained is resumed.
Status add_node(const State& state, NodeId node, std::vector<InputKind>& commands) {
  const NodeRecord& record = state.node(node);
  switch (record.health) {
    case NodeHealth::kReady:
    case NodeHealth::kSuspect:
      return wrong("add",
                   fmt::format("\"{}\" is not away: it is {}",
                               state.setup().topology->node_name(node), word_of(record.health)));
    case NodeHealth::kDraining:
    case NodeHealth::kDrained:
      commands.emplace_back(ResumeNode{node});
      return {};
    case NodeHealth::kQuarantined:
    case NodeHealth::kRepairing:
      commands.emplace_back(NodeRepaired{node});
      break;
    case NodeHealth::kAbsent:
      commands.emplace_back(NodeGranted{.node = node, .hold = "supposed"});
      commands.emplace_back(NodeJoined{node, record.boot + 1});
      break;
    case NodeHealth::kJoining:
    case NodeHealth::kLost:
      commands.emplace_back(NodeJoined{node, record.boot + 1});
      break;
  }
  if (record.drain) commands.emplace_back(ResumeNode{node});
  return {};
}

/// "hall/row-1=400 kW", or "hall/row-1=none".
Result<SetPowerCap> cap_asked(const Topology& topology, const std::string& asked) {
  const std::size_t equals = asked.rfind('=');
  if (equals == asked.npos) {
    return wrong(
        "cap",
        fmt::format("expected NAME=POWER, such as \"site/power-cap=400 kW\", not \"{}\"", asked));
  }
  const Result<PowerDomainId> domain = topology.power_named(asked.substr(0, equals));
  if (!domain) return wrong("cap", domain.error().message);
  SetPowerCap cap{*domain, std::nullopt};
  if (asked.substr(equals + 1) == "none") return cap;
  const Result<Watts> most = quantity_option<Watts>("cap", asked.substr(equals + 1));
  if (!most) return tl::unexpected(most.error());
  cap.cap = *most;
  return cap;
}

Result<SetTenants> tenants_asked(const Topology& topology, const std::string& file) {
  Result<std::string> text = read_file(file, Document::kSizeMax);
  if (!text) return forward_error(text);
  if (const Result<TenantTree> read = tenants_from(*text, topology); !read) {
    return in_file(read.error(), file);
  }
  return SetTenants{*std::move(text)};
}

}  // namespace

Result<std::vector<InputKind>> commands_asked(const WhatIfOptions& asked, const State& state) {
  const Topology& topology = *state.setup().topology;
  std::vector<InputKind> commands;
  if (!asked.policy.empty()) {
    Result<SetPolicy> policy = policy_asked(asked.policy);
    if (!policy) return forward_error(policy);
    commands.emplace_back(*std::move(policy));
  }
  if (!asked.tenants.empty()) {
    Result<SetTenants> tenants = tenants_asked(topology, asked.tenants);
    if (!tenants) return forward_error(tenants);
    commands.emplace_back(*std::move(tenants));
  }
  for (const std::string& each : asked.caps) {
    const Result<SetPowerCap> cap = cap_asked(topology, each);
    if (!cap) return tl::unexpected(cap.error());
    commands.emplace_back(*cap);
  }
  for (const std::string& name : asked.add) {
    const Result<NodeId> node = node_named(topology, "add", name);
    if (!node) return tl::unexpected(node.error());
    if (Status added = add_node(state, *node, commands); !added) return forward_error(added);
  }
  for (const std::string& name : asked.drain) {
    const Result<NodeId> node = node_named(topology, "drain", name);
    if (!node) return tl::unexpected(node.error());
    commands.emplace_back(DrainNode{*node, asked.at_once, "what if"});
  }
  return commands;
}

namespace {

Result<ForkChange> change_asked(const WhatIfOptions& asked, LiveFork& fork) {
  Result<std::vector<InputKind>> commands = commands_asked(asked, fork.state());
  if (!commands) return forward_error(commands);
  ForkChange change{.jobs = {}, .commands = *std::move(commands)};
  for (const std::string& file : asked.files) {
    Result<std::string> text = read_file(file, Document::kSizeMax);
    if (!text) return forward_error(text);
    for (std::uint32_t copy = 0; copy < asked.copies; ++copy) {
      Result<std::vector<SubmitJob>> jobs =
          fork.jobs_of({.text = *text, .file = file, .tenant_users = JobText::TenantUsers::kAll});
      if (!jobs) return forward_error(jobs);
      for (SubmitJob& job : *jobs) change.jobs.push_back(std::move(job));
    }
  }
  if (change.jobs.empty() && change.commands.empty()) {
    return input_error({},
                       "nothing to change: expected --submit, --drain, --add, --policy, "
                       "--tenants or --cap");
  }
  return change;
}

/// A service is played by itself, and only a service has requests.
Status check_service_asked(const WhatIfOptions& asked) {
  const ServiceChange& service = asked.service;
  const bool cluster = !asked.files.empty() || !asked.drain.empty() || !asked.add.empty() ||
                       !asked.policy.empty() || !asked.tenants.empty() || !asked.caps.empty();
  if (service.service.empty()) {
    const bool named = !service.requests.empty() || !service.half.empty() || service.replicas > 0 ||
                       !service.router.empty();
    return named ? wrong("service", "needed with --requests, --half, --replicas and --router")
                 : Status();
  }
  return cluster ? wrong("service", "expected no change of the cluster beside it") : Status();
}

}  // namespace

Result<VerbAnswer> what_if(const CommandOptions& options, const WhatIfOptions& asked) {
  const Result<Seconds> span = quantity_option<Seconds>("span", asked.span);
  if (!span) return tl::unexpected(span.error());
  const std::string store =
      asked.store.empty() ? cluster_directory(options) + "/store" : asked.store;
  Result<std::unique_ptr<LiveFork>> fork = LiveFork::read(options, store);
  if (!fork) return forward_error(fork);
  if (Status fits = check_service_asked(asked); !fits) return forward_error(fits);
  if (!asked.service.service.empty()) {
    const Result<RunningService> service =
        running_service((*fork)->state(), (*fork)->now(), asked.service.service);
    if (!service) return tl::unexpected<Error>(service.error());
    return service_what_if(*service, asked.service);
  }
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
  return VerbAnswer{fork_text(pair), fork_json(pair)};
}

}  // namespace orrery

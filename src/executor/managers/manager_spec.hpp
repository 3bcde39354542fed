// executor/managers/manager_spec.hpp - the resource managers that lend nodes to a cluster, as an
// operator describes them in DIR/managers.yaml.
//
// Read by orreryd at its start, and by `orrery up`. Pure. Cost: that of parsing a short YAML text,
// and O(nodes).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/format/document.hpp"
#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"
#include "executor/holds/hold_link.hpp"
#include "fleet/topology.hpp"

namespace orrery {

/// How agents are started on lent nodes.
struct LentAgentSpec {
  std::string program;  ///< on the nodes; empty: orrery-agent beside the controller's own program
  /// On the nodes, for the states of their agents. Kept between pilots, so that an agent knows what
  /// an earlier one left there.
  std::string directory = "/var/lib/orrery/nodes";
  std::vector<std::string> options;
};

template <class Visitor, SameStruct<LentAgentSpec> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.optional("program", s.program);
  visitor.optional("directory", s.directory);
  visitor.optional("options", s.options);
}

struct PilotSpec {
  std::uint32_t nodes = 1;            ///< of one pilot
  std::uint32_t keep = 0;             ///< nodes held although nothing waits for them
  std::optional<std::uint32_t> most;  ///< nodes held at once; none: all
  Seconds time{86'400};               ///< after which the manager ends a pilot
  Seconds idle{300};                  ///< a pilot without jobs is released after it
};

template <class Visitor, SameStruct<PilotSpec> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.optional("nodes", s.nodes);
  visitor.optional("keep", s.keep);
  visitor.optional("most", s.most);
  visitor.optional("time", s.time);
  visitor.optional("idle", s.idle);
}

/// Holds that serve one job each, instead of pilots.
struct JobHoldSpec {
  std::optional<std::uint32_t> most;  ///< nodes held at once; none: all
  Seconds time{86'400};               ///< of a hold, at most
};

template <class Visitor, SameStruct<JobHoldSpec> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.optional("most", s.most);
  visitor.optional("time", s.time);
}

/// How a Slurm cluster is reached, and what its jobs are submitted with.
struct SlurmSpec {
  std::string config;  ///< slurm.conf; empty: where Slurm's programs look for it
  std::string partition;
  std::string account;
  std::string qos;
  std::string reservation;
  std::vector<std::string> options;  ///< further ones of sbatch
  std::string output;                ///< on the nodes: file of a pilot's output; empty: none
};

template <class Visitor, SameStruct<SlurmSpec> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.optional("config", s.config);
  visitor.optional("partition", s.partition);
  visitor.optional("account", s.account);
  visitor.optional("qos", s.qos);
  visitor.optional("reservation", s.reservation);
  visitor.optional("options", s.options);
  visitor.optional("output", s.output);
}

struct ManagerSpec {
  SourcePosition where;
  std::string name;
  std::string nodes;  ///< host list: nodes of the fleet that it has, too
  PoolUse use = PoolUse::kLent;
  SlurmSpec slurm;
  // Nodes that are lent, and no others, have either pilots or jobs, and an agent.
  std::optional<PilotSpec> pilots;
  std::optional<JobHoldSpec> jobs;
  std::optional<LentAgentSpec> agent;
};

template <class Visitor, SameStruct<ManagerSpec> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.required("name", s.name);
  visitor.required("nodes", s.nodes);
  visitor.optional("use", s.use);
  visitor.required("slurm", s.slurm);
  visitor.optional("pilots", s.pilots);
  visitor.optional("jobs", s.jobs);
  visitor.optional("agent", s.agent);
}

struct ManagersSpec {
  std::string api_version;
  std::string kind;
  std::vector<ManagerSpec> managers;
};

template <class Visitor, SameStruct<ManagersSpec> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.required("apiVersion", s.api_version);
  visitor.required("kind", s.kind);
  visitor.required("managers", s.managers);
}

/// Errors (kInput): file:line:column, of the form; another kind; two managers of one name; a name
/// that is not of small letters, digits and '-'; a host list that cannot be read; a node that is
/// named twice; a key of loans where nodes are not lent; both pilots and jobs; no nodes a pilot; a
/// `time` below two minutes; `most` above the number of nodes; `pilots.keep` above `pilots.most`;
/// an account or QOS of the tenant of a pilot; a directory that is not absolute.
[[nodiscard]] Result<ManagersSpec> read_managers(const Document& document);

/// Returns the names of the nodes of a manager. Precondition: the spec was read.
[[nodiscard]] std::vector<std::string> nodes_of(const ManagerSpec& spec);

/// Returns the pool of a manager in a fleet, which may have fewer nodes than the spec names.
/// Precondition: the spec was read. O(nodes log nodes).
[[nodiscard]] HoldPool pool_of(const ManagerSpec& spec, const Topology& topology);

}  // namespace orrery

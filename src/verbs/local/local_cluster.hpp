// verbs/local/local_cluster.hpp - a cluster on this machine alone: its controllers, a gateway and
// an agent for each node of its fleet, all on loopback.
//
// Opened by a verb on the cluster's directory, which it locks against other verbs. Running
// processes are kept in DIR/local.json, by number and start of each, so that none is ever found or
// ended by its name. One thread.
//
//   DIR/fleet.yaml, DIR/catalog  verbs/local/local_fleet.hpp
//   DIR/orreryd.log, DIR/controllers, DIR/etcd  verbs/local/local_servers.hpp
//   DIR/gateway.log              verbs/local/local_gateway.hpp
//   DIR/nodes/NAME               of an agent, with agent.pid, agent.log and tls
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/cluster_directory.hpp"
#include "api/grpc/client.hpp"
#include "base/system/real_storage.hpp"
#include "verbs/local/local_fleet.hpp"
#include "verbs/local/local_process.hpp"
#include "verbs/local/local_record.hpp"
#include "verbs/local/local_servers.hpp"

namespace orrery {

class LocalCluster {
 public:
  /// Errors: another process has it open, also after `patience`; the files.
  [[nodiscard]] static Result<LocalCluster> open(const std::string& directory,
                                                 Duration patience = {});

  /// Starts processes that do not run and waits until the controller serves and every node is
  /// ready. Returns their names. Errors: the program that ended, with its last output; lost jobs
  /// are to be accepted and the controller runs; it is halted.
  [[nodiscard]] Result<std::vector<std::string>> start(const ServerStart& options);

  /// Whether one of its processes runs.
  [[nodiscard]] bool runs() const;
  /// What follow_fleet() did.
  struct Followed {
    std::vector<std::string> started;  ///< nodes whose agents were started
    std::vector<std::string> ended;    ///< nodes whose agents and keepers were ended
  };
  /// Follows a changed fleet.yaml, which the controller has taken over: starts the agents of new
  /// nodes, ends those of retired ones, starts those of `replaced` ones anew, and waits until the
  /// nodes are ready. Errors: an agent that ended, with its last output; a node that is not ready
  /// in time.
  [[nodiscard]] Result<Followed> follow_fleet(const std::set<std::string>& replaced);

  /// Whether one of its agents is root and runs jobs without run_as. Precondition: it was started.
  [[nodiscard]] Result<bool> runs_jobs_as_root();

  enum class Keepers { kEnd, kKeep };
  struct Ended {
    std::size_t controllers = 0;
    std::size_t agents = 0;
    std::size_t keepers = 0;
    std::size_t stores = 0;  ///< members of etcd
    std::size_t gateways = 0;
    std::int64_t other_controller = 0;  ///< process of a controller that start() did not start; 0:
                                        ///< none
  };
  /// Ends the gateway, the controller, the agents and, unless they are kept, the keepers with all
  /// ranks.
  [[nodiscard]] Result<Ended> stop(Keepers keepers);

  /// Its own nodes.
  [[nodiscard]] const std::vector<LocalNode>& nodes() const { return nodes_; }
  /// The processes that belong to it: controllers, agents, gateway and members of
  /// etcd.
  [[nodiscard]] const LocalRecord& record() const { return *record_; }
  /// Nodes of fleet.yaml that it starts no agents for.
  struct Others {
    std::vector<std::string> unknown;  ///< nodes that the cluster does not have, as start() found
    std::size_t lent = 0;              ///< those of resource managers, whose holds start agents
  };
  [[nodiscard]] const Others& others() const { return others_; }
  [[nodiscard]] const std::string& address() const { return address_; }
  /// Returns an absolute path.
  [[nodiscard]] const std::string& directory() const { return directory_; }

 private:
  LocalCluster() = default;
  void let_users_through() const;
  [[nodiscard]] Status load();
  [[nodiscard]] Status read_nodes();
  [[nodiscard]] Status save();
  [[nodiscard]] LocalServerProcesses servers();
  /// The names of nodes().
  [[nodiscard]] std::set<std::string> node_names() const;
  /// Returns the nodes that have an agent and are not among `nodes`.
  [[nodiscard]] std::vector<std::string> agents_beside(const std::set<std::string>& nodes) const;
  [[nodiscard]] std::string node_directory(const std::string& name) const;
  [[nodiscard]] Status start_servers(const ServerStart& options);
  void note_addresses(const ClusterAddress& cluster);
  [[nodiscard]] Status start_agent(const LocalNode& node);
  [[nodiscard]] Status certify_agent(const LocalNode& node);
  [[nodiscard]] Status compare_with_cluster();
  [[nodiscard]] Status wait_for_nodes();
  [[nodiscard]] Result<bool> nodes_settled(Client& client) const;
  /// Ends the agents, whose processes are then forgotten, and the keepers of nodes.
  void end_nodes(const std::vector<std::string>& nodes);
  /// Ends the keepers with all ranks; returns their number.
  [[nodiscard]] std::size_t end_keepers(const std::vector<std::string>& nodes);
  [[nodiscard]] Status wait_until_ready(const std::string& node);
  [[nodiscard]] bool is_retired(const std::string& node) const;

  // At addresses that stay when the cluster moves.
  std::unique_ptr<RealStorage> storage_ = std::make_unique<RealStorage>();
  std::unique_ptr<LocalRecord> record_ = std::make_unique<LocalRecord>();
  FileDescriptor lock_;
  std::string directory_;   ///< absolute
  std::string fleet_text_;  ///< fleet.yaml as nodes_ were read from it
  std::vector<LocalNode> nodes_;
  Others others_;
  std::string address_;
  std::string controllers_;  ///< of all controllers, for agents: the addresses with commas between
  std::vector<std::string> started_;
  std::map<std::string, std::uint64_t> agent_logs_from_;  ///< size of agents' logs before the
                                                          ///< start, by node
};

}  // namespace orrery

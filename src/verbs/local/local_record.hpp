// verbs/local/local_record.hpp - what is known of the processes of a local cluster: DIR/local.json.
//
// Values. A process is known by its number and start, so that none is ever found or ended by its
// name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/system/real_storage.hpp"
#include "verbs/local/local_process.hpp"

namespace orrery {

enum class LocalRole : std::uint8_t { kAgent, kController, kStore, kGateway };

struct LocalProcess {
  std::string name;  ///< of an agent: name of the node
  LocalRole role = LocalRole::kAgent;
  ProcessIdentity process;
  std::string controller;  ///< addresses of controllers that an agent or gateway was given
};

/// The servers of a cluster with several controllers. Empty lists: it has one, with DIR/store.
struct LocalServers {
  std::string store;                    ///< URL of the shared log, without the cluster's name
  std::vector<std::string> listen;      ///< of each controller, for clients and agents
  std::vector<std::string> http;        ///< of each controller
  std::vector<std::string> etcd;        ///< of each own member of etcd, for clients; none: not own
  std::vector<std::string> etcd_peers;  ///< of each own member, for the others
};

/// DIR/local.json. A boot of the cluster lasts until all its processes are known to be gone.
struct LocalRecord {
  std::uint64_t boot = 1;
  std::string machine_boot;
  LocalServers servers;
  std::string gateway;  ///< host:port of the gateway for clients; empty: none was started yet
  std::vector<LocalProcess> processes;

  /// The process of this name and role, which is added where there is none.
  [[nodiscard]] LocalProcess& process(LocalRole role, const std::string& name);
};

/// Reads DIR/local.json; a new record, where there is none. The processes of an earlier boot of the
/// machine are gone. Errors: the file.
[[nodiscard]] Result<LocalRecord> read_local_record(Storage& storage, const std::string& directory);
[[nodiscard]] Status write_local_record(Storage& storage, const std::string& directory,
                                        const LocalRecord& record);

}  // namespace orrery

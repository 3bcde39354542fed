// verbs/local/local_servers.hpp - the controllers of a local cluster, and the members of etcd that
// hold the log which several controllers share.
//
//   one controller   DIR holds all its files, and DIR/orreryd.log what it says
//   several          DIR/controllers/N holds what controller N writes, with orreryd.log;
//                    DIR/etcd/N what member N of etcd writes, with etcd.log; DIR/cluster.key
//                    seals the secrets in the log
// Used by LocalCluster (verbs/local/local_cluster.hpp), which keeps the record. One thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/system/real_storage.hpp"
#include "verbs/local/local_record.hpp"

namespace orrery {

struct ServerStart {
  std::string record;             ///< a directory for a record of it; empty: none is made
  bool accept_lost_jobs = false;  ///< it ends ranks of jobs that its log never had
  std::uint32_t controllers = 0;  ///< of a new cluster; 0: one, or as many as there are
  /// Log of a new cluster: "etcd" for own members, or etcd://HOST:PORT..; empty: DIR/store, or what
  /// the cluster has.
  std::string store;
};

class LocalServerProcesses {
 public:
  using Save = std::function<Status()>;

  /// `save` writes the record after a process was started. All outlive this object.
  LocalServerProcesses(Storage& storage, std::string directory, LocalRecord& record, Save save)
      : storage_(storage),
        directory_(std::move(directory)),
        record_(record),
        save_(std::move(save)) {}

  /// Starts the servers that do not run and waits until one controller serves and the others stand
  /// by. Returns the names of those that were started. Errors: the program that ended, with its
  /// last output; options that do not fit the cluster; no etcd on this machine. After an error new
  /// servers of which none has led are gone, but for their logs.
  [[nodiscard]] Result<std::vector<std::string>> start(const ServerStart& options);

  /// Directory of the authority's key, of any controller.
  [[nodiscard]] std::string tls_directory() const;
  [[nodiscard]] bool shares_log() const { return !record_.servers.listen.empty(); }

 private:
  [[nodiscard]] Status plan(const ServerStart& options);
  [[nodiscard]] Status start_all(const ServerStart& options);
  /// Ends new servers and removes what they wrote, unless one of them has led.
  void undo();
  /// Plans the servers of a new cluster whose log is shared.
  [[nodiscard]] Status add_servers(std::size_t wanted, const std::string& store);
  [[nodiscard]] Status certify_etcd();
  [[nodiscard]] Status start_etcd();
  [[nodiscard]] Status start_controller(std::size_t number, const ServerStart& options);
  [[nodiscard]] std::vector<std::string> arguments_of(std::size_t number,
                                                      const ServerStart& options) const;
  /// Starts a program unless its process runs.
  [[nodiscard]] Status start_program(LocalProcess& process, const std::string& program,
                                     std::vector<std::string> arguments);
  [[nodiscard]] Status check_etcd();
  [[nodiscard]] Status wait_for(std::size_t number);
  [[nodiscard]] Status wait_for_leader();
  [[nodiscard]] std::string state_of(std::size_t number) const;
  [[nodiscard]] std::string log_of(const LocalProcess& process) const;
  [[nodiscard]] std::string name_of(std::size_t number) const;

  Storage& storage_;
  std::string directory_;
  LocalRecord& record_;
  Save save_;
  std::vector<std::string> started_;
  std::map<std::string, std::uint64_t> logs_from_;  ///< size of logs before the start, by path
};

}  // namespace orrery

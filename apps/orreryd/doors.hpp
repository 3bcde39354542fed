// apps/orreryd/doors.hpp - what clients and agents reach a controller through: its servers, their
// certificate, and the books of who may do what.
//
//   DIR/cluster.json   where the cluster is served, written once it is
//   STATE/tls          its authority, made at the first start (api/agents/certificates.hpp)
//   STATE/tokens       users and their rights; made with STATE/token at the first start
//   STATE/joins        tokens by which agents join (api/agents/join_book.hpp)
//   STATE/audit.log    every change that was asked for (api/access/audit_log.hpp)
//   STATE/orreryd.pid  the process, written once it serves or stands by
// Owned by the daemon, on its loop; ends before the controller. A standby opens the door of agents
// alone, and the other ones when it leads. A service manager is told when the controller serves or
// stands by (node/service_notice.hpp).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/access/audit_log.hpp"
#include "api/access/token_book.hpp"
#include "api/agents/certificates.hpp"
#include "api/agents/join_book.hpp"
#include "api/cluster_directory.hpp"
#include "api/grpc/method_table.hpp"
#include "api/grpc/open_calls.hpp"
#include "api/grpc/server.hpp"
#include "api/http/http_server.hpp"
#include "api/standby/standby_service.hpp"
#include "api/store_service.hpp"
#include "apps/orreryd/config_files.hpp"
#include "base/env.hpp"
#include "base/log.hpp"
#include "executor/slurm/slurm_setup.hpp"

namespace orrery {

struct DoorOptions {
  std::string directory;           ///< DIR, which the operator edits
  std::string state;               ///< STATE, which the controller writes; may be the same
  std::string listen;              ///< empty: as before, else a free port
  std::string http;                ///< empty: as before, else a free port
  std::vector<std::string> names;  ///< that it is reached by, beside those it listens at
  std::vector<std::string> peers;  ///< addresses of the other controllers, as HOST:PORT
  std::string manager;             ///< socket of a service manager; empty: there is none
};

class Doors {
 public:
  Doors(const Env& env, const Log& log, DoorOptions options, ConfigFiles& files)
      : env_(env), log_(log), options_(std::move(options)), files_(files) {}

  /// Opens the door of agents, and refuses clients but for what a standby says of itself.
  /// `progress` is called on the loop, also for a while after the controller leads. Precondition:
  /// DIR/tls is there. Errors: the files; it cannot listen.
  [[nodiscard]] Status stand_by(AskProgress progress);
  [[nodiscard]] bool stands_by() const { return server_ != nullptr; }
  /// Returns the addresses by which other controllers know this one: "HOST:PORT HOST:PORT", of gRPC
  /// and of HTTP, the second of which may be missing. Precondition: --listen was given.
  [[nodiscard]] std::string name() const;
  /// Names the leader to clients that are refused; `leader` as of name().
  void follow(const std::string& leader);
  /// Prepares the servers for a controller that leads; clients and agents are not served before
  /// lead(). Errors: a file cannot be read or written; the server cannot listen.
  [[nodiscard]] Status make_ready(Controller& controller, FleetChanged fleet_changed);
  /// Serves clients and agents from now on. Agents that are connected already, because this process
  /// was a standby, are admitted or refused within the call. Precondition: make_ready(). Errors: a
  /// file cannot be written.
  [[nodiscard]] Status lead(Controller& controller);
  /// Returns how agents in a hold reach the controllers. Precondition: make_ready().
  [[nodiscard]] PilotRoute pilot_route() const;

 private:
  /// The books of who may do what.
  struct Access {
    std::unique_ptr<TokenBook> tokens;
    JoinBook joins;
    std::unique_ptr<AuditLog> audit;
  };
  [[nodiscard]] Status open_access();
  /// Returns the addresses; unnamed ones stay as before, so that agents find the controller again.
  [[nodiscard]] ClusterFile addresses();
  /// Issues a certificate for the addresses; for the machine's name where it listens everywhere.
  [[nodiscard]] Status certify(const ClusterFile& addresses);
  [[nodiscard]] Status open_server();
  /// Returns what clients are told; `name` is the cluster's, empty: not known.
  [[nodiscard]] ClusterFile cluster_file(const std::string& name) const;
  [[nodiscard]] Status announce(const Controller& controller);
  void note_process();
  /// Adds to the error of an address that it is of an earlier start.
  [[nodiscard]] Status explain(Status serving);

  Env env_;
  Log log_;
  DoorOptions options_;
  ConfigFiles& files_;
  /// What a standby tells; empty: the controller was never one.
  struct Standing {
    std::string leader;
    AskProgress progress;
    MethodTable methods;
  } standing_;
  std::optional<Access> access_;  ///< none, as the next: it does not lead
  std::optional<OpenCalls> open_calls_;
  MethodTable methods_;
  TlsIdentity authority_;
  ServerTls tls_;
  std::unique_ptr<Server> server_;  ///< none: it neither leads nor stands by
  std::unique_ptr<HttpServer> http_;
};

}  // namespace orrery

#include "apps/orreryd/doors.hpp"

#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "api/access/access_service.hpp"
#include "api/access/authorization.hpp"
#include "api/grpc/counted_calls.hpp"
#include "api/hold_service.hpp"
#include "api/orrery_service.hpp"
#include "api/services/service_methods.hpp"
#include "apps/orreryd/reachable_address.hpp"
#include "base/format/field_writer.hpp"
#include "node/service_notice.hpp"

namespace orrery {
namespace {

/// Returns the file of the authority's certificate as cluster.json names it: beside that file.
std::string authority_file(const DoorOptions& options) {
  const std::filesystem::path file = std::filesystem::path(options.state) / "tls" / "ca.pem";
  return file.lexically_proximate(options.directory).string();
}

}  // namespace

Status Doors::open_access() {
  Result<std::unique_ptr<TokenBook>> tokens = TokenBook::open(env_, options_.state);
  if (!tokens) return forward_error(tokens);
  Result<JoinBook> joins = JoinBook::open(env_, options_.state);
  if (!joins) return forward_error(joins);
  Result<std::unique_ptr<AuditLog>> audit = AuditLog::open(env_, log_, options_.state);
  if (!audit) return forward_error(audit);
  access_.emplace(Access{*std::move(tokens), *std::move(joins), *std::move(audit)});
  open_calls_.emplace(env_, *access_->tokens);
  return {};
}

ClusterFile Doors::addresses() {
  ClusterFile cluster;
  if (const Result<std::string> before = files_.text("cluster.json"); before && !before->empty()) {
    // An unreadable file is written anew.
    cluster = read_cluster_file(*before, "cluster.json").value_or(ClusterFile());
    if (!cluster.listen.empty()) cluster.address = cluster.listen;
    if (!cluster.http_listen.empty()) cluster.http = cluster.http_listen;
    // Controllers may share DIR: then the file may be of another one.
    const bool alone = options_.peers.empty() && options_.state == options_.directory;
    if (!alone && options_.listen != cluster.address) cluster = {};
  }
  if (cluster.address.empty()) cluster.address = "127.0.0.1:0";
  if (cluster.http.empty()) cluster.http = "127.0.0.1:0";
  if (!options_.listen.empty()) cluster.address = options_.listen;
  if (!options_.http.empty()) cluster.http = options_.http;
  return cluster;
}

Status Doors::certify(const ClusterFile& addresses) {
  Result<TlsIdentity> authority = open_authority(env_, options_.state);
  if (!authority) return forward_error(authority);
  authority_ = *std::move(authority);
  std::vector<std::string> names = options_.names;
  std::array<char, HOST_NAME_MAX + 1> machine{};
  if (::gethostname(machine.data(), HOST_NAME_MAX) == 0) names.emplace_back(machine.data());
  for (const std::string& listens : {addresses.address, addresses.http}) {
    const std::string address = reachable_address(listens, options_.names);
    std::string host = address.substr(0, address.rfind(':'));
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    names.push_back(std::move(host));
  }
  Result<ServerTls> tls = certify_server(authority_, names, env_.clock.now_wall());
  if (!tls) return forward_error(tls);
  tls_ = *std::move(tls);
  return {};
}

Status Doors::open_server() {
  const ClusterFile addresses = this->addresses();
  if (Status certified = certify(addresses); !certified) return certified;
  Result<std::unique_ptr<Server>> server =
      Server::start(env_, {.address = addresses.address,
                           .tls = &tls_,
                           .standby = standing_.progress ? &standing_.methods : nullptr});
  if (!server) return explain(forward_error(server));
  server_ = *std::move(server);
  Result<std::unique_ptr<HttpServer>> http = HttpServer::start(
      env_, {.address = addresses.http, .tls = &tls_, .standby = standing_.progress});
  if (!http) return explain(forward_error(http));
  http_ = *std::move(http);
  follow(standing_.leader);
  return {};
}

Status Doors::explain(Status serving) {
  const bool as_before = options_.listen.empty() || options_.http.empty();
  if (!serving && as_before && !files_.text("cluster.json").value_or("").empty()) {
    serving.error().message +=
        fmt::format(" (addresses from {}/cluster.json:1; --listen and --http override them)",
                    options_.directory);
  }
  return serving;
}

Status Doors::stand_by(AskProgress progress) {
  standing_.methods = standby_methods(progress);
  standing_.progress = std::move(progress);
  if (Status opened = open_server(); !opened) return opened;
  note_process();
  const Status told = files_.keep_first("cluster.json", to_json(cluster_file("")).dump() + "\n");
  if (!told) return told;
  log_.info(env_.clock.now_wall(), "stands by", {{"address", server_->address()}});
  notify_service(options_.manager,
                 fmt::format("READY=1\nSTATUS=standby at {}\n", server_->address()));
  return {};
}

std::string Doors::name() const {
  return fmt::format("{} {}", reachable_address(options_.listen, options_.names),
                     options_.http.empty() ? "" : reachable_address(options_.http, options_.names));
}

void Doors::follow(const std::string& leader) {
  standing_.leader = leader;
  if (server_ == nullptr) return;
  const std::size_t space = std::min(leader.find(' '), leader.size());
  server_->follow(leader.substr(0, space));
  http_->follow(leader.substr(std::min(space + 1, leader.size())));
}

Status Doors::make_ready(Controller& controller, FleetChanged fleet_changed) {
  if (Status access = open_access(); !access) return access;
  MethodTable methods = orrery_methods(controller, env_);
  if (server_ == nullptr) {
    if (Status opened = open_server(); !opened) return opened;
  }
  add_access_methods(methods, controller, env_, {*access_->tokens, access_->joins, authority_});
  add_store_methods(methods, controller);
  add_fleet_methods(methods, controller, std::move(fleet_changed));
  add_hold_methods(methods, controller);
  add_service_methods(methods, controller, env_, *access_->tokens);
  add_controller_method(methods, controller);
  methods_ = open_calls_->watched(
      counted(audited(authorized(refused_in_silence(methods, controller), controller),
                      *access_->audit, controller),
              controller.counts()));
  return {};
}

Status Doors::lead(Controller& controller) {
  server_->lead({controller, methods_, *access_->tokens});
  http_->lead({controller, methods_, *access_->tokens});
  return announce(controller);
}

PilotRoute Doors::pilot_route() const {
  const ClusterFile file = cluster_file({});
  PilotRoute route{.controllers = file.controllers, .authority = authority_.certificate};
  if (route.controllers.empty()) route.controllers = {file.address};
  return route;
}

void Doors::note_process() {
  const StorageStatus told =
      env_.storage.write_file(options_.state + "/orreryd.pid", fmt::format("{}\n", ::getpid()));
  if (!told) log_.warning(env_.clock.now_wall(), "no orreryd.pid", {{"why", told.error().text()}});
}

ClusterFile Doors::cluster_file(const std::string& name) const {
  ClusterFile file{.address = reachable_address(server_->address(), options_.names),
                   .http = reachable_address(http_->address(), options_.names),
                   .name = name,
                   .ca = authority_file(options_),
                   .version = ORRERY_VERSION};
  if (!options_.peers.empty()) {
    file.controllers = options_.peers;
    file.controllers.push_back(file.address);
    std::ranges::sort(file.controllers);
  }
  if (file.address != server_->address()) file.listen = server_->address();
  if (file.http != http_->address()) file.http_listen = http_->address();
  return file;
}

Status Doors::announce(const Controller& controller) {
  const ClusterFile file = cluster_file(controller.state().setup().topology->name());
  if (Status told = files_.keep("cluster.json", to_json(file).dump() + "\n"); !told) return told;
  note_process();
  log_.info(env_.clock.now_wall(), "serving",
            {{"address", file.address}, {"http", file.http}, {"cluster", file.name}});
  notify_service(options_.manager,
                 fmt::format("READY=1\nSTATUS={} at {}\n", file.name, file.address));
  return {};
}

}  // namespace orrery

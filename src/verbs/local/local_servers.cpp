#include "verbs/local/local_servers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <utility>

#include "api/agents/certificates.hpp"
#include "api/cluster_directory.hpp"
#include "base/system/free_address.hpp"
#include "base/system/real_clock.hpp"
#include "base/system/real_env.hpp"
#include "orrery/v1/orrery.pb.h"
#include "store/etcd_api/etcd_location.hpp"
#include "store/sqlite/disk_reserve.hpp"
#include "verbs/local/program_log.hpp"

namespace orrery {
namespace {

constexpr const char* kController = "orreryd";
constexpr const char* kOwnEtcd = "etcd";
constexpr std::size_t kControllersMax = 9;
constexpr std::size_t kFileMax = 4 << 20;
constexpr Duration kLook = Duration::milliseconds(20);
constexpr Duration kStartPatience = Duration::seconds(60);
constexpr Duration kEndPatience = Duration::seconds(10);
/// Heartbeat and election of own members, in ms: a new leader of etcd is elected within the silence
/// that a standby waits for.
constexpr const char* kHeartbeat = "30";
constexpr const char* kElection = "300";

Result<std::vector<std::string>> free_addresses(std::size_t count) {
  std::vector<std::string> addresses;
  addresses.reserve(count);
  // All are held until the last one is known, so that they differ.
  RealEntropy entropy;
  std::vector<FreeAddress> held;
  held.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    Result<FreeAddress> free = FreeAddress::on_loopback(entropy);
    if (!free) return forward_error(free);
    addresses.push_back(free->text());
    held.push_back(*std::move(free));
  }
  return addresses;
}

/// Returns the path of a program that the shell would find, or that Debian installs elsewhere.
std::string program_path(const std::string& name) {
  constexpr std::array<std::string_view, 3> kPlaces{"/usr/bin/", "/usr/local/bin/", "/usr/sbin/"};
  for (const std::string_view place : kPlaces) {
    std::string path = std::string(place) + name;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

std::string random_key() {
  RealEntropy entropy;
  return fmt::format("{:016x}{:016x}{:016x}{:016x}\n", entropy.draw(), entropy.draw(),
                     entropy.draw(), entropy.draw());
}

void end_process(const ProcessIdentity& process) {
  const ProcessHandle handle(process);
  handle.signal(SIGTERM);
  if (handle.ended_within(kEndPatience)) return;
  handle.signal(SIGKILL);
  static_cast<void>(handle.ended_within(kEndPatience));
}

/// Removes everything under a directory but logs and the directories that have one.
void remove_but_logs(const std::filesystem::path& directory) {
  namespace fs = std::filesystem;
  std::error_code failed;
  for (fs::directory_iterator at(directory, failed), end; !failed && at != end;
       at.increment(failed)) {
    std::error_code kept;
    if (at->is_directory(kept)) {
      remove_but_logs(at->path());
    } else if (at->path().extension() != ".log") {
      fs::remove(at->path(), kept);
    }
  }
  fs::remove(directory, failed);
}

}  // namespace

// --- Names and places ---------------------------------------------------------------------------

std::string LocalServerProcesses::name_of(std::size_t number) const {
  return shares_log() ? fmt::format("{}-{}", kController, number) : kController;
}

std::string LocalServerProcesses::state_of(std::size_t number) const {
  return shares_log() ? fmt::format("{}/controllers/{}", directory_, number) : directory_;
}

std::string LocalServerProcesses::tls_directory() const {
  const std::size_t count = std::max<std::size_t>(1, record_.servers.listen.size());
  for (std::size_t number = 1; number <= count; ++number) {
    std::string tls = state_of(number) + "/tls";
    if (::access((tls + "/ca.key").c_str(), R_OK) == 0) return tls;
  }
  return state_of(1) + "/tls";
}

std::string LocalServerProcesses::log_of(const LocalProcess& process) const {
  const std::string number = process.name.substr(process.name.find('-') + 1);
  if (process.role == LocalRole::kStore) {
    return fmt::format("{}/etcd/{}/etcd.log", directory_, number);
  }
  if (!shares_log()) return directory_ + "/orreryd.log";
  return fmt::format("{}/controllers/{}/orreryd.log", directory_, number);
}

// --- What there is to be started ----------------------------------------------------------------

Status LocalServerProcesses::plan(const ServerStart& options) {
  LocalServers& servers = record_.servers;
  std::error_code none;
  const bool begun = shares_log() || std::filesystem::exists(directory_ + "/store", none);
  const std::size_t there = std::max<std::size_t>(1, servers.listen.size());
  const std::size_t wanted = options.controllers == 0 ? there : options.controllers;
  if (begun) {
    if (options.controllers != 0 && wanted != there) {
      return infeasible(fmt::format(
          "the cluster at {} has {} of its own; --controllers applies to "
          "a new cluster",
          directory_, there == 1 ? "one controller" : fmt::format("{} controllers", there)));
    }
    if (!options.store.empty() && options.store != servers.store &&
        !(options.store == kOwnEtcd && !servers.etcd.empty())) {
      return infeasible(
          fmt::format("the log of the cluster at {} is in {}; `orrery store copy` moves a stopped "
                      "cluster's log",
                      directory_, servers.store.empty() ? directory_ + "/store" : servers.store));
    }
    return {};
  }
  if (options.store.empty() && wanted == 1) return {};
  if (options.store.empty()) {
    return input_error({},
                       fmt::format("{} controllers need a log that they share: add --store etcd, "
                                   "or --store etcd://HOST:PORT/NAME",
                                   wanted));
  }
  if (wanted > kControllersMax) {
    return input_error(
        {}, fmt::format("--controllers: expected 1 to {}, found {}", kControllersMax, wanted));
  }
  return add_servers(wanted, options.store);
}

Status LocalServerProcesses::add_servers(std::size_t wanted, const std::string& store) {
  LocalServers& servers = record_.servers;
  const bool own = store == kOwnEtcd;
  if (own && program_path(kOwnEtcd).empty()) {
    return environment_error(
        "there is no etcd on this machine: `apt-get install etcd-server` installs it, and --store "
        "etcd://HOST:PORT/NAME uses one that runs elsewhere");
  }
  if (!own) {
    if (const auto location = parse_etcd_location(store); !location) {
      return tl::unexpected(location.error());
    }
  }
  const std::size_t members = !own ? 0 : wanted > 2 ? 3 : 1;
  Result<std::vector<std::string>> addresses = free_addresses(2 * wanted + 2 * members);
  if (!addresses) return forward_error(addresses);
  auto next = addresses->begin();
  const auto take = [&next](std::vector<std::string>& into, std::size_t count) {
    into.assign(next, next + static_cast<std::ptrdiff_t>(count));
    next += static_cast<std::ptrdiff_t>(count);
  };
  take(servers.listen, wanted);
  take(servers.http, wanted);
  take(servers.etcd, members);
  take(servers.etcd_peers, members);
  servers.store = store;
  if (own) {
    if (Status certified = certify_etcd(); !certified) return certified;
    const std::string tls = directory_ + "/etcd/tls";
    servers.store = fmt::format("etcd://{}/local?ca={}/ca.pem&cert={}/member.pem&key={}/member.key",
                                fmt::join(servers.etcd, ","), tls, tls, tls);
  }
  StorageStatus put = storage_.write_file(directory_ + "/cluster.key", random_key());
  if (!put) return forward_error(put);
  return save_();
}

/// Only who can read DIR reaches the log: every connection shows a certificate that is made here.
Status LocalServerProcesses::certify_etcd() {
  const RealClock clock;
  const Result<TlsIdentity> authority = make_authority(clock.now_wall());
  if (!authority) return tl::unexpected(authority.error());
  const Result<TlsIdentity> member = certify_member(*authority, {"127.0.0.1"}, clock.now_wall());
  if (!member) return tl::unexpected(member.error());
  const std::string tls = directory_ + "/etcd/tls";
  StorageStatus put = storage_.make_directories(tls);
  if (put) put = storage_.write_file(tls + "/ca.pem", authority->certificate);
  if (put) put = storage_.write_file(tls + "/member.pem", member->certificate);
  if (put) put = storage_.write_file(tls + "/member.key", member->key);
  if (!put) return forward_error(put);
  return {};
}

std::vector<std::string> LocalServerProcesses::arguments_of(std::size_t number,
                                                            const ServerStart& options) const {
  std::vector<std::string> arguments{"--dir", directory_};
  if (shares_log()) {
    const LocalServers& servers = record_.servers;
    const std::string& listen = servers.listen[number - 1];
    arguments.insert(arguments.end(), {"--state", state_of(number), "--store", servers.store,
                                       "--listen", listen, "--http", servers.http[number - 1]});
    for (const std::string& peer : servers.listen) {
      if (peer != listen) arguments.insert(arguments.end(), {"--peer", peer});
    }
  }
  if (!options.record.empty()) arguments.insert(arguments.end(), {"--record", options.record});
  if (options.accept_lost_jobs) arguments.emplace_back("--accept-lost-jobs");
  return arguments;
}

// --- Start --------------------------------------------------------------------------------------

Status LocalServerProcesses::start_program(LocalProcess& process, const std::string& program,
                                           std::vector<std::string> arguments) {
  if (ProcessHandle(process.process).alive()) return {};
  const std::string log = log_of(process);
  StorageStatus made = storage_.make_directories(log.substr(0, log.rfind('/')));
  if (!made) return forward_error(made);
  logs_from_[log] = file_size(log);
  Result<ProcessIdentity> started =
      start_process({.program = program, .arguments = std::move(arguments), .log = log});
  if (!started) return forward_error(started);
  process.process = *started;
  started_.push_back(process.name);
  return save_();
}

Status LocalServerProcesses::start_etcd() {
  const LocalServers& servers = record_.servers;
  std::vector<std::string> peers;
  peers.reserve(servers.etcd_peers.size());
  for (std::size_t i = 0; i < servers.etcd_peers.size(); ++i) {
    peers.push_back(fmt::format("m{}=https://{}", i + 1, servers.etcd_peers[i]));
  }
  const std::string authority = directory_ + "/etcd/tls/ca.pem";
  const std::string certificate = directory_ + "/etcd/tls/member.pem";
  const std::string key = directory_ + "/etcd/tls/member.key";
  for (std::size_t i = 0; i < servers.etcd.size(); ++i) {
    const std::string client = "https://" + servers.etcd[i];
    const std::string peer = "https://" + servers.etcd_peers[i];
    const std::string data = fmt::format("{}/etcd/{}/data", directory_, i + 1);
    LocalProcess& member = record_.process(LocalRole::kStore, fmt::format("etcd-{}", i + 1));
    Status started = start_program(member, program_path(kOwnEtcd),
                                   {"--name",
                                    fmt::format("m{}", i + 1),
                                    "--data-dir",
                                    data,
                                    "--listen-client-urls",
                                    client,
                                    "--advertise-client-urls",
                                    client,
                                    "--listen-peer-urls",
                                    peer,
                                    "--initial-advertise-peer-urls",
                                    peer,
                                    "--initial-cluster",
                                    fmt::format("{}", fmt::join(peers, ",")),
                                    "--heartbeat-interval",
                                    kHeartbeat,
                                    "--election-timeout",
                                    kElection,
                                    "--logger",
                                    "zap",
                                    "--log-level",
                                    "warn",
                                    "--client-cert-auth",
                                    "--trusted-ca-file",
                                    authority,
                                    "--cert-file",
                                    certificate,
                                    "--key-file",
                                    key,
                                    "--peer-client-cert-auth",
                                    "--peer-trusted-ca-file",
                                    authority,
                                    "--peer-cert-file",
                                    certificate,
                                    "--peer-key-file",
                                    key});
    if (!started) return started;
  }
  return {};
}

Status LocalServerProcesses::start_controller(std::size_t number, const ServerStart& options) {
  LocalProcess& controller = record_.process(LocalRole::kController, name_of(number));
  const bool runs = ProcessHandle(controller.process).alive();
  if (options.accept_lost_jobs && runs) {
    return environment_error(
        "--accept-lost-jobs applies only to the start of a controller, and the controller is "
        "already running: stop it first with `orrery down --keep-jobs`");
  }
  // For what is written here before the controller makes room itself.
  if (!runs) (void)DiskReserve::give_up_for_start(state_of(number) + "/store");
  return start_program(controller, program_directory() + "/orreryd", arguments_of(number, options));
}

Result<std::vector<std::string>> LocalServerProcesses::start(const ServerStart& options) {
  const bool shared_before = shares_log();
  if (Status started = start_all(options); !started) {
    if (!shared_before) undo();
    return forward_error(started);
  }
  return started_;
}

Status LocalServerProcesses::start_all(const ServerStart& options) {
  if (Status planned = plan(options); !planned) return planned;
  if (Status started = start_etcd(); !started) return started;
  const std::size_t count = std::max<std::size_t>(1, record_.servers.listen.size());
  for (std::size_t number = 1; number <= count; ++number) {
    if (Status started = start_controller(number, options); !started) return started;
  }
  for (std::size_t number = 1; number <= count; ++number) {
    if (Status serving = wait_for(number); !serving) return serving;
  }
  return shares_log() ? wait_for_leader() : Status();
}

void LocalServerProcesses::undo() {
  if (!shares_log()) return;
  std::error_code none;
  for (std::size_t number = 1; number <= record_.servers.listen.size(); ++number) {
    if (std::filesystem::exists(state_of(number) + "/token", none)) return;
  }
  const auto is_server = [](const LocalProcess& each) { return each.role != LocalRole::kAgent; };
  for (const LocalProcess& each : record_.processes) {
    if (is_server(each)) end_process(each.process);
  }
  std::erase_if(record_.processes, is_server);
  record_.servers = {};
  for (const char* made : {"controllers", "etcd"}) remove_but_logs(directory_ + "/" + made);
  for (const char* made : {"cluster.key", "cluster.json"}) {
    std::filesystem::remove(directory_ + "/" + made, none);
  }
  // The error of the start is the one to report.
  static_cast<void>(save_());
}

/// Error: a member of etcd has ended, with its last output.
Status LocalServerProcesses::check_etcd() {
  for (const LocalProcess& each : record_.processes) {
    if (each.role != LocalRole::kStore || ProcessHandle(each.process).alive()) continue;
    const std::string log = log_of(each);
    return environment_error(
        fmt::format("{} exited during startup:{}", each.name, log_since(log, logs_from_[log])));
  }
  return {};
}

/// Waits until a controller serves or stands by, which writes its number then.
Status LocalServerProcesses::wait_for(std::size_t number) {
  const LocalProcess& controller = record_.process(LocalRole::kController, name_of(number));
  const ProcessHandle handle(controller.process);
  const std::string serving = fmt::format("{}\n", controller.process.pid);
  const std::string log = log_of(controller);
  const RealClock clock;
  const Instant until = clock.now_monotonic() + kStartPatience;
  while (true) {
    const StorageResult<std::string> text =
        storage_.read_file(state_of(number) + "/orreryd.pid", kFileMax);
    if (text && *text == serving) return {};
    if (handle.ended_within(kLook)) {
      return environment_error(fmt::format("{} exited during startup:{}", controller.name,
                                           log_since(log, logs_from_[log])));
    }
    if (Status members = check_etcd(); !members) return members;
    if (clock.now_monotonic() > until) {
      return environment_error(fmt::format("{} does not respond after {}; see {}", controller.name,
                                           kStartPatience.text(), log));
    }
  }
}

/// The first leader makes the token of an administrator.
Status LocalServerProcesses::wait_for_leader() {
  for (std::size_t number = 1; number <= record_.servers.listen.size(); ++number) {
    const StorageResult<std::string> token =
        storage_.read_file(state_of(number) + "/token", kFileMax);
    if (!token || ::access((directory_ + "/token").c_str(), F_OK) == 0) continue;
    StorageStatus put = storage_.write_file(directory_ + "/token", *token);
    if (!put) return forward_error(put);
  }
  Result<ClusterAddress> cluster = read_cluster_address(storage_, directory_);
  if (!cluster) return forward_error(cluster);
  ClientOptions to = client_options(*cluster);
  to.retry = kStartPatience;
  Client client(std::move(to));
  const auto state = client.call<v1::Cluster>("GetCluster", v1::GetClusterRequest());
  if (!state) return tl::unexpected(state.error());
  return {};
}

}  // namespace orrery

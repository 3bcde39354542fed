// orreryd: the controller of a cluster, as a process (executor/controller.hpp,
// api/grpc/server.hpp).
//
//   DIR/fleet.yaml   what a log is begun with; written anew when the fleet is changed by a call
//   DIR/tenants.yaml, DIR/policy.yaml   where they are there: what holds since the newest start or
//                    SIGHUP; the log keeps it
//   DIR/controller.yaml   how long it waits for what and how much it takes on, where it is there
//   DIR/catalog      facts laid over those compiled in, where it is there
//   DIR/store        the log
//   DIR/tls          the cluster's authority, made at the first start (api/agents/certificates.hpp)
//   DIR/tokens       users and their rights; made with DIR/token at the first start
//   DIR/joins        tokens by which agents join (api/agents/join_book.hpp)
//   DIR/audit.log    every change that was asked for (api/access/audit_log.hpp)
//   DIR/cluster.json where it serves, written once it does
//   DIR/orreryd.pid  its process
// SIGTERM and SIGINT end it: what was acknowledged is durable, ranks run on. SIGHUP has it read
// these files again; one that is wrong is named in its log and changes nothing.
// A service manager is told when it serves (node/service_notice.hpp).
#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdlib>
#include <type_traits>

#include "api/access/access_service.hpp"
#include "api/access/audit_log.hpp"
#include "api/access/authorization.hpp"
#include "api/access/token_book.hpp"
#include "api/agents/certificates.hpp"
#include "api/cluster_directory.hpp"
#include "api/grpc/counted_calls.hpp"
#include "api/grpc/grpc_library.hpp"
#include "api/grpc/open_calls.hpp"
#include "api/grpc/server.hpp"
#include "api/http/http_server.hpp"
#include "api/orrery_service.hpp"
#include "api/store_service.hpp"
#include "api/views.hpp"
#include "apps/option_hooks.hpp"
#include "apps/orreryd/reachable_address.hpp"
#include "base/format/document.hpp"
#include "base/format/field_reader.hpp"
#include "base/format/field_writer.hpp"
#include "base/log.hpp"
#include "base/system/real_env.hpp"
#include "base/text/line_changes.hpp"
#include "base/text/terminal_text.hpp"
#include "fleet/spec/builder.hpp"
#include "fleet/spec/spec.hpp"
#include "node/daemon_signals.hpp"
#include "node/service_notice.hpp"
#include "perf/facts.hpp"
#include "scheduler/asked_policy.hpp"

namespace orrery {
namespace {

/// A copy of fleet.yaml from the time when it last agreed with the log.
constexpr const char* kFleetApplied = "fleet.yaml.applied";
constexpr std::size_t kTextMax = std::size_t{8} << 20;
constexpr const char* kPolicy = "apiVersion: orrery/v1\nkind: Policy\nname: hardware-aware\n";

struct Options {
  std::string directory;
  std::string listen;
  std::string http;
  std::string record;
  bool accept_lost_jobs = false;
  std::vector<std::string> names;  ///< that it is reached by, beside those it listens at
  std::string manager;             ///< socket of a service manager; empty: there is none
};

int complain(const Error& error) {
  fmt::print(stderr, "orreryd: {}\n", terminal_text(error.text(), Newlines::kKept));
  return error.kind == ErrorKind::kInput ? 2 : 1;
}

class Daemon {
 public:
  Daemon(RealEnv& real, Options options)
      : real_(real), env_(real.env()), options_(std::move(options)), log_(sink_) {}

  [[nodiscard]] Status begin();
  /// Returns the exit status.
  [[nodiscard]] int run();

 private:
  [[nodiscard]] Status load_facts();
  [[nodiscard]] Result<SetupTexts> setup_texts();
  [[nodiscard]] Result<ControllerSettings> settings();
  [[nodiscard]] Result<std::string> text(const std::string& name);
  [[nodiscard]] Status watch();
  /// Takes over one of the files that the log keeps: `now` is its applied text, `command` changes
  /// it.
  template <class Command>
  void take_over(const std::string& file, const std::string& now);
  void take_over_files();
  void complete_fleet();
  void compare_fleet();
  void keep_fleet(const std::string& fleet);
  void note_missing(const std::string& file, const std::string& applied);
  /// Reports the lines of a file that differ from its last applied text.
  void report_changes(const std::string& file, const std::vector<LineChange>& changes);
  void report_settings();
  void reload();
  [[nodiscard]] ClusterFile addresses();
  [[nodiscard]] Status open_access();
  [[nodiscard]] Status certify(const ClusterFile& addresses);
  [[nodiscard]] Status serve();
  [[nodiscard]] Status keep(const std::string& name, const std::string& bytes);
  [[nodiscard]] Status announce();
  void end(int status) {
    status_ = status;
    real_.stop();
  }

  RealEnv& real_;
  Env env_;
  Options options_;
  DescriptorLogSink sink_;
  Log log_;
  std::string overlay_;  ///< directory of facts over the built-in ones; empty: none
  Facts facts_;
  std::unique_ptr<DescriptorWatch> ending_;
  std::unique_ptr<DescriptorWatch> reloading_;
  std::unique_ptr<Controller> controller_;
  MethodTable methods_;
  std::unique_ptr<TokenBook> tokens_;
  std::optional<OpenCalls> open_calls_;
  std::optional<JoinBook> joins_;
  std::unique_ptr<AuditLog> audit_;
  TlsIdentity authority_;
  ServerTls tls_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<HttpServer> http_;
  int status_ = 0;
};

Status Daemon::load_facts() {
  const std::string overlay = options_.directory + "/catalog";
  if (::access(overlay.c_str(), R_OK) == 0) overlay_ = overlay;
  Result<std::vector<FactOverlay>> overlays = read_fact_overlays(overlay_);
  if (!overlays) return forward_error(overlays);
  Result<Facts> facts = Facts::load(*std::move(overlays));
  if (!facts) return forward_error(facts);
  facts_ = *std::move(facts);
  return {};
}

/// Returns an empty text where there is no such file.
Result<std::string> Daemon::text(const std::string& name) {
  StorageResult<std::string> bytes =
      env_.storage.read_file(options_.directory + "/" + name, kTextMax);
  if (bytes) return *std::move(bytes);
  if (bytes.error().failure == StorageFailure::kNotFound) return std::string();
  return forward_error(bytes);
}

Result<SetupTexts> Daemon::setup_texts() {
  SetupTexts texts;
  Result<std::string> fleet = text("fleet.yaml");
  if (!fleet) return forward_error(fleet);
  if (fleet->empty()) {
    return input_error({options_.directory + "/fleet.yaml", 0, 0},
                       "expected a Fleet file; `orrery fleet generate` and `orrery up` write one");
  }
  Result<std::string> tenants = text("tenants.yaml");
  if (!tenants) return forward_error(tenants);
  Result<std::string> policy = text("policy.yaml");
  if (!policy) return forward_error(policy);
  texts.fleet = *std::move(fleet);
  texts.tenants = *std::move(tenants);
  texts.policy = *std::move(policy);
  if (texts.policy.empty()) texts.policy = kPolicy;
  texts.writer = std::string("orreryd ") + ORRERY_VERSION;
  return texts;
}

Result<ControllerSettings> Daemon::settings() {
  Result<std::string> yaml = text("controller.yaml");
  if (!yaml) return forward_error(yaml);
  if (yaml->empty()) return ControllerSettings{};
  const Result<Document> document = Document::parse(*yaml, options_.directory + "/controller.yaml");
  if (!document) return tl::unexpected(document.error());
  return read_controller_settings(*document);
}

Status Daemon::watch() {
  auto ending = watch_signals(real_.loop(), DaemonSignals::kEnd, [this] { end(0); });
  if (!ending) return forward_error(ending);
  ending_ = *std::move(ending);
  auto reloading = watch_signals(real_.loop(), DaemonSignals::kReload, [this] { reload(); });
  if (!reloading) return forward_error(reloading);
  reloading_ = *std::move(reloading);
  return {};
}

/// Reports a file that was applied once, and was removed.
void Daemon::note_missing(const std::string& file, const std::string& applied) {
  if (applied.empty() || applied == kPolicy) return;
  const std::string text = file + ": the file is missing; its last applied version stays in effect";
  log_.warning(env_.clock.now_wall(), "file missing", {{"what", text}});
  controller_->drift().note_line(text);
}

/// Refuses a policy with a key that has no effect. The core accepts it, because logs of earlier
/// releases may hold one.
template <class Command>
Status check_request(const std::string& yaml, const std::string& file) {
  if constexpr (std::is_same_v<Command, SetPolicy>) {
    const Result<Document> document = Document::parse(yaml, file);
    if (!document) return tl::unexpected(document.error());
    if (const Result<Policy> policy = asked_policy(*document); !policy) {
      return tl::unexpected(policy.error());
    }
  }
  return {};
}

template <class Command>
void Daemon::take_over(const std::string& file, const std::string& now) {
  const Result<std::string> yaml = text(file);
  if (!yaml) {
    return log_.error(env_.clock.now_wall(), "file not read",
                      {{"file", file}, {"why", yaml.error().text()}});
  }
  if (::access((options_.directory + "/" + file).c_str(), F_OK) != 0)
    return note_missing(file, now);
  if (*yaml == now) return;
  report_changes(file, line_changes(now, *yaml));
  if (yaml->empty()) {
    return log_.error(
        env_.clock.now_wall(), "file refused",
        {{"file", file}, {"why", "the file is empty; the last applied version stays in effect"}});
  }
  if (Status fits = check_request<Command>(*yaml, file); !fits) {
    return log_.error(env_.clock.now_wall(), "file refused",
                      {{"file", file}, {"why", fits.error().text()}});
  }
  controller_->command(Command{*yaml}, {}, [this, file](const Result<JobId>& done) {
    const Instant at = env_.clock.now_wall();
    if (done) return log_.info(at, "file taken over", {{"file", file}});
    log_.error(at, "file refused", {{"file", file}, {"why", done.error().text()}});
  });
}

void Daemon::take_over_files() {
  const State& state = controller_->state();
  const SetupTexts& begun = controller_->begun_with();
  take_over<SetTenants>("tenants.yaml",
                        state.tenants_text().empty() ? begun.tenants : state.tenants_text());
  take_over<SetPolicy>("policy.yaml",
                       state.policy_text().empty() ? begun.policy : state.policy_text());
}

void Daemon::report_changes(const std::string& file, const std::vector<LineChange>& changes) {
  for (const LineChange& change : changes) {
    const std::string text = change_text(file, change);
    log_.warning(env_.clock.now_wall(), "file changed", {{"what", text}});
    controller_->drift().note_line(text);
  }
}

/// The log does not keep controller.yaml, so a copy of its last applied text lies beside it.
void Daemon::report_settings() {
  const Result<std::string> yaml = text("controller.yaml");
  if (!yaml) return;
  const std::string path = options_.directory + "/controller.yaml";
  const bool known = ::access((path + ".applied").c_str(), F_OK) == 0;
  if (yaml->empty() && !known) return;
  report_changes("controller.yaml", changes_since_applied(env_.storage, path, *yaml));
}

/// Writes the fleet of the log into fleet.yaml if the file was not edited since it was last
/// applied: an earlier controller ended between the change and the writing of the file.
void Daemon::complete_fleet() {
  const Result<std::string> yaml = text("fleet.yaml");
  const Result<std::string> applied = text(kFleetApplied);
  const std::string& holds = controller_->fleet().text();
  if (!yaml || !applied || *yaml != *applied || *yaml == holds) return;
  if (const Status kept = keep("fleet.yaml", holds); !kept) {
    return log_.error(env_.clock.now_wall(), "fleet.yaml not written",
                      {{"why", kept.error().text()}});
  }
  log_.warning(env_.clock.now_wall(), "fleet.yaml has the log's fleet now",
               {{"why", "an earlier controller ended while the fleet changed"}});
}

/// The fleet changes by a call alone, so a file that differs is reported.
void Daemon::compare_fleet() {
  const Result<std::string> yaml = text("fleet.yaml");
  if (!yaml) return;
  const std::string& holds = controller_->fleet().text();
  const Topology& in_use = *controller_->state().setup().topology;
  if (*yaml == holds) {
    if (const Status kept = keep(kFleetApplied, holds); !kept) {
      log_.warning(env_.clock.now_wall(), "fleet.yaml.applied not written",
                   {{"why", kept.error().text()}});
    }
    return controller_->drift().compare(in_use, in_use);
  }
  report_changes("fleet.yaml", line_changes(holds, *yaml));
  const std::string path = options_.directory + "/fleet.yaml";
  log_.warning(env_.clock.now_wall(),
               "fleet.yaml was changed, and has no effect before it is applied",
               {{"run", "orrery fleet apply " + path}});
  const auto topology = [&]() -> Result<Topology> {
    const Result<FleetFile> file = read_fleet_file(*yaml, path);
    if (!file) return tl::unexpected(file.error());
    const Result<Facts> facts = facts_.with(file->facts);
    if (!facts) return tl::unexpected(facts.error());
    return build_topology(file->spec, facts->catalog());
  }();
  if (topology) return controller_->drift().compare(*topology, in_use);
  log_.warning(env_.clock.now_wall(), "fleet.yaml was changed and is no longer a valid fleet",
               {{"why", topology.error().text()}});
}

/// A process that ends before the file is written completes this at its next start.
void Daemon::keep_fleet(const std::string& fleet) {
  if (const Status kept = keep("fleet.yaml", fleet); !kept) {
    log_.error(env_.clock.now_wall(), "fleet.yaml not written: the log has the present fleet",
               {{"why", kept.error().text()}});
  }
  compare_fleet();
}

void Daemon::reload() {
  compare_fleet();
  const Result<ControllerSettings> settings = this->settings();
  if (settings) {
    controller_->set_limits(*settings);
    report_settings();
    log_.info(env_.clock.now_wall(), "files read again", {});
  } else {
    log_.error(env_.clock.now_wall(), "file refused",
               {{"file", "controller.yaml"}, {"why", settings.error().text()}});
  }
  take_over_files();
}

/// Returns the addresses; unnamed ones stay as before, so that agents find the controller again.
ClusterFile Daemon::addresses() {
  ClusterFile cluster;
  if (const Result<std::string> before = text("cluster.json"); before && !before->empty()) {
    // An unreadable file is written anew.
    cluster = read_cluster_file(*before, "cluster.json").value_or(ClusterFile());
    if (!cluster.listen.empty()) cluster.address = cluster.listen;
    if (!cluster.http_listen.empty()) cluster.http = cluster.http_listen;
  }
  if (cluster.address.empty()) cluster.address = "127.0.0.1:0";
  if (cluster.http.empty()) cluster.http = "127.0.0.1:0";
  if (!options_.listen.empty()) cluster.address = options_.listen;
  if (!options_.http.empty()) cluster.http = options_.http;
  return cluster;
}

/// Writes a file unless it has that content already: a controller thus starts on a full disk, too.
Status Daemon::keep(const std::string& name, const std::string& bytes) {
  if (const Result<std::string> there = text(name); there && *there == bytes) return {};
  StorageStatus put = env_.storage.write_file(options_.directory + "/" + name, bytes);
  if (!put) return forward_error(put);
  return {};
}

Status Daemon::announce() {
  ClusterFile file{.address = reachable_address(server_->address(), options_.names),
                   .http = reachable_address(http_->address(), options_.names),
                   .name = controller_->state().setup().topology->name(),
                   .ca = "tls/ca.pem",
                   .version = ORRERY_VERSION};
  if (file.address != server_->address()) file.listen = server_->address();
  if (file.http != http_->address()) file.http_listen = http_->address();
  if (Status told = keep("cluster.json", to_json(file).dump() + "\n"); !told) return told;
  if (Status told = keep("orreryd.pid", fmt::format("{}\n", ::getpid())); !told) {
    log_.warning(env_.clock.now_wall(), "no orreryd.pid", {{"why", told.error().text()}});
  }
  log_.info(env_.clock.now_wall(), "serving",
            {{"address", file.address}, {"http", file.http}, {"cluster", file.name}});
  notify_service(options_.manager,
                 fmt::format("READY=1\nSTATUS={} at {}\n", file.name, file.address));
  return {};
}

Status Daemon::open_access() {
  Result<std::unique_ptr<TokenBook>> tokens = TokenBook::open(env_, options_.directory);
  if (!tokens) return forward_error(tokens);
  tokens_ = *std::move(tokens);
  Result<JoinBook> joins = JoinBook::open(env_, options_.directory);
  if (!joins) return forward_error(joins);
  joins_.emplace(*std::move(joins));
  Result<std::unique_ptr<AuditLog>> audit = AuditLog::open(env_, log_, options_.directory);
  if (!audit) return forward_error(audit);
  audit_ = *std::move(audit);
  return {};
}

Status Daemon::begin() {
  if (Status loaded = load_facts(); !loaded) return loaded;
  Result<SetupTexts> texts = setup_texts();
  if (!texts) return forward_error(texts);
  if (Status access = open_access(); !access) return access;
  Result<ControllerSettings> settings = this->settings();
  if (!settings) return forward_error(settings);
  Result<std::unique_ptr<Controller>> controller = Controller::open(
      env_, log_,
      {.directory = options_.directory,
       .setup = *std::move(texts),
       .facts = facts_,
       .settings = *std::move(settings),
       .archived_form =
           [](const Controller& of, JobId job) {
             return job_view(of, job, JobDetail::kAll).SerializeAsString();
           },
       .record = options_.record,
       .catalog = overlay_,
       .lost_jobs =
           options_.accept_lost_jobs ? ControlHost::LostJobs::kEnd : ControlHost::LostJobs::kAsk,
       .failed =
           [this](const Error& error) {
             log_.error(env_.clock.now_wall(), "the controller ends", {{"why", error.text()}});
             end(1);
           }});
  if (!controller) return forward_error(controller);
  controller_ = *std::move(controller);
  report_settings();
  take_over_files();
  complete_fleet();
  compare_fleet();
  if (Status watching = watch(); !watching) return watching;
  Status serving = serve();
  const bool as_before = options_.listen.empty() || options_.http.empty();
  if (!serving && as_before && !text("cluster.json").value_or("").empty()) {
    serving.error().message +=
        fmt::format(" (addresses from {}/cluster.json:1; --listen and --http override them)",
                    options_.directory);
  }
  return serving;
}

/// Issues a certificate for the addresses; for the machine's name where it listens everywhere.
Status Daemon::certify(const ClusterFile& addresses) {
  Result<TlsIdentity> authority = open_authority(env_, options_.directory);
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

Status Daemon::serve() {
  MethodTable methods = orrery_methods(*controller_, env_);
  add_access_methods(methods, *controller_, env_, {*tokens_, *joins_, authority_});
  add_store_methods(methods, *controller_);
  add_fleet_methods(methods, *controller_, [this](const std::string& now) { keep_fleet(now); });
  open_calls_.emplace(env_, *tokens_);
  methods_ = open_calls_->watched(counted(
      audited(authorized(methods, *controller_), *audit_, *controller_), controller_->counts()));
  const ClusterFile addresses = this->addresses();
  if (Status certified = certify(addresses); !certified) return certified;
  Result<std::unique_ptr<Server>> server = Server::start(
      env_, *controller_,
      {.address = addresses.address, .methods = &methods_, .tokens = tokens_.get(), .tls = &tls_});
  if (!server) return forward_error(server);
  server_ = *std::move(server);
  Result<std::unique_ptr<HttpServer>> http = HttpServer::start(
      env_, *controller_,
      {.address = addresses.http, .methods = &methods_, .tokens = tokens_.get(), .tls = &tls_});
  if (!http) return forward_error(http);
  http_ = *std::move(http);
  return announce();
}

int Daemon::run() {
  real_.run();
  log_.info(env_.clock.now_wall(), "ended", {{"jobs", controller_->state().jobs()}});
  return status_;
}

int serve(const Options& options) {
  const GrpcLibrary grpc;
  Result<std::unique_ptr<RealEnv>> real = RealEnv::create();
  if (!real) return complain(real.error());
  Daemon daemon(**real, options);
  if (Status begun = daemon.begin(); !begun) return complain(begun.error());
  return daemon.run();
}

}  // namespace
}  // namespace orrery

int main(int count, char** arguments) {
  CLI::App app(
      "The controller of a cluster keeps the log, places jobs, and serves clients and agents.\n"
      "`orrery up` starts a controller on this machine.",
      "orreryd");
  orrery::Options options;
  app.add_option("--dir", options.directory, "directory of the cluster, with fleet.yaml")
      ->required();
  app.add_option("--listen", options.listen,
                 "HOST:PORT for clients and agents; port 0 selects a free port (default: the "
                 "previous address, else 127.0.0.1:0)");
  app.add_option("--http", options.http,
                 "HOST:PORT for REST and events (default: the previous address, else 127.0.0.1:0)");
  app.add_option(
      "--name", options.names,
      "host name or address of the controller for cluster.json and the certificate (default: the "
      "listen address; if it is a wildcard, the addresses of this machine)");
  app.add_option("--record", options.record,
                 "directory for the inputs and events of each run, for `orrery replay`");
  app.add_flag("--accept-lost-jobs", options.accept_lost_jobs,
               "stop ranks of jobs that are missing from a partly lost log, and continue; without "
               "this option the controller waits for an operator. Applies to one start");
  app.set_version_flag("--version", std::string("orreryd ") + ORRERY_VERSION);
  orrery::hook_options(app);
  try {
    app.parse(count, arguments);
    orrery::drop_ignored_option(app);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (const char* manager = std::getenv("NOTIFY_SOCKET"); manager != nullptr) {
    options.manager = manager;
  }
  orrery::block_signals(orrery::DaemonSignals::kEnd);
  orrery::block_signals(orrery::DaemonSignals::kReload);
  return orrery::serve(options);
}

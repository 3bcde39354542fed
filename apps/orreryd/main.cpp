// orreryd: the controller of a cluster, as a process (executor/controller.hpp,
// api/grpc/server.hpp).
//
//   STATE/store      the log, or with --store what of a shared log is local to this machine
//   DIR/cluster.key  key of the secrets in a shared log (api/access/shared_files.hpp)
//   other files      see apps/orreryd/config_files.hpp and apps/orreryd/doors.hpp
// SIGTERM and SIGINT end it: what was acknowledged is durable, ranks run on. SIGHUP has it read
// its configuration files again; one that is wrong is named in its log and changes nothing. What
// resource managers refused is then asked for again. A standby reads controller.yaml and
// managers.yaml again when it takes the lead.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "api/access/shared_files.hpp"
#include "api/grpc/grpc_library.hpp"
#include "api/views.hpp"
#include "apps/option_hooks.hpp"
#include "apps/orreryd/config_files.hpp"
#include "apps/orreryd/doors.hpp"
#include "apps/orreryd/resource_managers.hpp"
#include "base/log.hpp"
#include "base/system/daemon_signals.hpp"
#include "base/system/real_env.hpp"
#include "base/text/terminal_text.hpp"
#include "executor/log/open_shared_log.hpp"
#include "executor/start/standby.hpp"
#include "perf/facts.hpp"

namespace orrery {
namespace {

struct Options {
  DoorOptions doors;
  std::string store;  ///< of the log; empty: DIR/store
  std::string record;
  bool accept_lost_jobs = false;
};

int complain(const Error& error) {
  fmt::print(stderr, "orreryd: {}\n", terminal_text(error.text(), Newlines::kKept));
  return error.kind == ErrorKind::kInput ? 2 : 1;
}

/// Whether it is "HOST:PORT" with a port that a program can listen at.
bool names_port(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == 0 || colon == std::string::npos) return false;
  constexpr int kPortMax = 65535;
  int port = 0;
  const char* const end = address.data() + address.size();
  const auto [at, failed] = std::from_chars(address.data() + colon + 1, end, port);
  return failed == std::errc() && at == end && port > 0 && port <= kPortMax;
}

class Daemon {
 public:
  Daemon(RealEnv& real, Options options)
      : real_(real),
        env_(real.env()),
        options_(std::move(options)),
        log_(sink_),
        files_(env_, log_, options_.doors.directory) {}

  [[nodiscard]] Status begin();
  /// Returns the exit status.
  [[nodiscard]] int run();

 private:
  [[nodiscard]] Status watch();
  /// Reads the files again and applies them.
  void reload();
  /// Reads managers.yaml again; returns whether it has other managers, which are given from now on.
  bool take_managers();
  [[nodiscard]] Status make_options();
  [[nodiscard]] Status check_alone() const;
  [[nodiscard]] Status begin_alone();
  [[nodiscard]] Status begin_standby();
  [[nodiscard]] Result<SharedLog> shared_log() const;
  [[nodiscard]] Standby::Events standby_events();
  void take_texts(const StoreTexts& texts);
  void take_lead(LiveStart start);
  void share_files();
  [[nodiscard]] Status lead(std::unique_ptr<Controller> controller, LogOwner owner);
  void take_over_managers();
  void warn_of_clock();
  void fail(const Error& error) {
    log_.error(env_.clock.now_wall(), "the controller ends", {{"why", error.text()}});
    end(1);
  }
  void end(int status) {
    status_ = status;
    real_.stop();
  }
  /// The environment of what belongs to the cluster: its files may be shared.
  [[nodiscard]] Env cluster_env() {
    Storage& storage = shared_files_ == nullptr ? env_.storage : *shared_files_;
    return {env_.clock, env_.timers, env_.entropy, storage, env_.transport, env_.inbox};
  }

  RealEnv& real_;
  Env env_;
  Options options_;
  DescriptorLogSink sink_;
  Log log_;
  ConfigFiles files_;
  /// What the files of the directory said when they were last read and found right.
  struct Given {
    Facts facts;
    ManagersSpec managers;
  } given_;
  std::unique_ptr<DescriptorWatch> ending_;
  std::unique_ptr<DescriptorWatch> reloading_;
  std::unique_ptr<SharedFiles> shared_files_;  ///< none: the log is not shared
  std::optional<ControllerOptions> controller_options_;
  std::unique_ptr<Standby> standby_;        ///< none: the controller leads, or is alone
  std::unique_ptr<Controller> controller_;  ///< none: another controller leads
  std::optional<Doors> doors_;
  int status_ = 0;
};

Status Daemon::watch() {
  auto ending = watch_signals(real_.loop(), DaemonSignals::kEnd, [this] { end(0); });
  if (!ending) return forward_error(ending);
  ending_ = *std::move(ending);
  auto reloading = watch_signals(real_.loop(), DaemonSignals::kReload, [this] {
    if (controller_ != nullptr) return reload();
    log_.warning(env_.clock.now_wall(), "a standby applies no files",
                 {{"why", "the leader applies its own, at SIGHUP"}});
  });
  if (!reloading) return forward_error(reloading);
  reloading_ = *std::move(reloading);
  return {};
}

void Daemon::reload() {
  files_.reload(*controller_);
  // What a manager refused may have been mended there.
  if (!take_managers()) return controller_->holds().ask_again();
  begin_resource_managers(real_, given_.managers, doors_->pilot_route(), *controller_);
}

bool Daemon::take_managers() {
  std::optional<ManagersSpec> managers = files_.changed_managers();
  if (!managers) return false;
  if (const Status may = controller_->holds().may_change_to(*managers); !may) {
    log_.error(env_.clock.now_wall(), "file refused",
               {{"file", "managers.yaml"}, {"why", may.error().message}});
    files_.forget_managers();
    return false;
  }
  given_.managers = *std::move(managers);
  return true;
}

Status Daemon::make_options() {
  Result<Facts> facts = files_.load_facts();
  if (!facts) return forward_error(facts);
  given_.facts = *std::move(facts);
  Result<SetupTexts> texts = files_.setup_texts();
  if (!texts) return forward_error(texts);
  Result<ControllerSettings> settings = files_.settings();
  if (!settings) return forward_error(settings);
  Result<ManagersSpec> managers = files_.managers();
  if (!managers) return forward_error(managers);
  given_.managers = *std::move(managers);
  controller_options_.emplace(ControllerOptions{
      .directory = options_.doors.state,
      .setup = *std::move(texts),
      .facts = given_.facts,
      .settings = *std::move(settings),
      .archived_form = [](const EndedJob& job) { return ended_job_view(job).SerializeAsString(); },
      .record = options_.record,
      .catalog = files_.overlay(),
      .lost_jobs =
          options_.accept_lost_jobs ? ControlHost::LostJobs::kEnd : ControlHost::LostJobs::kAsk,
      .failed = [this](const Error& error) { fail(error); }});
  return {};
}

Status Daemon::begin() {
  if (Status made = make_options(); !made) return made;
  if (!options_.store.empty()) return begin_standby();
  return begin_alone();
}

/// Error: the directory is one of a shared log, and a start without that log would begin another
/// cluster. A log that was copied here is a start of its own.
Status Daemon::check_alone() const {
  const std::string key = options_.doors.directory + "/cluster.key";
  std::error_code none;
  const bool begun = std::filesystem::exists(options_.doors.state + "/store/store.db", none);
  if (begun || !std::filesystem::exists(key, none)) return {};
  return input_error({key, 0, 0},
                     "the controllers of this directory share a log, and a start without it would "
                     "begin an empty cluster: give --store URL, or remove cluster.key if this "
                     "cluster never shared a log");
}

Status Daemon::begin_alone() {
  if (Status alone = check_alone(); !alone) return alone;
  doors_.emplace(env_, log_, options_.doors, files_);
  Result<std::unique_ptr<Controller>> controller =
      Controller::open(env_, log_, *controller_options_);
  if (!controller) return forward_error(controller);
  if (const Status may = (*controller)->holds().may_change_to(given_.managers); !may) {
    return input_error({options_.doors.directory + "/managers.yaml", 0, 0}, may.error().message);
  }
  return lead(*std::move(controller), LogOwner::kThisController);
}

Result<SharedLog> Daemon::shared_log() const {
  if (!names_port(options_.doors.listen)) {
    return input_error({},
                       "--store needs --listen HOST:PORT with a port of 1 to 65535: the "
                       "controllers of a shared log name their addresses to each other");
  }
  for (const std::string& peer : options_.doors.peers) {
    if (names_port(peer)) continue;
    return input_error({}, fmt::format("--peer: expected HOST:PORT, found \"{}\"", peer));
  }
  const ControllerSettings& settings = controller_options_->settings;
  return open_shared_log({.url = options_.store,
                          .directory = options_.doors.state + "/store",
                          .writer = doors_->name(),
                          .speaks_for = Duration::from_seconds(settings.speaks_for.value()),
                          .claims_after = Duration::from_seconds(settings.claims_after.value())});
}

Status Daemon::begin_standby() {
  Result<std::unique_ptr<SharedFiles>> files =
      SharedFiles::open(env_, options_.doors.directory, options_.doors.state);
  if (!files) return forward_error(files);
  shared_files_ = *std::move(files);
  doors_.emplace(cluster_env(), log_, options_.doors, files_);
  Result<SharedLog> shared = shared_log();
  if (!shared) return forward_error(shared);
  controller_options_->shared = *std::move(shared);
  Result<std::unique_ptr<Standby>> standby =
      Standby::begin(cluster_env(), log_, *controller_options_, standby_events());
  if (!standby) return forward_error(standby);
  standby_ = *std::move(standby);
  return watch();
}

Standby::Events Daemon::standby_events() {
  return {.texts = [this](const StoreTexts& texts) { take_texts(texts); },
          .leader = [this](const std::string& leader) { doors_->follow(leader); },
          .claimed =
              [this](Store& store, StoreTerm term) {
                shared_files_->lead([&store, term](const StoreTexts& texts) {
                  return store.put_texts(term, texts);
                });
              },
          .lead = [this](LiveStart start) { take_lead(std::move(start)); },
          .failed = [this](const Error& error) { fail(error); }};
}

/// The door of agents needs the cluster's authority, which is among the texts of the log.
void Daemon::take_texts(const StoreTexts& texts) {
  const Result<std::vector<std::string>> kept = shared_files_->take(texts);
  if (!kept) return fail(kept.error());
  for (const std::string& file : *kept) {
    log_.warning(env_.clock.now_wall(),
                 "the log has another authority: the file that it replaced is kept",
                 {{"file", file}});
  }
  if (doors_->stands_by() || !SharedFiles::has_authority(texts)) return;
  const auto progress = [this] {
    return standby_ == nullptr ? StandbyProgress() : standby_->progress();
  };
  if (Status open = doors_->stand_by(progress); !open) fail(open.error());
}

void Daemon::take_lead(LiveStart start) {
  if (std::optional<ControllerSettings> settings = files_.settings_now()) {
    controller_options_->settings = *std::move(settings);
  }
  auto controller =
      std::make_unique<Controller>(cluster_env(), log_, *controller_options_, std::move(start));
  shared_files_->lead(
      [this](const StoreTexts& texts) { return controller_->store().log().put_texts_now(texts); });
  env_.post([this] { standby_.reset(); });
  if (Status led = lead(std::move(controller), LogOwner::kShared); !led) return fail(led.error());
  env_.post([this] { share_files(); });
}

/// Without it standbys of a log that was copied from a directory lack the cluster's files; the next
/// leader tries again.
void Daemon::share_files() {
  const auto share = [this]() -> Status {
    auto log = controller_options_->shared->open_log();
    if (!log) return forward_error(log);
    StorageResult<StoreTexts> texts = (*log)->texts();
    if (!texts) return forward_error(texts);
    return shared_files_->put_missing(*texts);
  };
  if (Status shared = share(); !shared) {
    log_.error(env_.clock.now_wall(), "files of this directory are not in the shared log",
               {{"why", shared.error().text()}});
  }
}

Status Daemon::lead(std::unique_ptr<Controller> controller, LogOwner owner) {
  controller_ = std::move(controller);
  files_.begin(*controller_, given_.facts, owner);
  if (owner == LogOwner::kShared) take_over_managers();
  warn_of_clock();
  if (ending_ == nullptr) {
    if (Status watching = watch(); !watching) return watching;
  }
  const auto keep_fleet = [this](const std::string& fleet) {
    files_.keep_fleet(*controller_, fleet);
  };
  if (Status ready = doors_->make_ready(*controller_, keep_fleet); !ready) return ready;
  // Agents that wait at the doors are let in by their holds.
  begin_resource_managers(real_, given_.managers, doors_->pilot_route(), *controller_);
  return doors_->lead(*controller_);
}

/// A takeover must not fail because of a file: a wrong one is logged, and the managers that this
/// process read before stay in effect.
void Daemon::take_over_managers() {
  (void)take_managers();
  if (const Status may = controller_->holds().may_change_to(given_.managers); !may) {
    log_.error(env_.clock.now_wall(), "a resource manager is missing: agents on its nodes wait",
               {{"file", "managers.yaml"}, {"why", may.error().message}, {"then", "SIGHUP"}});
  }
}

/// Control's time never goes back, so the time of a leader whose clock was ahead stays in the log.
void Daemon::warn_of_clock() {
  constexpr Duration kAhead = Duration::seconds(5);
  const Instant wall = env_.clock.now_wall();
  const Duration ahead = controller_->now() - wall;
  if (ahead <= kAhead) return;
  log_.warning(wall, "the newest time in the log is ahead of this machine's clock",
               {{"seconds", ahead.count_seconds()},
                {"why", "the clock of this leader or of an earlier one is or was wrong"}});
}

int Daemon::run() {
  real_.run();
  log_.info(env_.clock.now_wall(), "ended",
            {{"jobs", controller_ == nullptr ? 0 : controller_->state().jobs()}});
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
  app.add_option("--dir", options.doors.directory, "directory of the cluster, with fleet.yaml")
      ->required();
  app.add_option("--state", options.doors.state,
                 "directory for what the controller itself writes: log, keys, tokens (default: the "
                 "one of --dir)");
  app.add_option("--listen", options.doors.listen,
                 "HOST:PORT for clients and agents; port 0 selects a free port (default: the "
                 "previous address, else 127.0.0.1:0; --store requires a port)");
  app.add_option("--http", options.doors.http,
                 "HOST:PORT for REST and events (default: the previous address, else 127.0.0.1:0)");
  app.add_option(
      "--name", options.doors.names,
      "host name or address of the controller for cluster.json and the certificate (default: the "
      "listen address; if it is a wildcard, the addresses of this machine)");
  app.add_option(
      "--store", options.store,
      "etcd://HOST:PORT[,HOST:PORT]../NAME: the log is shared with other controllers; one "
      "of them leads, the others stand by (default: DIR/store, not shared)");
  app.add_option("--peer", options.doors.peers,
                 "HOST:PORT of another controller of the shared log, for cluster.json; repeatable");
  app.add_option("--record", options.record,
                 "directory for the inputs and events of each run, for `orrery replay`");
  app.add_flag("--accept-lost-jobs", options.accept_lost_jobs,
               "stop ranks of jobs that are missing from a partly lost log, and continue; without "
               "this option the controller waits for an operator. Applies to one start");
  app.set_version_flag("--version", std::string("orreryd ") + ORRERY_VERSION);
  if (const auto status = orrery::parse_options(app, count, arguments)) return *status;
  if (options.doors.state.empty()) options.doors.state = options.doors.directory;
  if (const char* manager = std::getenv("NOTIFY_SOCKET"); manager != nullptr) {
    options.doors.manager = manager;
  }
  orrery::block_signals(orrery::DaemonSignals::kEnd);
  orrery::block_signals(orrery::DaemonSignals::kReload);
  return orrery::serve(options);
}

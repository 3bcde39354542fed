// How fast a log becomes durable, compared with a plain write and sync of the same bytes on the
// same disk, and how long a core takes to recover from a log of 100,000 jobs.
#include <cstdlib>
#include <filesystem>

#include "base/system/real_env.hpp"
#include "bench/bench_cluster.hpp"
#include "control/state/snapshot.hpp"
#include "store/group_commit.hpp"
#include "store/history.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace orrery {
namespace {

constexpr int kCommits = 300;
constexpr int kSubmitters = 64;
constexpr int kGrouped = 20'000;
constexpr std::size_t kJobs = 100'000;

template <class T>
T must_store(StorageResult<T> result) {
  if (!result) {
    fmt::print(stderr, "bench_store: {}\n", result.error().text());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// A directory on the disk of the build, gone at the end.
class BenchDirectory {
 public:
  BenchDirectory() {
    std::filesystem::create_directories("build/bench");
    std::string name = "build/bench/store-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::exit(1);
    path_ = name;
  }
  ~BenchDirectory() { std::filesystem::remove_all(path_); }
  BenchDirectory(const BenchDirectory&) = delete;
  BenchDirectory& operator=(const BenchDirectory&) = delete;
  [[nodiscard]] std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// One submission as a log has it.
std::string one_event() {
  HistoryWriter writer({.writer = "bench"});
  static_cast<void>(writer.take());
  JobSubmitted event{.job = JobId(7), .request_id = "7b0f2c1e-4d1d-4c7b-9b9a-0d5d9f6d2a11"};
  event.submission.request.name = "llama-70b-pretrain-17";
  event.submission.request.roles.emplace_back().options.emplace_back();
  const Event whole = std::move(event);
  writer.append(Instant::from_ns(1), {&whole, 1});
  return writer.take();
}

double plain_microseconds(const BenchDirectory& directory, const std::string& bytes) {
  RealStorage storage;
  const auto file = must_store(storage.open(directory.path("plain"), OpenMode::kCreate));
  return 1e6 / kCommits * seconds_of([&] {
           for (int i = 0; i < kCommits; ++i) {
             must_store(file->append(bytes));
             must_store(file->sync());
           }
         });
}

double single_microseconds(const BenchDirectory& directory, const std::string& bytes) {
  const auto store = must_store(SqliteStore::open(directory.path("single")));
  const StoreTerm term = must_store(store->claim());
  std::uint64_t number = 0;
  return 1e6 / kCommits * seconds_of([&] {
           for (int i = 0; i < kCommits; ++i) must_store(store->append(term, {++number, bytes}));
         });
}

/// 64 clients, each of which submits again when its last submission is durable.
double grouped_microseconds(const BenchDirectory& directory, const std::string& bytes) {
  const auto env = must(RealEnv::create());
  const auto store = must_store(SqliteStore::open(directory.path("grouped")));
  std::deque<std::uint64_t> outstanding;
  int durable = 0;
  std::unique_ptr<GroupCommit> commit;
  const auto submit = [&] { outstanding.push_back(commit->submit(bytes)); };
  commit = std::make_unique<GroupCommit>(
      CommitOptions{.store = *store,
                    .term = must_store(store->claim()),
                    .newest = 0,
                    .clock = env->env().clock,
                    .inbox = env->env().inbox,
                    .durable =
                        [&](std::uint64_t number) {
                          while (!outstanding.empty() && outstanding.front() <= number) {
                            outstanding.pop_front();
                            ++durable;
                            submit();
                          }
                        },
                    .failed = [](const StorageError&) { std::exit(1); }});
  const double seconds = seconds_of([&] {
    for (int i = 0; i < kSubmitters; ++i) submit();
    env->run_until([&] { return durable >= kGrouped; });
  });
  commit.reset();
  return seconds / durable * 1e6;
}

// --- Recovery -----------------------------------------------------------------------------------

/// A core that runs jobs of one node each through their whole lives, and its log.
class LoggedRun {
 public:
  LoggedRun(const ControlSetup& setup, SqliteStore& store)
      : setup_(setup), core_(setup), store_(store), term_(must_store(store.claim())) {}

  void run() {
    const std::uint32_t nodes = setup_.topology->node_count();
    while (core_.state().jobs() < kJobs) {
      for (std::uint32_t n = 0; n < nodes; ++n) send(SubmitJob{submission()});
      tick();
      std::vector<JobId> started;
      for (const RunningJob& run : core_.state().running()) started.push_back(run.id);
      for (const JobId id : started) send(RanksUp{id, 1, core_.state().job(id).epoch});
      now_ = now_ + Duration::minutes(50);
      // The jobs of the last wave are left running.
      if (core_.state().jobs() >= kJobs) break;
      for (const JobId id : started) {
        send(RanksEnded{id, 1, ExitKind::kDone, {}, {.done = 1}, true});
      }
      write();
    }
    write();
  }
  void put_snapshot() {
    must_store(store_.put_snapshot(term_, {newest_, writer_.snapshot(core_.state())}));
    must_store(drop_before_previous(store_, term_));
  }
  [[nodiscard]] std::uint64_t digest() const { return digest_of(core_.state()); }

 private:
  [[nodiscard]] Submission submission() const {
    Submission submission;
    JobRequest& request = submission.request;
    request.name = "job";
    request.tenant = TenantId(1);
    request.estimate = Duration::hours(1);
    RoleRequest& role = request.roles.emplace_back();
    role.devices_min = role.devices_max = 8;
    role.options.push_back({{.type = FleetTypeId(0), .devices = 8, .node_devices = 8}, 1, {}});
    return submission;
  }
  void send(InputKind what) {
    const Outcome& outcome = core_.handle({.at = now_, .what = std::move(what)});
    writer_.append(now_, outcome.events);
  }
  void tick() {
    now_ = std::max(now_, core_.wake());
    send(Tick{});
  }
  void write() { must_store(store_.append(term_, {++newest_, writer_.take()})); }

  const ControlSetup& setup_;
  Core core_;
  SqliteStore& store_;
  StoreTerm term_;
  HistoryWriter writer_{{.writer = "bench"}};
  std::uint64_t newest_ = 0;
  Instant now_;
};

void measure_recovery(const BenchDirectory& directory) {
  const Facts facts = must(Facts::load({}));
  const std::string fleet =
      must(read_file(ORRERY_SOURCE_DIR "/examples/fleets/superpod-h100.yaml", Document::kSizeMax));
  const Topology topology = topology_of(fleet, facts.catalog());
  const PlaceTree tree(topology);
  const TenantTree tenants = default_tenant_tree(topology);
  ControlSetup setup;
  setup.topology = &topology;
  setup.tree = &tree;
  setup.tenants = &tenants;
  setup.policy = must(policy_named("fifo"));
  const auto store = must_store(SqliteStore::open(directory.path("recovery")));
  LoggedRun run(setup, *store);
  run.run();
  const auto measure = [&](const std::string& name) {
    std::uint64_t events = 0;
    std::uint64_t digest = 0;
    const double seconds = seconds_of([&] {
      const auto recovered = recover_core(*store, setup);
      if (!recovered) std::exit(1);
      events = recovered->history.read.events;
      digest = digest_of(recovered->core->state());
    });
    if (digest != run.digest()) std::exit(1);
    print_figure({.bench = "store",
                  .name = fmt::format("recover {} jobs {} ({} events)", kJobs, name, events),
                  .value = seconds,
                  .unit = "s",
                  .target = 3});
  };
  measure("from the log alone");
  run.put_snapshot();
  measure("from a snapshot");
}

void measure_commits(const BenchDirectory& directory) {
  const std::string bytes = one_event();
  const std::string peer = "write + fsync of the same bytes, one by one";
  const double plain = plain_microseconds(directory, bytes);
  const auto figure = [&](const std::string& name, double microseconds) {
    print_figure({.bench = "store",
                  .name = name,
                  .value = microseconds,
                  .unit = "us",
                  .peer = peer,
                  .peer_value = plain});
  };
  figure("durable event, a batch each", single_microseconds(directory, bytes));
  figure(fmt::format("durable event, {} submitters grouped", kSubmitters),
         grouped_microseconds(directory, bytes));
}

}  // namespace
}  // namespace orrery

int main() {
  const orrery::BenchDirectory directory;
  orrery::measure_commits(directory);
  orrery::measure_recovery(directory);
}

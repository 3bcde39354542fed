// Flipped bytes and cut ends of every file of a cluster's directory: each case ends in a refusal
// that names the file and the place, or in the state and the history of the undamaged directory. A
// configuration file that still parses cannot be told from an edit; its changed line is reported.
//
// ORRERY_DAMAGE_CASES (60) and ORRERY_TEST_SEED (1) say how many cases and which; `scripts/soak
// damage` runs more. A failure prints its case, which runs alone with ORRERY_DAMAGE_CASE.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <thread>

#include "base/numbers/rng.hpp"
#include "control/state/snapshot.hpp"
#include "executor/lab_test.hpp"
#include "executor/live/live_setup.hpp"
#include "store/history.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "tests/end_to_end/cli.hpp"
#include "tests/end_to_end/test_seed.hpp"

namespace orrery {

std::string program() { return ORRERY_PROGRAM; }

namespace {

namespace fs = std::filesystem;

std::uint64_t asked(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Runs a controller until it serves or has ended.
class Daemon {
 public:
  Daemon(const std::string& directory, const std::string& errors) {
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 2, errors.c_str(), O_CREAT | O_WRONLY | O_TRUNC,
                                       0600);
    std::string program = ORRERY_DAEMON;
    std::string option = "--dir";
    std::string value = directory;
    char* arguments[] = {program.data(), option.data(), value.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
    const std::string serving = std::to_string(pid_) + "\n";
    while (slurp(directory + "/orreryd.pid") != serving) {
      if (::waitpid(pid_, &status_, WNOHANG) == pid_) {
        ended_ = true;
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  ~Daemon() {
    if (ended_) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  [[nodiscard]] bool serves() const { return !ended_; }
  /// Whether it ended by itself, with a status and not by a signal.
  [[nodiscard]] bool refused() const {
    return ended_ && WIFEXITED(status_) && WEXITSTATUS(status_) != 0;
  }

 private:
  pid_t pid_ = 0;
  int status_ = 0;
  bool ended_ = false;
};

/// The content of a log: its state and history, and whether all of it is good.
std::string picture_of(const std::string& directory) {
  const auto store = SqliteStore::open_to_read(directory + "/store");
  if (!store) return store.error().text();
  const HistoryResult<VerifiedHistory> verified = verify_history(**store);
  if (!verified) return verified.error().text();
  const Result<std::vector<FactOverlay>> overlays = read_fact_overlays(directory + "/catalog");
  if (!overlays) return overlays.error().text();
  const Result<Facts> facts = Facts::load(*overlays);
  if (!facts) return facts.error().text();
  auto setup = LiveSetup::make(*facts, *(*store)->texts(), {});
  if (!setup) return setup.error().text();
  const HistoryResult<RecoveredCore> core = recover_core(**store, (*setup)->control());
  if (!core) return core.error().text();
  return fmt::format("{} jobs, state {:016x}, history {:016x}", core->core->state().jobs(),
                     digest_of(core->core->state()), verified->history_hash);
}

struct DamageCase {
  std::string file;
  bool live = false;     ///< damage done while a controller served, which was killed then
  std::size_t line = 0;  ///< line of the first changed byte
  std::string what;      ///< for messages
};

class DamageCampaign : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    fs::create_directory(path("c"));
    std::ofstream(path("c/tenants.yaml")) << "apiVersion: orrery/v1\nkind: Tenants\nname: "
                                             "all\ntenants: [{name: default}, {name: other}]\n";
    std::ofstream(path("c/policy.yaml"))
        << "apiVersion: orrery/v1\nkind: Policy\nname: hardware-aware\n";
    std::ofstream(path("c/controller.yaml"))
        << "apiVersion: orrery/v1\nkind: Controller\ngrace: 20 s\n";
    fs::create_directories(path("c/nodes/node-0"));
    std::ofstream(path("c/nodes/node-0/agent.yaml"))
        << "apiVersion: orrery/v1\nkind: Agent\nprocesses_max: 4096\ntelemetry: 10 s\n";
    ASSERT_NO_FATAL_FAILURE(expect_done("up --nodes 1 --accelerators 2"));
    for (int i = 0; i < 4; ++i) expect_done("submit --wait -- true");
    expect_done("user add ada --role user --tenant other");
    expect_done("node token node-0");
    kill_controller();
    expect_done("down");
    fs::rename(path("c"), path("whole"));
    for (const std::size_t starts : {1U, 2U}) {
      copy_whole();
      if (starts == 2) const Daemon first(path("c"), path("errors"));
      const Daemon daemon(path("c"), path("errors"));
      ASSERT_TRUE(daemon.serves()) << slurp(path("errors"));
      expected_[starts - 1] = picture_of(path("c"));
      ASSERT_NE(expected_[starts - 1].find("4 jobs"), std::string::npos) << expected_[starts - 1];
    }
  }
  void expect_done(const std::string& arguments) const {
    const CliRun run = orrery("--dir " + path("c") + " " + arguments);
    ASSERT_EQ(run.code, 0) << arguments << ": " << run.err;
  }
  void kill_controller() const {
    const int pid = std::stoi(slurp(path("c/orreryd.pid")));
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    while (fs::exists("/proc/" + std::to_string(pid))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  /// Every process that names the cluster's directory.
  void kill_all() const {
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != name.npos) continue;
      if (slurp(entry.path() / "cmdline").find(path("c")) == std::string::npos) continue;
      ::kill(std::stoi(name), SIGKILL);
      while (!slurp(entry.path() / "cmdline").empty()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
  }
  void copy_whole() const {
    fs::remove_all(path("c"));
    fs::copy(path("whole"), path("c"),
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    // Uses a new port each time: another process may have taken the one before.
    const std::string addresses = slurp(path("whole/cluster.json"));
    std::ofstream(path("c/cluster.json"))
        << std::regex_replace(addresses, std::regex(R"((127\.0\.0\.1):\d+)"), "$1:0");
    fs::remove(path("c/orreryd.pid"));
    fs::remove(path("c/store/ballast"));
  }
  /// The agent of node-0 reports the changed line, or refuses the file with its place. `up` does
  /// not wait for it.
  [[nodiscard]] bool agent_tells(const DamageCase& done) const;
  [[nodiscard]] DamageCase damage(Rng& rng, const std::vector<std::string>& files) const;
  /// "refused", "equal", "reported"; anything else is what is wrong.
  [[nodiscard]] std::string outcome(const DamageCase& done) const;

  std::array<std::string, 2> expected_;  ///< the state after one start, and after two
};

/// What operators edit: each line that is not as it was applied last is reported.
bool is_edited_by_hand(const std::string& file) {
  const std::string name = fs::path(file).filename().string();
  return name == "tenants.yaml" || name == "policy.yaml" || name == "controller.yaml" ||
         name == "fleet.yaml" || name == "agent.yaml";
}

/// Whether a log reports a changed file.
bool reports(const std::string& log, const DamageCase& done) {
  const std::string name = fs::path(done.file).filename().string();
  return log.find(fmt::format("{}:{}: ", name, done.line)) != std::string::npos;
}

bool DamageCampaign::agent_tells(const DamageCase& done) const {
  for (int i = 0; i < 1'000; ++i) {
    const std::string log = slurp(path("c/nodes/node-0/agent.log"));
    if (reports(log, done)) return true;
    if (std::regex_search(log, std::regex(R"(orrery-agent: \S*agent\.yaml:\d+:\d+: )")))
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

DamageCase DamageCampaign::damage(Rng& rng, const std::vector<std::string>& files) const {
  const std::string& file = files[rng.below(files.size())];
  std::string bytes = slurp(path("c/" + file));
  const std::size_t at = bytes.empty() ? 0 : rng.below(bytes.size());
  std::string what;
  const auto lines = std::count(bytes.begin(), bytes.begin() + static_cast<long>(at), '\n');
  if (bytes.empty() || rng.below(3) == 0) {
    bytes.resize(at);
    what = fmt::format("{} cut at byte {}", file, at);
  } else {
    const std::size_t count = 1 + rng.below(8);
    for (std::size_t i = at; i < std::min(at + count, bytes.size()); ++i) {
      bytes[i] = static_cast<char>(bytes[i] ^ static_cast<char>(1 + rng.below(255)));
    }
    what = fmt::format("{} flipped at bytes {} to {}", file, at, at + count - 1);
  }
  std::ofstream(path("c/" + file), std::ios::binary | std::ios::trunc) << bytes;
  return {file, false, static_cast<std::size_t>(lines) + 1, what};
}

std::string DamageCampaign::outcome(const DamageCase& done) const {
  std::string now;
  {
    const Daemon daemon(path("c"), path("errors"));
    const std::string said = slurp(path("errors"));
    if (daemon.refused()) {
      const std::string name = fs::path(done.file).filename().string();
      const bool placed = std::regex_search(said, std::regex(R"((byte|bytes|batch|:)\s?\d+)"));
      if (said.find(name) != std::string::npos && placed) return "refused";
      return "it was refused without the file and the place: " + said;
    }
    if (!daemon.serves()) return "it crashed: " + said;
    const bool by_hand = is_edited_by_hand(done.file);
    if (by_hand && !reports(said, done)) {
      return fmt::format("line {} is not reported: {}", done.line, said);
    }
    // The log of the cluster keeps these two, and the edit with them.
    if (done.file == "tenants.yaml" || done.file == "policy.yaml") return "reported";
    now = picture_of(path("c"));
    if (now == expected_[done.live ? 1 : 0]) return by_hand ? "reported" : "equal";
  }
  return "it serves with " + now + ", expected " + expected_[done.live ? 1 : 0];
}

/// The files that a controller reads.
const std::vector<std::string> kControllerFiles{"store/store.db",
                                                "store/store.db",
                                                "store/store.db-wal",
                                                "store/store.db-wal",
                                                "store/sqlite/high_water",
                                                "fleet.yaml",
                                                "tenants.yaml",
                                                "policy.yaml",
                                                "controller.yaml",
                                                "controller.yaml.applied",
                                                "tokens",
                                                "joins",
                                                "steps.key",
                                                "tls/ca.pem",
                                                "tls/ca.key",
                                                "cluster.json"};

TEST_F(DamageCampaign, EachCaseIsRefusedWithItsPlaceOrLosesNothing) {
  const std::uint64_t seed = test_seed();
  const std::uint64_t cases = asked("ORRERY_DAMAGE_CASES", 60);
  const std::uint64_t only = asked("ORRERY_DAMAGE_CASE", cases);
  std::map<std::string, int> counts;
  for (std::uint64_t i = 0; i < cases; ++i) {
    if (only != cases && only != i) continue;
    Rng rng(seed * 1'000'003 + i);
    copy_whole();
    DamageCase done;
    if (rng.below(4) == 0) {
      const Daemon daemon(path("c"), path("errors"));
      done = damage(rng, kControllerFiles);
      done.live = true;
    } else {
      done = damage(rng, kControllerFiles);
    }
    const std::string outcome = this->outcome(done);
    const bool right = outcome == "refused" || outcome == "equal" || outcome == "reported";
    EXPECT_TRUE(right) << "ORRERY_TEST_SEED=" << seed << " ORRERY_DAMAGE_CASE=" << i << ": "
                       << done.what << (done.live ? " while it served: " : ": ") << outcome;
    ++counts[right ? outcome : "wrong"];
  }
  std::string text;
  for (const auto& [outcome, count] : counts) text += fmt::format(" {} {}", outcome, count);
  std::cout << "damage:" << text << ", seed " << seed << '\n';
  RecordProperty("outcomes", text);
}

/// The files that `orrery up` and agents read: all in the directory beside the controller's files.
TEST_F(DamageCampaign, FilesOfALocalClusterAreRefusedOrEveryJobIsAsItWas) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(path("whole/nodes"))) {
    if (entry.is_regular_file() && entry.file_size() > 0) {
      files.push_back(fs::relative(entry.path(), path("whole")).string());
    }
  }
  ASSERT_GT(files.size(), 4U);
  for (std::size_t i = files.size() / 2; i > 0; --i) files.emplace_back("local.json");
  for (int i = 0; i < 3; ++i) files.emplace_back("nodes/node-0/agent.yaml");
  const std::uint64_t seed = test_seed();
  const std::uint64_t cases = asked("ORRERY_DAMAGE_CASES", 60) / 6;
  constexpr std::string_view kFinished = "\"phase\": \"finished\"";
  std::map<std::string, int> counts;
  for (std::uint64_t i = 0; i < cases; ++i) {
    Rng rng(seed * 2'000'003 + i);
    copy_whole();
    // A third of the cases happen under agents that run and are killed then.
    const bool live = rng.below(3) == 0;
    if (live) ASSERT_NO_FATAL_FAILURE(expect_done("up"));
    const DamageCase done = damage(rng, files);
    if (live) kill_all();
    const std::string where = fmt::format("ORRERY_TEST_SEED={} case {}: {}{}", seed, i, done.what,
                                          live ? " while it ran" : "");
    const CliRun up = orrery("--dir " + path("c") + " up");
    if (up.code != 0) {
      EXPECT_NE(up.err.find(fs::path(done.file).filename().string()), std::string::npos)
          << where << ": " << up.err;
      fs::copy_file(path("whole/local.json"), path("c/local.json"),
                    fs::copy_options::overwrite_existing);
    } else {
      const CliRun jobs = orrery("--dir " + path("c") + " -o json jobs --all --state finished");
      std::size_t finished = 0;
      for (std::size_t at = 0; (at = jobs.out.find(kFinished, at)) != std::string::npos; ++at) {
        ++finished;
      }
      EXPECT_EQ(finished, 4U) << where << ": " << jobs.out << jobs.err;
      EXPECT_TRUE(!is_edited_by_hand(done.file) || agent_tells(done))
          << where << ": " << slurp(path("c/nodes/node-0/agent.log"));
    }
    EXPECT_EQ(orrery("--dir " + path("c") + " down").code, 0) << where;
    ++counts[up.code == 0 ? "equal" : "refused"];
  }
  std::cout << "damage of a local cluster: refused " << counts["refused"] << " equal "
            << counts["equal"] << ", seed " << seed << '\n';
}

}  // namespace
}  // namespace orrery

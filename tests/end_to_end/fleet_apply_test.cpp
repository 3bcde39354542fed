// The fleet of a running cluster is changed: nodes come and go under jobs, as an operator sees it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <set>

#include "base/system/real_clock.hpp"
#include "tests/end_to_end/local_cluster.hpp"

namespace orrery {

std::string program() { return ORRERY_PROGRAM; }

namespace {

constexpr Duration kSoon = Duration::seconds(10);

/// A fleet of node-0 to node-N, two in each rack; those of the first rack are there in each.
std::string fleet_of(int nodes) {
  std::string text = R"(apiVersion: orrery/v1
kind: Fleet
name: lab
sites:
- name: here
  halls:
  - name: hall
    pods:
    - name: pod
      racks:
      - {name: first, nodes: [{type: dgx-h100, count: 2, names: "node-[0-1]"}]}
)";
  if (nodes > 2) {
    text += fmt::format(
        "      - {{name: more, count: {}, nodes: [{{type: dgx-h100, count: 2, names: "
        "\"node-[2-{}]\"}}]}}\n",
        (nodes - 2) / 2, nodes - 1);
  }
  return text;
}

/// The nodes of a cluster, as its controller lists them.
std::set<std::string> names_in(const std::string& list) {
  std::set<std::string> names;
  const Json answer = Json::parse(list);
  for (const Json& node : answer["nodes"]) names.insert(node["name"]);
  return names;
}

class FleetApplyTest : public LocalClusterTest {
 protected:
  /// Each test begins with a fleet of its own.
  void bring_up() override {
    std::filesystem::create_directory(path("c"));
    two_ = write("two.yaml", fleet_of(2));
    four_ = write("four.yaml", fleet_of(4));
  }
  void begin(int nodes) const {
    (void)write("c/fleet.yaml", fleet_of(nodes));
    const CliRun up = live("up");
    ASSERT_EQ(up.code, 0) << up.err;
  }
  [[nodiscard]] Json job(const std::string& id) const {
    return Json::parse(live("-o json job " + id).out);
  }
  [[nodiscard]] std::set<std::string> nodes() const { return names_in(live("-o json nodes").out); }
  /// Whether it becomes true soon.
  [[nodiscard]] static bool soon(const std::function<bool()>& condition,
                                 Duration patience = kSoon) {
    const RealClock clock;
    const Instant until = clock.now_monotonic() + patience;
    do {
      if (condition()) return true;
    } while (clock.now_monotonic() < until);
    return false;
  }
  [[nodiscard]] bool runs(const std::string& id) const { return job(id)["phase"] == "running"; }
  /// Fills so many nodes, each with a job that ends when the file `go` is there.
  [[nodiscard]] std::vector<std::string> fill(int nodes) const {
    std::vector<std::string> ids;
    ids.reserve(static_cast<std::size_t>(nodes));
    for (int i = 0; i < nodes; ++i) {
      ids.push_back(submitted("-n 8 --per node -- sh -c 'until [ -e " + path("go") +
                              " ]; do sleep 0.05; done'"));
    }
    for (const std::string& id : ids) {
      EXPECT_TRUE(soon([&] { return runs(id); }, Duration::minutes(1))) << job(id);
    }
    return ids;
  }
  void expect_untouched(const std::vector<std::string>& ids) const {
    for (const std::string& id : ids) {
      const Json now = job(id);
      EXPECT_EQ(now["phase"], "running") << now;
      EXPECT_EQ(now["attempt"], 1) << now;
    }
  }
  [[nodiscard]] bool agent_runs(const std::string& node) const {
    return processes_here().find("/nodes/" + node) != std::string::npos;
  }
  /// The jobs that run on a node.
  [[nodiscard]] Json jobs_on(const std::string& node) const {
    return Json::parse(live("-o json node " + node).out)["jobs"];
  }

  std::string two_;
  std::string four_;
};

constexpr const char* kPrices = R"(apiVersion: orrery/v1
kind: Catalog
name: new-prices
accelerator_prices:
- {accelerator: nvidia-h100-sxm5-80g, ondemand_typical_usd_per_hour: 3.6e6}
)";

// Prices follow the fleet or come from --catalog; they bill running jobs, and stay.
TEST_F(FleetApplyTest, PricesChangeUnderARunningJob) {
  begin(2);
  const std::vector<std::string> ids = fill(1);
  const std::string priced = write("priced.yaml", fleet_of(2) + "---\n" + kPrices);
  const CliRun shown = live("fleet apply --dry-run " + priced);
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_NE(shown.out.find("3.6e6"), std::string::npos) << shown.out;
  std::filesystem::create_directory(path("prices"));
  (void)write("prices/prices.yaml", kPrices);
  const CliRun applied = live("--catalog " + path("prices") + " fleet apply " + two_);
  ASSERT_EQ(applied.code, 0) << applied.err;
  const std::string written = slurp(path("c/fleet.yaml"));
  EXPECT_NE(written.find("name: new-prices"), std::string::npos);
  const CliRun again = live("--catalog " + path("prices") + " fleet apply " + path("c/fleet.yaml"));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(slurp(path("c/fleet.yaml")), written);
  const std::string commented = write("commented.yaml", "  # mine\n---\n" + fleet_of(2));
  const CliRun cut = live("--catalog " + path("prices") + " fleet apply --dry-run " + commented);
  EXPECT_EQ(cut.code, 0) << cut.err;
  expect_untouched(ids);
  const auto dollars = [&] { return job(ids.front())["bill"]["cost_usd"].get<double>(); };
  EXPECT_TRUE(soon([&] { return dollars() > 8'000; })) << job(ids.front());
  kill_dead("c/orreryd.pid");
  ASSERT_EQ(live("up").code, 0);
  EXPECT_TRUE(soon([&] { return dollars() > 16'000; })) << job(ids.front());
  const std::string hire = orrery("fleet show " + path("c/fleet.yaml")).out;
  EXPECT_EQ(hire, orrery("--catalog " + path("prices") + " fleet show " + two_).out);

  (void)write("prices/prices.yaml", "apiVersion: orrery/v1\nkind: Catalog\nname: x\nnodes: 3\n");
  const CliRun wrong = live("--catalog " + path("prices") + " fleet apply " + two_);
  EXPECT_EQ(wrong.code, 2);
  std::filesystem::create_directory(path("prices/models"));
  (void)write("prices/models/m.yaml", "kind: Model\n");
  const CliRun model = live("--catalog " + path("prices") + " fleet apply " + two_);
  EXPECT_NE(model.err.find("models/m.yaml:1:1: a model cannot be added"), std::string::npos)
      << model.err;
}

TEST_F(FleetApplyTest, AWaitingJobStartsOnAnAddedNodeAndTheOthersRunOn) {
  begin(2);
  const std::vector<std::string> first = fill(2);
  const std::string waits = submitted("-n 8 --per node -- sleep 600");
  EXPECT_EQ(job(waits)["phase"], "queued");
  const CliRun dry = live("-o json fleet apply --dry-run " + four_);
  EXPECT_EQ(dry.code, 0) << dry.err;
  const Json would = Json::parse(dry.out);
  EXPECT_EQ(would["added"], Json({"node-2", "node-3"})) << would;
  EXPECT_EQ(would["retired"], Json::array()) << would;
  EXPECT_EQ(would["applied"], false) << would;
  ASSERT_EQ(would["changed"].size(), 1u) << would;
  EXPECT_EQ(nodes().size(), 2u);
  EXPECT_EQ(slurp(path("c/fleet.yaml")), fleet_of(2));

  const CliRun applied = live("fleet apply " + four_);
  ASSERT_EQ(applied.code, 0) << applied.err;
  EXPECT_NE(applied.out.find("2 nodes added: node-2, node-3\n"), std::string::npos) << applied.out;
  EXPECT_NE(applied.out.find("the fleet is changed\nstarted agents: node-2, node-3\n"),
            std::string::npos)
      << applied.out;
  EXPECT_TRUE(soon([&] { return runs(waits); })) << job(waits);
  const std::string node = job(waits)["parts"][0]["node"];
  EXPECT_TRUE(node == "node-2" || node == "node-3") << node;
  expect_untouched(first);
  EXPECT_EQ(slurp(path("c/fleet.yaml")), fleet_of(4));
  const CliRun again = live("fleet apply " + four_);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.out.find("the cluster has this fleet already"), std::string::npos) << again.out;

  EXPECT_EQ(live("down --keep-jobs").code, 0);
  ASSERT_EQ(live("up").code, 0);
  EXPECT_EQ(nodes().size(), 4u);
  expect_untouched(first);
}

TEST_F(FleetApplyTest, AControllerThatIsKilledRightAfterItHasTheNewFleet) {
  begin(2);
  const std::vector<std::string> first = fill(2);
  const std::string waits = submitted("-n 8 --per node -- sleep 600");
  ASSERT_EQ(live("fleet apply " + four_).code, 0);
  kill_dead("c/orreryd.pid");
  const CliRun up = live("up");
  ASSERT_EQ(up.code, 0) << up.err;
  EXPECT_TRUE(soon([&] { return runs(waits); })) << job(waits);
  EXPECT_EQ(nodes(), (std::set<std::string>{"node-0", "node-1", "node-2", "node-3"}));
  expect_untouched(first);
  EXPECT_EQ(slurp(path("c/orreryd.log")).find("has no effect before it is applied"),
            std::string::npos);
}

// The log has the new fleet, and the directory's files are those of before.
TEST_F(FleetApplyTest, AControllerThatIsKilledBeforeItWritesTheFleetCompletesItAtItsStart) {
  begin(2);
  const std::string pid = path("c/orreryd.pid");
  for (const std::string& next : {four_, two_}) {
    const std::string before = slurp(path("c/fleet.yaml"));
    ASSERT_EQ(slurp(path("c/fleet.yaml.applied")), before);
    const CliRun applied = live("fleet apply " + next);
    ASSERT_EQ(applied.code, 0) << applied.err;
    ASSERT_EQ(::kill(std::stoi(slurp(pid)), SIGKILL), 0);
    (void)write("c/fleet.yaml", before);
    (void)write("c/fleet.yaml.applied", before);
    const CliRun up = live("up");
    EXPECT_EQ(up.code, 0) << up.err;
    EXPECT_EQ(slurp(path("c/fleet.yaml")), slurp(next));
    EXPECT_EQ(agent_runs("node-3"), next == four_);
    EXPECT_EQ(live("submit --wait -n 16 --per node -- true").code, 0);
  }
  // An edited file is the operator's, and its missing nodes keep their agents.
  (void)write("c/fleet.yaml", fleet_of(4));
  ASSERT_EQ(live("fleet apply " + path("c/fleet.yaml")).code, 0);
  (void)write("c/fleet.yaml", fleet_of(2));
  ASSERT_EQ(::kill(std::stoi(slurp(pid)), SIGKILL), 0);
  const CliRun edited = live("up");
  EXPECT_EQ(edited.code, 0) << edited.err;
  EXPECT_EQ(slurp(path("c/fleet.yaml")), fleet_of(2));
  EXPECT_TRUE(agent_runs("node-3"));
}

TEST_F(FleetApplyTest, AWaitingJobThatTheNewFleetCanNeverRunIsToldSo) {
  begin(4);
  const std::vector<std::string> busy = fill(1);
  const std::string wide = submitted("-n 32 --per node -- true");
  EXPECT_TRUE(soon([&] { return job(wide)["waiting"] != ""; }));
  std::string fewer = fleet_of(4);
  const std::string more = "count: 1, nodes: [{type: dgx-h100, count: 2";
  ASSERT_NE(fewer.find(more), std::string::npos) << fewer;
  fewer.replace(fewer.find(more), more.size(), "count: 1, nodes: [{type: dgx-h100, count: 1");
  fewer.replace(fewer.find("node-[2-3]"), 10, jobs_on("node-2").empty() ? "node-3" : "node-2");
  const CliRun applied = live("fleet apply " + write("fewer.yaml", fewer));
  ASSERT_EQ(applied.code, 0) << applied.err;
  EXPECT_TRUE(soon([&] { return live("explain " + wide).out.find("never") != std::string::npos; }));
  const std::string explained = live("explain " + wide).out;
  EXPECT_NE(explained.find("accelerators: "), std::string::npos) << explained;
  EXPECT_NE(explained.find("likely      never on this fleet"), std::string::npos) << explained;
  const std::string shown = job(wide)["waiting"];
  EXPECT_TRUE(shown.starts_with("never: ")) << shown;
  const CliRun back = live("fleet apply " + four_);
  ASSERT_EQ(back.code, 0) << back.err;
  EXPECT_TRUE(soon([&] { return live("explain " + wide).out.find("never") == std::string::npos; }));
  (void)write("go", "");
  EXPECT_TRUE(soon([&] { return job(wide)["phase"] == "finished"; }, Duration::minutes(1)));
}

TEST_F(FleetApplyTest, ABusyNodeIsNotRetiredUnlessItMayBeEmptied) {
  begin(4);
  const std::vector<std::string> ids = fill(4);
  const std::string on_two = jobs_on("node-2")[0];
  const CliRun refused = live("fleet apply " + two_);
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.out.find("2 nodes retired: node-2, node-3\n"), std::string::npos)
      << refused.out;
  EXPECT_NE(refused.out.find("node-2 is busy: job " + on_two + "\n"), std::string::npos)
      << refused.out;
  for (const char* part : {"2 nodes of those retired are busy", "--drain starts no new work",
                           "--force evicts the jobs"}) {
    EXPECT_NE(refused.err.find(part), std::string::npos) << part << " in " << refused.err;
  }
  const CliRun dry = live("fleet apply --dry-run " + two_);
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_NE(dry.out.find("node-2 is busy: job " + on_two + "\n"), std::string::npos) << dry.out;
  EXPECT_NE(dry.out.find("nothing was changed"), std::string::npos) << dry.out;
  EXPECT_EQ(live("fleet apply --drain --force " + two_).code, 2);
  EXPECT_EQ(nodes().size(), 4u);
  EXPECT_EQ(slurp(path("c/fleet.yaml")), fleet_of(4));
  EXPECT_EQ(Json::parse(live("-o json node node-2").out)["drain"], false);
  expect_untouched(ids);

  EXPECT_EQ(std::system(("(sleep 3; touch " + path("go") + ") &").c_str()), 0);
  const CliRun drained = live("fleet apply --drain " + two_);
  EXPECT_EQ(drained.code, 0) << drained.err;
  EXPECT_NE(drained.err.find("waiting until node-2 is empty: job " + on_two), std::string::npos)
      << drained.err;
  EXPECT_NE(drained.out.find("ended agents: node-2, node-3\n"), std::string::npos) << drained.out;
  EXPECT_EQ(nodes(), (std::set<std::string>{"node-0", "node-1"}));
  EXPECT_EQ(job(on_two)["phase"], "finished");
}

TEST_F(FleetApplyTest, ForceEvictsWhatRunsOnARetiredNode) {
  begin(4);
  const std::vector<std::string> ids = fill(4);
  const std::string evicted = jobs_on("node-3")[0];
  const CliRun forced = live("-o json fleet apply --force " + two_);
  EXPECT_EQ(forced.code, 0) << forced.err;
  const Json change = Json::parse(forced.out);
  EXPECT_EQ(change["retired"], Json({"node-2", "node-3"})) << change;
  EXPECT_EQ(change["busy"], Json::array()) << change;
  EXPECT_EQ(change["applied"], true) << change;
  EXPECT_EQ(nodes().size(), 2u);
  EXPECT_FALSE(agent_runs("node-3"));
  EXPECT_EQ(job(evicted)["phase"], "queued") << job(evicted);
}

TEST_F(FleetApplyTest, AnIdleNodeThatIsRetiredLosesItsAgentAndMayComeBack) {
  begin(4);
  EXPECT_TRUE(agent_runs("node-3"));
  const std::string file = path("c/fleet.yaml");
  (void)write("c/fleet.yaml", fleet_of(2));
  ASSERT_EQ(::kill(std::stoi(slurp(path("c/orreryd.pid"))), SIGHUP), 0);
  const auto told = [&](const std::string& words) {
    return live("doctor --fleet").out.find(words) != std::string::npos;
  };
  EXPECT_TRUE(soon([&] { return told("it does not name all nodes of the cluster"); }))
      << "a file that is not applied is told";
  const CliRun retired = live("fleet apply " + file);
  EXPECT_EQ(retired.code, 0) << retired.err;
  EXPECT_FALSE(told("it does not name all nodes of the cluster"));
  EXPECT_FALSE(agent_runs("node-2"));
  EXPECT_FALSE(agent_runs("node-3"));
  EXPECT_TRUE(agent_runs("node-1"));
  EXPECT_EQ(nodes(), (std::set<std::string>{"node-0", "node-1"}));
  const std::string piped =
      program() + " --dir " + path("c") + " fleet apply - <" + four_ + " >" + path("out");
  EXPECT_EQ(std::system(piped.c_str()), 0);
  EXPECT_EQ(nodes().size(), 4u);
  EXPECT_EQ(live("submit --wait -n 32 --per node -- true").code, 0);
  const auto changes = [&] {
    const std::string log = slurp(path("c/orreryd.log"));
    std::size_t count = 0;
    for (std::size_t at = log.find("fleet changed by="); at != log.npos;
         at = log.find("fleet changed by=", at + 1)) {
      ++count;
    }
    return count;
  };
  EXPECT_EQ(changes(), 2u);
  EXPECT_EQ(live("fleet apply " + four_).code, 0);
  EXPECT_EQ(changes(), 2u) << "the same fleet is no change";
  const std::string wrong = write("wrong.yaml", "apiVersion: orrery/v1\nkind: Fleet\nnodes: 2\n");
  const CliRun refused = live("fleet apply " + wrong);
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("wrong.yaml:"), std::string::npos) << refused.err;
  std::string unknown = fleet_of(4);
  unknown.replace(unknown.find("type: "), 6, "type: no-");
  const CliRun of_catalog = live("fleet apply " + write("unknown.yaml", unknown));
  EXPECT_EQ(of_catalog.code, 2);
  EXPECT_TRUE(of_catalog.err.find("unknown.yaml:") != std::string::npos &&
              of_catalog.err.find("no-") != std::string::npos)
      << of_catalog.err;
  EXPECT_EQ(nodes().size(), 4u);
}

// Each of them starts and ends agents; the one that comes second waits for the first.
TEST_F(FleetApplyTest, OfTwoAtOnceTheLaterOneHoldsAndEveryNodeHasAnAgent) {
  begin(2);
  std::string other = fleet_of(4);
  const std::string names = "node-[2-3]";
  other.replace(other.find(names), names.size(), "late-[2-3]");
  const std::string late = write("late.yaml", other);
  const std::string apply = program() + " --dir " + path("c") + " fleet apply ";
  const std::string both = apply + four_ + " >" + path("one") + " 2>&1 & " + apply + late + " >" +
                           path("two") + " 2>&1; wait $!";
  for (int round = 0; round < 2; ++round) {
    (void)std::system(both.c_str());
    const std::string said = slurp(path("one")) + slurp(path("two"));
    EXPECT_EQ(said.find("is running for"), std::string::npos) << said;
    EXPECT_EQ(said.find("no node"), std::string::npos) << said;
    const std::set<std::string> all = nodes();
    EXPECT_EQ(all.size(), 4u) << said;
    for (const std::string& node : all) EXPECT_TRUE(agent_runs(node)) << node << ": " << said;
    EXPECT_EQ(live("submit --wait -n 32 --per node -- true").code, 0) << said;
  }
}

/// A controller that no `orrery up` started: its nodes have no agents.
class FleetApplyAloneTest : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    std::filesystem::create_directory(path("d"));
    (void)write("d/fleet.yaml", fleet_of(2));
    const std::string daemon =
        std::filesystem::path(program()).parent_path().string() + "/orreryd --dir " + path("d");
    ASSERT_EQ(
        std::system((daemon + " >" + path("log") + " 2>&1 & echo $! >" + path("pid")).c_str()), 0);
    pid_ = std::stoi(slurp(path("pid")));
    while (slurp(path("d/orreryd.pid")) != slurp(path("pid"))) {
      ASSERT_TRUE(std::filesystem::exists(fmt::format("/proc/{}", pid_))) << slurp(path("log"));
    }
  }
  void TearDown() override {
    EXPECT_EQ(::kill(pid_, SIGTERM), 0);
    while (std::filesystem::exists(fmt::format("/proc/{}", pid_))) {
    }
    Cli::TearDown();
  }
  [[nodiscard]] CliRun live(const std::string& arguments) const {
    return orrery("--dir " + path("d") + " " + arguments);
  }

  int pid_ = 0;
};

TEST_F(FleetApplyAloneTest, TakesTwoHundredNodesAtOnceAndSaysHowTheirAgentsJoin) {
  const std::string many = write("many.yaml", fleet_of(202));
  const RealClock clock;
  const Instant before = clock.now_monotonic();
  const CliRun applied = live("fleet apply " + many);
  EXPECT_LT(clock.now_monotonic() - before, kSoon);
  ASSERT_EQ(applied.code, 0) << applied.err;
  for (const char* part :
       {"200 nodes added: node-2, ", " and 180 more\n", "  orrery node token node-2 > node-2.token",
        "  orrery-agent --node node-21 --controller ", "  and so on for 180 nodes\n"}) {
    EXPECT_NE(applied.out.find(part), std::string::npos) << part << " in " << applied.out;
  }
  EXPECT_EQ(names_in(live("-o json nodes").out).size(), 202u);
  EXPECT_EQ(slurp(path("d/fleet.yaml")), fleet_of(202));
  EXPECT_EQ(live("node token node-201").code, 0);
  EXPECT_NE(slurp(path("d/audit.log")).find("\"ApplyFleet\""), std::string::npos);
}

}  // namespace
}  // namespace orrery

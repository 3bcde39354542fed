// A cluster of `orrery up` with three controllers over etcd, used without knowing which one leads.
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "tests/end_to_end/local_cluster.hpp"

namespace orrery {
namespace {

class SeveralControllers : public LocalClusterTest {
 protected:
  void SetUp() override {
    if (::access("/usr/bin/etcd", X_OK) != 0) {
      GTEST_SKIP() << "etcd is not installed: apt-get install etcd-server";
    }
    LocalClusterTest::SetUp();
  }
  void TearDown() override {
    if (!IsSkipped()) LocalClusterTest::TearDown();
  }
  /// OpenSSL keeps some bytes of a handshake that the end of a controller cuts short.
  [[nodiscard]] std::string environment() const override { return "ASAN_OPTIONS=detect_leaks=0 "; }
  void bring_up() override {
    const CliRun up = live("up --nodes 2 --accelerators 2 --controllers 3 --store etcd");
    ASSERT_EQ(up.code, 0) << up.err;
    EXPECT_NE(up.out.find("2 nodes with 3 controllers"), std::string::npos) << up.out;
  }
  /// The number of the controller that leads: that which cluster.json names.
  [[nodiscard]] int leader() const {
    const std::string address = Json::parse(slurp(path("c/cluster.json")))["address"];
    const Json listen = Json::parse(slurp(path("c/local.json")))["servers"]["listen"];
    for (std::size_t i = 0; i < listen.size(); ++i) {
      if (listen[i] == address) return static_cast<int>(i) + 1;
    }
    ADD_FAILURE() << "nobody serves at " << address;
    return 1;
  }
  [[nodiscard]] static std::string pid_file(int controller) {
    return "c/controllers/" + std::to_string(controller) + "/orreryd.pid";
  }
};

TEST_F(SeveralControllers, JobsAndUsersOutliveTheLeader) {
  const std::string longer = submitted("-- sh -c 'sleep 5; echo ended well'");
  const CliRun user = live("-o json user add ada --role viewer");
  ASSERT_EQ(user.code, 0) << user.err;
  // A file that was edited and not applied is reported by the next leader, and has no effect.
  (void)write("c/tenants.yaml", "apiVersion: orrery/v1\nkind: Tenants\ntenants: [{frob: 1}]\n");
  const int first = leader();
  kill_dead(pid_file(first));
  const std::string next = submitted("-- echo after");
  EXPECT_NE(leader(), first);
  EXPECT_EQ(live("wait " + next).code, 0);
  EXPECT_EQ(live("wait " + longer).code, 0);
  EXPECT_EQ(live("logs " + longer).out, "ended well\n");
  EXPECT_NE(live("user list").out.find("ada"), std::string::npos) << "added before the takeover";

  const CliRun up = live("up");
  EXPECT_EQ(up.code, 0) << up.err;
  EXPECT_NE(up.out.find("started orreryd-" + std::to_string(first) + ";"), std::string::npos)
      << up.out;
  const std::string seen = live("doctor --fleet").out;
  EXPECT_NE(seen.find(" leads: term "), std::string::npos) << seen;
  const std::size_t standby = seen.find(" stands by: ");
  ASSERT_NE(standby, std::string::npos) << seen;
  EXPECT_NE(seen.find(" stands by: ", standby + 1), std::string::npos) << seen;
  EXPECT_EQ(seen.find("does not answer"), std::string::npos) << seen;
  kill_dead(pid_file(leader()));
  EXPECT_EQ(live("wait " + submitted("-- true")).code, 0);
  const Json jobs = Json::parse(live("-o json jobs --all").out);
  EXPECT_EQ(jobs["jobs"].size(), 3u) << jobs;
}

TEST_F(SeveralControllers, AClusterKeepsTheControllersAndTheStoreThatItBeganWith) {
  const CliRun fewer = live("up --controllers 1");
  EXPECT_EQ(fewer.code, 1);
  EXPECT_NE(fewer.err.find("has 3 controllers"), std::string::npos) << fewer.err;
  const CliRun other = live("up --store etcd://127.0.0.1:1/other");
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("the log of the cluster"), std::string::npos) << other.err;
  EXPECT_EQ(live("up --controllers 3 --store etcd").code, 0);
  const CliRun down = live("down --keep-jobs");
  EXPECT_NE(down.out.find("3 members of etcd"), std::string::npos) << down.out;
  EXPECT_EQ(live("up").code, 0);
}

/// Commands that are refused before anything runs, and leave no cluster.
class RefusedControllers : public LocalClusterTest {
 protected:
  void bring_up() override {}
  void TearDown() override {
    EXPECT_EQ(live("down").code, 2) << "there is no cluster to stop";
    Cli::TearDown();
  }
};

class RefusedDaemon : public Cli {
 protected:
  /// Runs orreryd, which ends by itself where the options are refused; 124: it did not.
  [[nodiscard]] CliRun daemon(const std::string& options) const {
    (void)write("fleet.yaml", "apiVersion: orrery/v1\nkind: Fleet\nname: none\n");
    (void)write("cluster.key", std::string(64, 'a'));
    ::chmod(path("cluster.key").c_str(), 0600);
    const std::string daemon = program().substr(0, program().rfind('/')) + "/orreryd";
    const std::string command = "timeout 3 " + daemon + " --dir " + path("") + " " + options +
                                " 2>" + path("err") + " </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, "", slurp(path("err"))};
  }
};

TEST_F(RefusedControllers, SeveralNeedALogThatTheyShare) {
  const CliRun up = live("up --nodes 1 --controllers 2");
  EXPECT_EQ(up.code, 2);
  EXPECT_NE(up.err.find("2 controllers need a log that they share: add --store etcd"),
            std::string::npos)
      << up.err;
}

TEST_F(RefusedControllers, AStoreIsNamedByAUrl) {
  const CliRun up = live("up --nodes 1 --store etcd://nowhere");
  EXPECT_EQ(up.code, 2);
  EXPECT_NE(up.err.find("etcd://"), std::string::npos) << up.err;
}

TEST_F(RefusedDaemon, AControllerOfASharedLogBeginsNoClusterOfItsOwn) {
  const CliRun run = daemon("");
  EXPECT_EQ(run.code, 2) << run.err;
  EXPECT_NE(run.err.find("cluster.key: the controllers of this directory share a log"),
            std::string::npos)
      << run.err;
  EXPECT_NE(run.err.find("give --store URL, or remove cluster.key"), std::string::npos) << run.err;
  EXPECT_FALSE(std::filesystem::exists(path("store")));
  EXPECT_FALSE(std::filesystem::exists(path("cluster.json")));
}

TEST_F(RefusedDaemon, AStoreIsNamedByAUrl) {
  const CliRun daemon = this->daemon("--store elsewhere --listen 127.0.0.1:7");
  EXPECT_EQ(daemon.code, 2) << daemon.err;
}

TEST_F(RefusedDaemon, AddressesOfASharedLogHavePorts) {
  const std::string store = "--store etcd://127.0.0.1:1/x ";
  for (const char* listen : {"", "--listen 127.0.0.1", "--listen 127.0.0.1:0",
                             "--listen 127.0.0.1:99999", "--listen :7"}) {
    const CliRun run = daemon(store + listen);
    EXPECT_EQ(run.code, 2) << listen << run.err;
    EXPECT_NE(run.err.find("--store needs --listen HOST:PORT"), std::string::npos) << run.err;
  }
  const CliRun peer = daemon(store + "--listen 127.0.0.1:7 --peer there");
  EXPECT_EQ(peer.code, 2);
  EXPECT_NE(peer.err.find("--peer: expected HOST:PORT, found \"there\""), std::string::npos)
      << peer.err;
}

TEST_F(RefusedDaemon, WithoutItsStoreAControllerWaitsAndWritesIntoItsState) {
  const CliRun waits =
      daemon("--store etcd://127.0.0.1:1/x --listen 127.0.0.1:7 --state " + path("state"));
  EXPECT_EQ(waits.code, 124) << waits.err;
  EXPECT_NE(waits.err.find("waits for the store"), std::string::npos) << waits.err;
  EXPECT_TRUE(std::filesystem::exists(path("state/store/archive"))) << waits.err;
}

}  // namespace
}  // namespace orrery

// tests/slurm/slurm_loans_test.cpp - what a real Slurm has lent is billed to the second, its
// refusals are told, and managers.yaml changes without a restart of the controller.
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "tests/slurm/pilots_test.hpp"

namespace orrery {
namespace {

class SlurmLoansTest : public SlurmPilotTest {
 protected:
  /// What Slurm records of the pilots that have ended.
  struct Recorded {
    int pilots = 0;
    double node_s = 0;
  };

  [[nodiscard]] Recorded recorded() const {
    Recorded all;
    for (const std::string& line : squeue("pilot-", "--states=all --format=' %j %S %e %D'")) {
      std::istringstream fields(line);
      std::string name;
      std::string start;
      std::string end;
      int nodes = 0;
      EXPECT_TRUE(fields >> name >> start >> end >> nodes) << line;
      const auto from = Instant::parse(start + "Z");
      const auto to = Instant::parse(end + "Z");
      EXPECT_TRUE(from && to) << line;
      if (!from || !to) continue;
      ++all.pilots;
      all.node_s += (*to - *from).count_seconds() * nodes;
    }
    return all;
  }
  /// Returns what `orrery usage` has of the manager, once that many holds have ended and none runs.
  [[nodiscard]] Json lent(int holds) const {
    Json last;
    EXPECT_TRUE(slurm_->await([&] {
      const Json usage = Json::parse(live("-o json usage").out);
      last = usage.at("lent").at(0);
      return number(last, "holds") == holds && number(last, "running") == 0;
    })) << last;
    return last;
  }
  /// The JSON of messages has whole numbers of 64 bits as texts, and leaves out zeros.
  [[nodiscard]] static double number(const Json& json, const std::string& key) {
    if (!json.contains(key)) return 0;
    const Json& value = json.at(key);
    return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>();
  }
  void reload(const std::string& managers) const {
    (void)write("c/managers.yaml", managers);
    EXPECT_EQ(::kill(controller(), SIGHUP), 0);
  }
  void reserve() const {
    const SlurmCluster::Run run = slurm_->run(
        "scontrol create reservation reservationname=r1 starttime=now duration=60 users=root "
        "nodes=n[1-3]");
    EXPECT_EQ(run.status, 0) << run.output;
  }
  [[nodiscard]] bool holds_say(const std::string& text) const {
    return slurm_->await([&] { return live("holds").out.find(text) != std::string::npos; });
  }
  [[nodiscard]] bool is_quiet() const {
    return slurm_->await([&] { return slurm_->run("squeue -h").output.empty(); });
  }
};

TEST_F(SlurmLoansTest, TheBillIsWhatSlurmRecordsToTheSecond) {
  const std::string large = submit("--accelerators 16 -- sleep 2");
  const std::string small = submit("--accelerators 4 -- sleep 1");
  EXPECT_TRUE(finishes(large) && finishes(small)) << live("holds").out;
  ASSERT_TRUE(slurm_->await([&] { return holds().empty(); })) << holds();
  const std::string last = submit("--accelerators 8 -- sleep 1");
  EXPECT_TRUE(finishes(last)) << live("explain " + last).out;
  ASSERT_TRUE(is_quiet()) << slurm_->run("squeue").output;
  const Recorded slurm = recorded();
  EXPECT_GE(slurm.pilots, 3);
  const Json bill = lent(slurm.pilots);
  EXPECT_EQ(bill.at("manager"), "hpc");
  EXPECT_EQ(number(bill, "node_s"), slurm.node_s) << bill;
  EXPECT_GT(number(bill, "used_node_s"), 0) << bill;
  EXPECT_LE(number(bill, "used_node_s"), slurm.node_s) << bill;
  EXPECT_NE(live("usage").out.find(fmt::format("hpc lent {:.3f} node-hours in {} holds; jobs used ",
                                               slurm.node_s / 3600, slurm.pilots)),
            std::string::npos)
      << live("usage").out;
  kill_controller_and_restart();
  EXPECT_EQ(lent(slurm.pilots), bill) << "Slurm lists the pilots still, and none is billed twice";
}

TEST_F(SlurmLoansTest, AReservationThatVanishesIsToldAndAskedForAgain) {
  reserve();
  reload(managers(Lent{.slurm = ", reservation: r1"}));
  const std::string first = submit("--accelerators 8 -- true");
  EXPECT_TRUE(finishes(first)) << live("explain " + first).out;
  EXPECT_EQ(squeue("pilot-", "--states=all --format=' %j %v' | grep r1$").size(), 1u);
  ASSERT_TRUE(is_quiet()) << slurm_->run("squeue").output;
  ASSERT_TRUE(
      slurm_->await([&] { return slurm_->run("scontrol delete reservation=r1").status == 0; }));
  const std::string second = submit("--accelerators 8 -- sh -c '" + until("go") + "'");
  EXPECT_TRUE(holds_say("refused (never: ")) << live("holds").out;
  EXPECT_NE(live("holds").out.find("reservation"), std::string::npos) << live("holds").out;
  EXPECT_NE(live("explain " + second).out.find("hpc refused a hold: never: "), std::string::npos)
      << live("explain " + second).out;
  EXPECT_EQ(slurm_->run("squeue -h").output, "");
  reserve();
  // The file is as before.
  EXPECT_EQ(::kill(controller(), SIGHUP), 0);
  EXPECT_TRUE(reaches(second, "running")) << live("holds").out;
  EXPECT_EQ(live("holds").out.find("refused"), std::string::npos) << live("holds").out;
  (void)write("go", "");
  EXPECT_TRUE(finishes(second)) << live("explain " + second).out;
  EXPECT_EQ(slurp(path("doubled")), "");
  EXPECT_EQ(shown(second).at("attempt"), 1);
  EXPECT_EQ(squeue("pilot-", "--states=all --format=' %j'").size(), 2u);
}

// It stays in Slurm's queue for good, even when there is a reservation of that name again.
TEST_F(SlurmLoansTest, APilotWhoseReservationEndsInTheQueueIsGivenBack) {
  reserve();
  const std::string other = sbatch("--reservation=r1 --nodes=3 --job-name=others");
  ASSERT_TRUE(runs_in_slurm(other));
  reload(managers(Lent{.slurm = ", reservation: r1"}));
  const std::string job = submit("--accelerators 8 -- true");
  ASSERT_TRUE(slurm_->await([&] { return !squeue("pilot-", "--format=' %j'").empty(); }))
      << live("explain " + job).out;
  EXPECT_EQ(slurm_->run("scontrol update reservationname=r1 endtime=now").status, 0);
  ASSERT_TRUE(slurm_->await([&] {
    return slurm_->run("scontrol show reservation r1").output.find("State=INACTIVE") !=
           std::string::npos;
  }));
  (void)slurm_->run("scancel " + other);
  EXPECT_TRUE(holds_say("refused (RESV_DEL_HOLD: Reservation r1 was deleted)"))
      << live("holds").out;
  ASSERT_TRUE(is_quiet()) << slurm_->run("squeue").output;
  reserve();
  EXPECT_EQ(::kill(controller(), SIGHUP), 0);
  EXPECT_TRUE(finishes(job)) << live("explain " + job).out;
  EXPECT_EQ(squeue("pilot-", "--states=all --format=' %j'").size(), 2u);
}

TEST_F(SlurmLoansTest, ManagersYamlChangesAtSighupAndAWrongOneHasNoEffect) {
  reload(managers(Lent{.held = "pilots: {idle: 3 s, keep: 1}"}));
  const auto lent = [&](std::size_t pilots) {
    return slurm_->await([&] {
      const Json all = holds();
      std::size_t granted = 0;
      for (const Json& hold : all) granted += hold.at("agents") == 1 ? 1 : 0;
      return all.size() == pilots && granted == pilots;
    });
  };
  ASSERT_TRUE(lent(1)) << holds();
  const Json kept = holds().at(0);
  const std::string job = submit("--accelerators 8 -- sh -c '" + until("go") + "'");
  ASSERT_TRUE(reaches(job, "running")) << live("explain " + job).out;
  reload(managers(Lent{.held = "pilots: {idle: 3 s, keep: 4}"}));
  ASSERT_TRUE(slurm_->await(
      [&] { return slurp(path("c/orreryd.log")).find("file refused") != std::string::npos; }));
  const std::string log = slurp(path("c/orreryd.log"));
  EXPECT_NE(log.find("managers.yaml:7:31"), std::string::npos);
  EXPECT_NE(log.find("pilots.keep: expected at most 3, found 4"), std::string::npos);
  EXPECT_EQ(holds().size(), 1u) << "the file that was right is still in effect";
  reload(managers(Lent{.held = "pilots: {idle: 3 s, keep: 2}"}));
  ASSERT_TRUE(lent(2)) << holds();
  EXPECT_EQ(holds().at(0).at("manager_id"), kept.at("manager_id"));
  EXPECT_EQ(holds().at(0).at("id"), kept.at("id"));
  (void)write("go", "");
  EXPECT_TRUE(finishes(job)) << live("explain " + job).out;
  EXPECT_EQ(shown(job).at("attempt"), 1);
  EXPECT_EQ(slurp(path("doubled")), "");
}

}  // namespace
}  // namespace orrery

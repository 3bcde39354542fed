// executor/slurm/slurm_manager_test.cpp - orders as runs of Slurm's programs, which are shell
// scripts here; tests/slurm has the real ones.
#include "executor/slurm/slurm_manager.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <set>
#include <sstream>

#include "store/backend_test.hpp"

namespace orrery {
namespace {

constexpr const char* kNodes = "echo 'NodeName=n1 State=IDLE'; echo 'NodeName=n2 State=DOWN*'";

/// squeue that prints one hold and two jobs of others, with the separator that it is asked for,
/// whether it is asked for all users or not.
constexpr const char* kJobs =
    "for each; do format=${each#--format=}; done\n"
    "separator=${format%%[%]*}\n"
    "job() {\n"
    "  for field; do printf '%s%s' \"$separator\" \"$field\"; done\n"
    "  printf '%s.\\n' \"$separator\"\n"
    "}\n"
    "hold='orr-00000000000000ab-pilot-3-1 orrery:00000000000000ab:pilot-3-1'\n"
    "job 17 $hold RUNNING None n3 5:00 N/A N/A $(($(id -u) + 1)) ann\n"
    "job 18 $hold RUNNING None n1 5:00 2026-11-29T01:54:05 N/A $(id -u) orrery\n"
    "job 19_2 train none RUNNING None 'n[2-3]' UNLIMITED N/A N/A $(($(id -u) + 1)) ann";

class SlurmManagerTest : public testing::Test {
 protected:
  SlurmManagerTest() {
    setup_.cluster = 0xab;
    setup_.programs = scratch_.path("bin");
    setup_.agent = {.directory = "/var/lib/pilots",
                    .controllers = {"c1:7000"},
                    .authority = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"};
    std::filesystem::create_directory(setup_.programs);
    program("sbatch", "echo 17");
    program("squeue", "");
    program("scontrol", kNodes);
    program("scancel", "");
  }

  /// Makes a program that writes its name and words to `runs`, then does as the script says.
  void program(const std::string& name, const std::string& script) const {
    const std::string path = setup_.programs + "/" + name;
    std::ofstream(path) << "#!/bin/sh\necho \"${0##*/} $*\" >> " << scratch_.path("runs") << "\n"
                        << script << "\n";
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  }
  SlurmManager& manager() {
    if (!manager_) {
      manager_ = std::make_unique<SlurmManager>(
          *real_, setup_, [this](ManagerReport report) { reports_.push_back(std::move(report)); });
    }
    return *manager_;
  }
  template <class What>
  void order(What what) {
    manager().carry_out({.manager = 5, .what = std::move(what)});
  }
  [[nodiscard]] static EnsureHold hold(std::uint64_t id) {
    return {.key = {.id = id, .epoch = 3},
            .nodes = 2,
            .time = Duration::seconds(61),
            .join_token = "token"};
  }
  void await(std::size_t reports) {
    real_->run_until([&] { return reports_.size() >= reports; });
  }
  HoldAnswer answer() {
    order(hold(1));
    EXPECT_TRUE(reports_.empty()) << "not inside the call";
    await(1);
    EXPECT_EQ(reports_[0].manager, 5u);
    return std::get<HoldAnswer>(std::exchange(reports_, {})[0].what);
  }
  ManagerListing list(ListHolds what = {}) {
    what.asked = Instant::from_ns(9);
    order(what);
    await(1);
    ManagerListing listing = std::get<ManagerListing>(std::exchange(reports_, {})[0].what);
    EXPECT_EQ(listing.asked, Instant::from_ns(9));
    EXPECT_EQ(listing.complete, listing.trouble.empty());
    return listing;
  }
  /// Returns the first words of the programs that ran so far, in order.
  [[nodiscard]] std::string runs() const {
    std::ifstream file(scratch_.path("runs"));
    std::string names;
    for (std::string line; std::getline(file, line);) {
      names.append(line.substr(0, line.find(' '))).append(" ");
    }
    return names;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(scratch_.path(name)).rdbuf();
    return text.str();
  }

  TestDirectory scratch_;
  std::unique_ptr<RealEnv> real_ = *RealEnv::create();
  SlurmSetup setup_;
  std::vector<ManagerReport> reports_;
  std::unique_ptr<SlurmManager> manager_;
};

TEST_F(SlurmManagerTest, AHoldIsAJobWithTheScriptOfAPilot) {
  setup_.partition = "gpu";
  setup_.account = "ml";
  setup_.qos = "high";
  setup_.reservation = "orrery";
  setup_.sbatch_options = {"--gres=gpu:8", "--requeue"};
  setup_.log_file = "/var/log/pilot-%j";
  program("sbatch", "cat > " + scratch_.path("script") + "; echo '17;far'");
  const HoldAnswer answer = this->answer();
  EXPECT_EQ(answer.key, hold(1).key);
  EXPECT_EQ(answer.id, "17");
  EXPECT_EQ(answer.refused, std::nullopt);
  EXPECT_EQ(read("runs"),
            "sbatch --gres=gpu:8 --requeue --partition=gpu --account=ml --qos=high "
            "--reservation=orrery --job-name=orr-00000000000000ab-pilot-3-1 "
            "--comment=orrery:00000000000000ab:pilot-3-1 --nodes=2 --time=2 "
            "--output=/var/log/pilot-%j --dependency=singleton --exclusive --no-kill --no-requeue "
            "--chdir=/ --parsable\n");
  EXPECT_EQ(read("script"), *pilot_script(setup_.agent, hold(1)));
}

TEST_F(SlurmManagerTest, SlurmsProgramsGetLittleOfTheEnvironment) {
  setup_.slurm_conf = "/etc/other/slurm.conf";
  program("squeue", "env > " + scratch_.path("env"));
  EXPECT_TRUE(list().complete);
  std::istringstream lines(read("env"));
  const std::set<std::string> known = {"PATH", "HOME",       "USER",   "LOGNAME", "LD_LIBRARY_PATH",
                                       "TZ",   "SLURM_CONF", "LC_ALL", "PWD",     "SHLVL",
                                       "_",    "OLDPWD"};
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(known.contains(line.substr(0, line.find('=')))) << line;
  }
  EXPECT_NE(read("env").find("SLURM_CONF=/etc/other/slurm.conf\n"), std::string::npos);
  EXPECT_NE(read("env").find("TZ=UTC0\n"), std::string::npos);
}

TEST_F(SlurmManagerTest, ARefusalIsAnAnswerWithSlurmsWords) {
  program("sbatch", "echo 'sbatch: error: Invalid partition name specified' >&2; exit 1");
  const HoldAnswer answer = this->answer();
  EXPECT_EQ(answer.id, "");
  EXPECT_EQ(answer.refused, HoldRefusal::kNever);
  EXPECT_EQ(answer.text, "Invalid partition name specified");
}

TEST_F(SlurmManagerTest, APilotThatCannotBeStartedIsRefusedWithoutSlurm) {
  setup_.agent.controllers.clear();
  const HoldAnswer answer = this->answer();
  EXPECT_EQ(answer.refused, HoldRefusal::kNever);
  EXPECT_EQ(answer.text, "a pilot needs the address of a controller");
  EXPECT_EQ(runs(), "");
}

TEST_F(SlurmManagerTest, WithoutAnAnswerItIsOpenWhetherThereIsAJob) {
  const auto open = [&](const std::string& script, const std::string& text) {
    program("sbatch", script);
    const HoldAnswer answer = this->answer();
    EXPECT_EQ(answer.id, "") << script;
    EXPECT_EQ(answer.refused, std::nullopt) << script;
    EXPECT_EQ(answer.text, text) << script;
  };
  setup_.timeout = Duration::milliseconds(500);
  open("echo 17; kill -9 $$", "sbatch: signal 9");
  open("echo 17; exec sleep 1000", "sbatch: not done after 500 ms");
  open("exit 1", "sbatch: exit status 1");
  open("echo 'Socket timed out on send/recv operation' >&2; exit 1",
       "Socket timed out on send/recv operation");
  open("echo Submitted batch job 17",
       "sbatch printed \"Submitted batch job 17?\", not the id of "
       "a job");
}

TEST_F(SlurmManagerTest, WithoutSbatchThereIsNoJob) {
  setup_.programs = scratch_.path("nowhere");
  const HoldAnswer answer = this->answer();
  EXPECT_EQ(answer.refused, HoldRefusal::kBusy);
  EXPECT_NE(answer.text.find("/nowhere/sbatch: No such file"), std::string::npos) << answer.text;
}

TEST_F(SlurmManagerTest, AListHasHoldsAndNodes) {
  program("squeue", kJobs);
  const ManagerListing listing = list();
  ASSERT_TRUE(listing.complete) << listing.trouble;
  ASSERT_EQ(listing.holds.size(), 1u);
  EXPECT_EQ(listing.holds[0].key, hold(1).key);
  EXPECT_EQ(listing.holds[0].id, "18");
  EXPECT_EQ(listing.holds[0].nodes, std::vector<std::string>{"n1"});
  EXPECT_EQ(listing.holds[0].started, *Instant::parse("2026-11-29T01:54:05Z"));
  EXPECT_FALSE(listing.foreign) << "not asked for";
  ASSERT_EQ(listing.nodes.size(), 2u);
  EXPECT_TRUE(listing.nodes[1].out_of_service);
  EXPECT_TRUE(read("runs").starts_with("squeue --noheader --all --states=all --user="));
  EXPECT_NE(read("runs").find("\nscontrol --all --oneliner show node\n"), std::string::npos);
}

TEST_F(SlurmManagerTest, TheWorkOfOthersIsListedByTheSameRunOfSqueueWhenItIsAskedFor) {
  program("squeue", kJobs);
  const ManagerListing listing = list({.foreign = true});
  ASSERT_TRUE(listing.complete) << listing.trouble;
  ASSERT_EQ(listing.holds.size(), 1u);
  EXPECT_EQ(listing.holds[0].id, "18") << "not the job of another user with the name of the hold";
  ASSERT_TRUE(listing.foreign);
  ASSERT_EQ(listing.foreign->size(), 2u);
  EXPECT_EQ(listing.foreign->at(0).id, "17");
  EXPECT_EQ(listing.foreign->at(0).left, Duration::minutes(5));
  EXPECT_EQ(listing.foreign->at(1).id, "19_2");
  EXPECT_EQ(listing.foreign->at(1).user, "ann");
  EXPECT_EQ(listing.foreign->at(1).nodes, (std::vector<std::string>{"n2", "n3"}));
  EXPECT_EQ(listing.foreign->at(1).left, std::nullopt);
  EXPECT_EQ(runs(), "squeue scontrol ");
  EXPECT_TRUE(read("runs").starts_with("squeue --noheader --all --states=all --format="));
  program("squeue", "");
  const ManagerListing none = list({.foreign = true});
  EXPECT_TRUE(none.foreign && none.foreign->empty()) << "a Slurm that shows only own jobs";
}

TEST_F(SlurmManagerTest, AWishForTheWorkOfOthersIsNotLostWhenListsAreJoined) {
  program("squeue", kJobs);
  const ListHolds with{.foreign = true};
  const ListHolds without{.asked = Instant::from_ns(1)};
  // Orders three lists, of which the last two are joined; returns the answer to those.
  const auto joined = [&](const ListHolds& second, const ListHolds& third) {
    order(without);
    order(second);
    order(third);
    await(2);
    const std::vector<ManagerReport> reports = std::exchange(reports_, {});
    EXPECT_FALSE(std::get<ManagerListing>(reports[0].what).foreign) << "it was in progress";
    return std::get<ManagerListing>(reports[1].what);
  };
  EXPECT_TRUE(joined(with, without).foreign);
  EXPECT_EQ(joined(with, without).asked, without.asked) << "the newer one";
  EXPECT_TRUE(joined(without, with).foreign);
  EXPECT_FALSE(joined(without, without).foreign) << "later lists are as they are ordered";
}

TEST_F(SlurmManagerTest, AListThatFailsOrIsHalfIsNotComplete) {
  setup_.timeout = Duration::milliseconds(500);
  const auto trouble = [&] { return list().trouble; };
  program("squeue", std::string(kJobs) + "; echo 'slurm_load_jobs error' >&2; exit 1");
  EXPECT_EQ(trouble(), "squeue: exit status 1: slurm_load_jobs error");
  EXPECT_EQ(runs(), "squeue ") << "nodes alone are no list";
  program("squeue", std::string(kJobs) + "; printf '%s18' $separator");
  EXPECT_NE(trouble().find("not a whole job"), std::string::npos);
  program("squeue", "exec sleep 1000");
  EXPECT_EQ(trouble(), "squeue: not done after 500 ms");
  EXPECT_FALSE(list({.foreign = true}).foreign) << "it is not known";
  program("squeue", kJobs);
  program("scontrol", std::string(kNodes) + "; kill -9 $$");
  const ManagerListing half = list();
  EXPECT_EQ(half.trouble, "scontrol: signal 9");
  EXPECT_EQ(half.holds.size(), 1u) << "it was seen";
  EXPECT_EQ(list({.foreign = true}).foreign->size(), 2u) << "likewise";
  EXPECT_TRUE(half.nodes.empty());
  program("scontrol", "printf 'NodeName=n1 State=ID'");
  EXPECT_NE(trouble().find("not a whole list"), std::string::npos);
}

TEST_F(SlurmManagerTest, AReleaseNamesTheHoldAndItsJob) {
  order(ReleaseHold{.key = hold(1).key, .id = "17"});
  order(ReleaseHold{.key = hold(1).key, .id = ""});
  order(ReleaseHold{.key = hold(1).key, .id = "--full"});
  (void)list();
  EXPECT_TRUE(read("runs").starts_with("scancel --name=orr-00000000000000ab-pilot-3-1 17\nsqueue "))
      << read("runs");
}

TEST_F(SlurmManagerTest, OrdersAreCarriedOutOneAfterTheOther) {
  program("sbatch", "mkdir " + scratch_.path("one") + " && sleep 0.05; rmdir " +
                        scratch_.path("one") + " && echo 17");
  for (std::uint64_t id = 1; id <= 5; ++id) order(hold(id));
  await(5);
  for (std::uint64_t id = 1; id <= 5; ++id) {
    const auto& answer = std::get<HoldAnswer>(reports_[id - 1].what);
    EXPECT_EQ(answer.key.id, id);
    EXPECT_EQ(answer.id, "17") << answer.text;
  }
}

TEST_F(SlurmManagerTest, OrdersThatWaitAndAskForTheSameAreOne) {
  order(hold(1));  // in progress
  order(hold(2));
  order(ReleaseHold{.key = hold(1).key, .id = "17"});
  EnsureHold newer = hold(2);
  newer.nodes = 4;
  order(newer);
  order(ReleaseHold{.key = hold(1).key, .id = "17"});
  order(ReleaseHold{.key = hold(1).key, .id = "18"});
  order(hold(1));
  await(3);
  reports_.clear();
  (void)list();
  EXPECT_EQ(runs(), "sbatch sbatch scancel scancel sbatch squeue scontrol ");
  EXPECT_NE(read("runs").find("pilot-3-2 --nodes=4"), std::string::npos);
}

TEST_F(SlurmManagerTest, AWaitingListIsMergedWithANewerOneBehindTheOrdersBetween) {
  const auto ask = [&](std::int64_t asked) { order(ListHolds{Instant::from_ns(asked)}); };
  order(hold(1));
  ask(1);
  ask(2);
  order(hold(2));
  ask(3);
  order(hold(3));
  ask(4);
  await(5);
  EXPECT_EQ(runs(), "sbatch squeue scontrol sbatch sbatch squeue scontrol ");
  const auto asked = [&](std::size_t report) {
    return std::get<ManagerListing>(reports_[report].what).asked.ns();
  };
  EXPECT_EQ(asked(1), 2);
  EXPECT_EQ(asked(4), 4);
}

TEST_F(SlurmManagerTest, AnOrderFromInsideAReportIsCarriedOut) {
  int lists = 0;
  manager_ = std::make_unique<SlurmManager>(*real_, setup_, [&](const ManagerReport&) {
    if (++lists < 3) order(ListHolds{});
  });
  order(ListHolds{});
  real_->run_until([&] { return lists == 3; });
  EXPECT_EQ(lists, 3);
}

TEST_F(SlurmManagerTest, NothingIsReportedAfterItsEnd) {
  program("sbatch", "sleep 0.05; echo 17");
  order(hold(1));
  order(hold(2));
  manager_.reset();
  setup_.agent.controllers.clear();
  order(hold(3));
  manager_.reset();
  real_->env().timers.call_after(Duration::milliseconds(150), [this] { real_->stop(); });
  real_->run();
  EXPECT_TRUE(reports_.empty());
}

}  // namespace
}  // namespace orrery

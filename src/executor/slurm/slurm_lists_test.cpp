// executor/slurm/slurm_lists_test.cpp - lists as Slurm 22.05 printed them, lines of newer
// versions, and texts that are made to mislead.
#include "executor/slurm/slurm_lists.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

#include "base/numbers/rng.hpp"
#include "executor/slurm/slurm_names.hpp"

namespace orrery {
namespace {

constexpr std::uint64_t kCluster = 0xab;
const Instant kNow = *Instant::parse("2026-11-28T17:58:40Z");

/// Returns the text with each '~' as a separator, '@' and '^' as the beginnings of the name and the
/// comment of a hold.
std::string printed(std::string_view text) {
  const std::string separator = squeue_separator(7);
  std::string all;
  all.reserve(text.size() * separator.size());
  for (const char c : text) {
    if (c == '~') {
      all += separator;
    } else if (c == '@') {
      all += "orr-00000000000000ab-pilot-3-";
    } else if (c == '^') {
      all += "orrery:00000000000000ab:pilot-3-";
    } else {
      all += c;
    }
  }
  return all;
}

Result<std::vector<HoldSeen>> read(std::string_view text) {
  const std::string separator = squeue_separator(7);
  return read_squeue(printed(text),
                     {.separator = separator, .cluster = kCluster, .now_wall = kNow});
}

std::vector<HoldSeen> holds_of(std::string_view text) {
  auto holds = read(text);
  EXPECT_TRUE(holds) << holds.error().message;
  return holds ? *std::move(holds) : std::vector<HoldSeen>();
}

/// Returns a line of the hold pilot-3-1 behind its comment.
std::string line(std::string_view rest) {
  return fmt::format("~18~orr-00000000000000ab-pilot-3-1~orrery:00000000000000ab:pilot-3-1~{}~.\n",
                     rest);
}

// Printed by squeue of Slurm 22.05.8.
constexpr std::string_view kRecorded = R"(~23~@5~^5~CANCELLED~Priority~~5:00~2026-11-28T17:58:41~.
~19~@2~^2~FAILED~NonZeroExitCode~r03~9:59~2026-11-28T17:58:38~.
~21~@4~^4~PENDING~Resources~~20:00~2026-11-28T18:00:40~.
~22~@1~^1~PENDING~Dependency~~5:00~N/A~.
~24~@9~none~PENDING~Priority~~UNLIMITED~N/A~.
~25~other~a
<b> | orrery~PENDING~Priority~~UNLIMITED~N/A~.
~18~@1~^1~RUNNING~None~r[01-02]~9:57~2026-11-28T17:58:38~.
~20~@3~^3~SUSPENDED~None~r04~UNLIMITED~2026-11-28T17:58:38~.
~27~@6~^6~COMPLETING~None~r01~1-09:57:01~2026-11-28T17:58:38~.
)";

TEST(SlurmListsTest, ARecordedListHasEachHoldOfTheCluster) {
  const std::vector<HoldSeen> holds = holds_of(kRecorded);
  ASSERT_EQ(holds.size(), 7u);
  EXPECT_EQ(holds[0].phase, HoldPhase::kEnded);
  EXPECT_EQ(holds[0].reason, "CANCELLED") << "not why it waited";
  EXPECT_EQ(holds[1].phase, HoldPhase::kEnded);
  EXPECT_EQ(holds[1].reason, "FAILED: NonZeroExitCode");
  EXPECT_EQ(holds[1].nodes, std::vector<std::string>{"r03"});
  EXPECT_EQ(holds[2].phase, HoldPhase::kWaiting);
  EXPECT_EQ(holds[2].reason, "Resources");
  EXPECT_EQ(holds[2].starts_in, Duration::seconds(120));
  EXPECT_EQ(holds[2].left, std::nullopt);
  EXPECT_EQ(holds[3].key, holds[4].key) << "two jobs of one key";
  EXPECT_EQ(holds[3].starts_in, std::nullopt);
  EXPECT_EQ(holds[4].key, (HoldKey{.id = 1, .epoch = 3}));
  EXPECT_EQ(holds[4].id, "18");
  EXPECT_EQ(holds[4].phase, HoldPhase::kRunning);
  EXPECT_EQ(holds[4].reason, "");
  EXPECT_EQ(holds[4].nodes, (std::vector<std::string>{"r01", "r02"}));
  EXPECT_EQ(holds[4].left, Duration::minutes(9) + Duration::seconds(57));
  EXPECT_EQ(holds[4].starts_in, std::nullopt);
  EXPECT_EQ(holds[5].phase, HoldPhase::kRunning) << "its processes are only stopped";
  EXPECT_EQ(holds[5].reason, "SUSPENDED");
  EXPECT_EQ(holds[5].left, std::nullopt) << "unlimited";
  EXPECT_EQ(holds[6].phase, HoldPhase::kEnding);
  EXPECT_EQ(holds[6].left, Duration::hours(33) + Duration::minutes(57) + Duration::seconds(1));
}

TEST(SlurmListsTest, AnEmptyListIsAList) { EXPECT_TRUE(holds_of("").empty()); }

TEST(SlurmListsTest, AListThatIsCutOffIsNoList) {
  const std::string whole = line("RUNNING~None~r01~5:00~2026-11-28T17:58:38");
  ASSERT_EQ(holds_of(whole).size(), 1u);
  for (std::size_t size = 1; size < whole.size(); ++size) {
    EXPECT_FALSE(read(whole.substr(0, size))) << size;
    EXPECT_FALSE(read(whole + whole.substr(0, size))) << size;
  }
  EXPECT_EQ(read("slurm_load_jobs error").error().message,
            "squeue printed \"slurm_load_jobs error\", not a whole job");
}

TEST(SlurmListsTest, EachStateOfAJobIsAPhase) {
  const auto phases = [](HoldPhase phase, const std::vector<std::string_view>& states) {
    for (const std::string_view state : states) EXPECT_EQ(hold_phase(state), phase) << state;
  };
  phases(HoldPhase::kWaiting, {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED",
                               "SPECIAL_EXIT", "RESV_DEL_HOLD", "POWER_UP_NODE", "EXPEDITING"});
  phases(HoldPhase::kRunning, {"RUNNING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING"});
  phases(HoldPhase::kEnding, {"COMPLETING", "STAGE_OUT"});
  phases(HoldPhase::kEnded, {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "PREEMPTED", "DEADLINE",
                             "OUT_OF_MEMORY", "REVOKED"});
  phases(HoldPhase::kEndedDirty, {"NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED", "RECONFIG_FAIL"});
  EXPECT_EQ(hold_phase("?"), std::nullopt);
  EXPECT_EQ(hold_phase("running"), std::nullopt);
}

TEST(SlurmListsTest, ANodeThatFailedOrIsBootedHasItsReason) {
  const auto failed = holds_of(line("NODE_FAIL~NodeDown~r01~5:00~2026-11-28T17:58:38"));
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].phase, HoldPhase::kEndedDirty);
  EXPECT_EQ(failed[0].reason, "NODE_FAIL: NodeDown");
  EXPECT_EQ(failed[0].left, std::nullopt);
  const auto booted = holds_of(line("CONFIGURING~None~r[01-02]~5:00~2026-11-28T17:58:38"));
  ASSERT_EQ(booted.size(), 1u);
  EXPECT_EQ(booted[0].reason, "CONFIGURING");
  EXPECT_TRUE(booted[0].nodes.empty());
  EXPECT_EQ(booted[0].starts_in, Duration()) << "not before now";
}

TEST(SlurmListsTest, ATimeThatIsOverIsNoneLeft) {
  const auto over = holds_of(line("RUNNING~None~r01~INVALID~N/A"));
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].left, Duration());
  const auto last = holds_of(line("RUNNING~None~r01~0:00~N/A"));
  ASSERT_EQ(last.size(), 1u);
  EXPECT_EQ(last[0].left, Duration());
}

TEST(SlurmListsTest, AHoldThatCannotBeReadSpoilsTheListAndAnothersJobDoesNot) {
  EXPECT_EQ(read(line("ASLEEP~None~r01~5:00~N/A")).error().message,
            "squeue printed \"ASLEEP\" as the state of job 18");
  EXPECT_EQ(read(line("RUNNING~None~r[01~5:00~N/A")).error().message,
            "squeue printed \"r[01\" as the nodes of job 18");
  EXPECT_EQ(read(line("RUNNING~None~r01~soon~N/A")).error().message,
            "squeue printed \"soon\" as the time left of job 18");
  EXPECT_EQ(read(line("PENDING~None~~5:00~11/28-17:58")).error().message,
            "squeue printed \"11/28-17:58\" as the start of job 18");
  EXPECT_TRUE(holds_of("~18~other~(null)~ASLEEP~None~r[01~soon~never~.\n").empty());
}

TEST(SlurmListsTest, JobsThatOnlyLookLikeHoldsAreNone) {
  constexpr std::string_view kRest = "RUNNING~None~r01~5:00~N/A~.\n";
  const auto is_hold = [&](std::string_view labels) {
    return holds_of(fmt::format("~{}~{}", labels, kRest)).size() == 1;
  };
  const std::string_view name = "orr-00000000000000ab-pilot-3-1";
  const std::string_view comment = "orrery:00000000000000ab:pilot-3-1";
  EXPECT_TRUE(is_hold(fmt::format("7~{}~{}", name, comment)));
  EXPECT_FALSE(is_hold(fmt::format("7~{}~(null)", name)));
  EXPECT_FALSE(is_hold(fmt::format("7~{}~orrery:00000000000000ab:pilot-3-2", name)));
  EXPECT_FALSE(is_hold(fmt::format("7~{}~{} ", name, comment)));
  EXPECT_FALSE(is_hold(fmt::format("7~orr-ab-pilot-3-1~{}", comment)));
  EXPECT_FALSE(is_hold("7~orr-00000000000000ac-pilot-3-1~orrery:00000000000000ac:pilot-3-1"))
      << "of another cluster";
  EXPECT_FALSE(is_hold("7~orr-00000000000000ab-pilot-3-01~orrery:00000000000000ab:pilot-3-01"));
  EXPECT_FALSE(is_hold(fmt::format("7_3~{}~{}", name, comment))) << "an element of an array";
  EXPECT_FALSE(is_hold(fmt::format("7+1~{}~{}", name, comment)));
}

TEST(SlurmListsTest, NoFreeTextMovesTheFieldsOfAList) {
  constexpr std::array<std::string_view, 12> kPieces = {
      "\n",
      ".",
      ".\n",
      "<",
      ">",
      "<000000000000000",
      "000000000000007>",
      "~",
      "|",
      "\0x",
      "\xff",
      "~18~orr-00000000000000ab-pilot-3-1~orrery:00000000000000ab:pilot-3-1~NODE_FAIL~x~r9~1~N/"
      "A~.\n"};
  constexpr std::uint64_t kSeed = 20261128;
  constexpr std::uint64_t kPiecesMax = 5;
  Rng rng(kSeed);
  const auto text = [&] {
    std::string all;
    const std::uint64_t pieces = rng.below(kPiecesMax + 1);
    for (std::uint64_t i = 0; i < pieces; ++i) all.append(kPieces[rng.below(kPieces.size())]);
    return all;
  };
  const std::string separator = squeue_separator(7);
  const std::string own = printed(line("RUNNING~None~r01~5:00~2026-11-28T17:58:38"));
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE(fmt::format("seed {}, round {}", kSeed, round));
    std::string list;
    for (const bool before : {true, false}) {
      std::array<std::string, 8> job;
      for (std::string& field : job) field = text();
      list += fmt::format("{}{}{}.\n", separator, fmt::join(job, separator), separator);
      if (before) list += own;
    }
    const auto holds =
        read_squeue(list, {.separator = separator, .cluster = kCluster, .now_wall = kNow});
    ASSERT_TRUE(holds) << holds.error().message;
    ASSERT_EQ(holds->size(), 1u);
    ASSERT_EQ(holds->front().phase, HoldPhase::kRunning);
  }
}

TEST(SlurmListsTest, TheFormatOfAListBeginsAndEndsEachFieldWithTheSeparator) {
  EXPECT_EQ(squeue_separator(0xab), "<00000000000000ab>");
  EXPECT_EQ(squeue_format("<7>"), "<7>%i<7>%j<7>%k<7>%T<7>%r<7>%N<7>%L<7>%S<7>.");
}

// Printed by scontrol of Slurm 22.05.8, many fields left out.
constexpr std::string_view kNodes =
    "NodeName=r01 Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 Gres=gpu:h100:8 "
    "OS=Linux 6.18.44 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=1000 State=IDLE ThreadsPerCore=1\n"
    "NodeName=r02 Arch=x86_64 State=ALLOCATED+NOT_RESPONDING ThreadsPerCore=1\n"
    "NodeName=r03 Arch=x86_64 State=IDLE+DRAIN ThreadsPerCore=1 "
    "Reason=Kill task failed [root@2026-11-28T17:58:42]\n"
    "NodeName=r04 Arch=x86_64 State=DOWN ThreadsPerCore=1 "
    "Reason=bad = fan State=UP [root@2026-11-28T17:58:41] Comment=free text Reason=q\n"
    "NodeName=r05 Arch=x86_64 State=IDLE+DRAIN ThreadsPerCore=1 "
    "Reason=line one [root@2026-11-28T17:44:55]        NodeName=zz State=DOWN\n";

TEST(SlurmListsTest, RecordedNodesHaveTheirServiceAndReason) {
  const auto nodes = read_slurm_nodes(kNodes);
  ASSERT_TRUE(nodes) << nodes.error().message;
  ASSERT_EQ(nodes->size(), 5u);
  const auto shown = [&](std::size_t i) {
    const SlurmNode& node = (*nodes)[i];
    return fmt::format("{}{}{}{} {}", node.name, node.out_of_service ? " out" : "",
                       node.drained ? " drained" : "", node.may_keep_processes ? " keeping" : "",
                       node.reason);
  };
  EXPECT_EQ(shown(0), "r01 ");
  EXPECT_EQ(shown(1), "r02 out keeping ALLOCATED+NOT_RESPONDING");
  EXPECT_EQ(shown(2), "r03 out drained keeping Kill task failed [root@2026-11-28T17:58:42]");
  EXPECT_EQ(shown(3), "r04 out keeping bad = fan State=UP [root@2026-11-28T17:58:41]");
  EXPECT_EQ(shown(4),
            "r05 out drained line one [root@2026-11-28T17:44:55]        NodeName=zz State=DOWN");
}

TEST(SlurmListsTest, TheStateOfANodeSaysWhetherItServes) {
  const auto serves = [](std::string_view state) {
    const auto nodes = read_slurm_nodes(fmt::format("NodeName=n1 State={} Weight=1\n", state));
    EXPECT_TRUE(nodes && nodes->size() == 1) << state;
    return nodes && !nodes->front().out_of_service;
  };
  for (const auto* state :
       {"IDLE", "MIXED", "ALLOCATED", "IDLE+CLOUD+POWERED_DOWN", "IDLE+PLANNED",
        "ALLOCATED+COMPLETING", "MIXED-", "IDLE~", "IDLE+RESERVED", "IDLE+MAINTENANCE"}) {
    EXPECT_TRUE(serves(state)) << state;
  }
  for (const auto* state : {"DOWN", "DOWN*", "IDLE*", "IDLE+DRAIN", "MIXED+DRAIN", "DRAINED",
                            "DRAINING*", "IDLE+FAIL", "DOWN+CLOUD+POWERED_DOWN", "UNKNOWN",
                            "FUTURE", "IDLE+INVALID_REG", "IDLE+REBOOT_ISSUED", "ERROR"}) {
    EXPECT_FALSE(serves(state)) << state;
  }
}

TEST(SlurmListsTest, NodesThatAreCutOffOrOfAnotherFormAreNoList) {
  EXPECT_FALSE(read_slurm_nodes(""));
  EXPECT_FALSE(read_slurm_nodes("No nodes in the system\n"));
  EXPECT_FALSE(read_slurm_nodes(kNodes.substr(0, kNodes.size() - 1)));
  EXPECT_FALSE(read_slurm_nodes("NodeName=n1 Arch=x86_64\n"));
  EXPECT_FALSE(read_slurm_nodes("NodeName= State=IDLE\n"));
  const auto more = read_slurm_nodes(
      "NodeName=n1 State=IDLE Comment=a\nb State=DOWN\n\n"
      "NodeName=n2/x State=IDLE\nNodeName=n3 State=IDLE\n");
  ASSERT_TRUE(more);
  ASSERT_EQ(more->size(), 2u) << "a comment may have lines, a name no slash";
  EXPECT_FALSE(more->front().out_of_service);
  EXPECT_EQ(more->back().name, "n3");
}

TEST(SlurmListsTest, ANodeWithoutAnAnswerSpoilsTheProofOfAnEnd) {
  const auto ended = [](std::string_view state) {
    return HoldSeen{.key = {1, 3},
                    .phase = *hold_phase(state),
                    .reason = std::string(state),
                    .nodes = {"r01", "r02"}};
  };
  const auto phases = [&](const SlurmNode& node) {
    const ManagerListing listing = join_slurm_lists({ended("CANCELLED"), ended("RUNNING")}, {node});
    EXPECT_TRUE(listing.complete);
    EXPECT_EQ(listing.nodes.size(), 1u);
    EXPECT_EQ(listing.holds[1].phase, HoldPhase::kRunning);
    return std::pair(listing.holds[0].phase, listing.holds[0].reason);
  };
  EXPECT_EQ(phases({{"r02", true, false, "bad fan"}, false}),
            std::pair(HoldPhase::kEnded, std::string("CANCELLED")));
  EXPECT_EQ(phases({{"r03", true, false, "DOWN"}, true}).first, HoldPhase::kEnded);
  EXPECT_EQ(phases({{"r02", true, false, "DOWN"}, true}),
            std::pair(HoldPhase::kEndedDirty,
                      std::string("CANCELLED; Slurm cannot end processes on r02")));
}

TEST(SlurmConfig, SaysWhetherTheEndOfAJobIsProof) {
  const std::string before =
      "Configuration data as of 2026-11-28\nPrologFlags             = (null)\n";
  EXPECT_TRUE(tracks_all_processes(before + "ProctrackType           = proctrack/cgroup\nX = y\n"));
  EXPECT_FALSE(tracks_all_processes(before + "ProctrackType           = proctrack/linuxproc\n"));
  EXPECT_FALSE(tracks_all_processes(before));
  EXPECT_FALSE(tracks_all_processes(""));
  std::vector<HoldSeen> holds{{.phase = HoldPhase::kEnded, .reason = "CANCELLED"},
                              {.phase = HoldPhase::kRunning}};
  doubt_ends(holds);
  EXPECT_EQ(holds[0].phase, HoldPhase::kEndedDirty);
  EXPECT_EQ(holds[1].phase, HoldPhase::kRunning);
}

}  // namespace
}  // namespace orrery

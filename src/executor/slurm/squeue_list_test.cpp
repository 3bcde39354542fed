// executor/slurm/squeue_list_test.cpp - lists as Slurm 22.05 printed them, lines of newer
// versions, and texts that are made to mislead.
#include "executor/slurm/squeue_list.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

constexpr std::uint64_t kCluster = 0xab;
constexpr std::uint32_t kUid = 4242;
const Instant kNow = *Instant::parse("2026-11-29T01:54:05Z");

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

enum class Foreign { kPassedOver, kRead };

Result<SqueueList> read(std::string_view text, Foreign foreign = Foreign::kPassedOver) {
  const std::string separator = squeue_separator(7);
  return read_squeue(printed(text), {.separator = separator,
                                     .cluster = kCluster,
                                     .uid = kUid,
                                     .now_wall = kNow,
                                     .foreign = foreign == Foreign::kRead});
}

std::vector<HoldSeen> holds_of(std::string_view text) {
  auto list = read(text);
  EXPECT_TRUE(list) << list.error().message;
  if (!list) return {};
  EXPECT_FALSE(list->foreign) << "not asked for";
  return std::move(list->holds);
}

std::vector<ForeignWork> foreign_of(std::string_view text) {
  auto list = read(text, Foreign::kRead);
  EXPECT_TRUE(list) << list.error().message;
  return list ? *std::move(list->foreign) : std::vector<ForeignWork>();
}

/// Returns the work as "ID USER NODES LEFT", the time in seconds.
std::string shown(const ForeignWork& work) {
  return fmt::format("{} {} {} {}", work.id, work.user, fmt::join(work.nodes, ","),
                     work.left ? fmt::format("{}", work.left->count_seconds()) : "unlimited");
}

/// Returns a line of the hold pilot-3-1 with these fields behind its comment.
std::string line(std::string_view rest) {
  return fmt::format(
      "~18~orr-00000000000000ab-pilot-3-1~orrery:00000000000000ab:pilot-3-1~{}~4242~orrery~.\n",
      rest);
}

/// Returns a line of another user's job with these fields behind its comment.
std::string job(std::string_view rest) {
  return fmt::format("~19~train~(null)~{}~500~ann~.\n", rest);
}

// Printed by squeue of Slurm 22.05.8; some jobs of an array left out, another uid than 0.
constexpr std::string_view kRecorded =
    R"(~6_6~arr~(null)~CANCELLED~None~r07~58:47~2026-11-29T01:51:49~2026-11-29T01:53:02~4242~own~.
~15~@4~^4~CANCELLED~Priority~~20:00~2026-11-29T01:53:24~2026-11-29T01:53:24~4242~own~.
~19~@5~^5~CANCELLED~Priority~~5:00~2026-11-29T01:54:05~2026-11-29T01:54:05~4242~own~.
~4~@6~^6~COMPLETING~None~r04~1-09:57:44~2026-11-29T01:51:49~2026-11-29T01:54:05~4242~own~.
~2~@2~^2~FAILED~NonZeroExitCode~r03~10:00~2026-11-29T01:51:46~2026-11-29T01:51:46~4242~own~.
~20~@4~^4~PENDING~Resources~~20:00~2026-11-29T02:01:46~2026-11-29T02:21:46~4242~own~.
~16~@1~^1~PENDING~Dependency~~5:00~N/A~N/A~4242~own~.
~17~@9~none~PENDING~Priority~~UNLIMITED~2027-11-29T01:53:11~NONE~4242~own~.
~18~other~a
<b> | orrery~PENDING~Priority~~UNLIMITED~2027-11-29T01:53:11~NONE~4242~own~.
~24~long~(null)~RUNNING~None~r08~INVALID~2026-11-29T01:54:01~2028-04-12T01:54:01~65534~nobody~.
~1~@1~^1~RUNNING~None~r[01-02]~7:41~2026-11-29T01:51:46~2026-11-29T02:01:46~4242~own~.
~5~@7~^7~RUNNING~None~r[05-06]~17:44~2026-11-29T01:51:49~2026-11-29T02:11:49~65534~nobody~.
~6_3~arr~(null)~RUNNING~None~r07~57:44~2026-11-29T01:51:49~2026-11-29T02:51:49~4242~own~.
~6_7~arr~(null)~RUNNING~None~r08~57:44~2026-11-29T01:51:49~2026-11-29T02:51:49~4242~own~.
~7+0~het~(null)~RUNNING~None~r07~UNLIMITED~2026-11-29T01:53:11~NONE~65534~nobody~.
~7+1~het~(null)~RUNNING~None~r08~UNLIMITED~2026-11-29T01:53:11~NONE~65534~nobody~.
~3~@3~^3~SUSPENDED~None~r03~UNLIMITED~2026-11-29T01:51:49~NONE~4242~own~.
)";

TEST(SqueueListTest, ARecordedListHasEachHoldOfTheCluster) {
  const std::vector<HoldSeen> holds = holds_of(kRecorded);
  const auto at = [](std::string_view time) { return *Instant::parse(time); };
  ASSERT_EQ(holds.size(), 8u);
  EXPECT_EQ(holds[0].phase, HoldPhase::kEnded);
  EXPECT_EQ(holds[0].reason, "CANCELLED") << "not why it waited";
  EXPECT_EQ(holds[0].started, std::nullopt) << "it was cancelled in the queue";
  EXPECT_EQ(holds[0].ended, std::nullopt);
  EXPECT_EQ(holds[2].phase, HoldPhase::kEnding);
  EXPECT_EQ(holds[2].nodes, std::vector<std::string>{"r04"});
  EXPECT_EQ(holds[2].left, Duration::hours(33) + Duration::minutes(57) + Duration::seconds(44));
  EXPECT_EQ(holds[2].started, at("2026-11-29T01:51:49Z"));
  EXPECT_EQ(holds[2].ended, std::nullopt) << "not yet";
  EXPECT_EQ(holds[3].phase, HoldPhase::kEnded);
  EXPECT_EQ(holds[3].reason, "FAILED: NonZeroExitCode");
  EXPECT_EQ(holds[3].nodes, std::vector<std::string>{"r03"});
  EXPECT_EQ(holds[3].started, at("2026-11-29T01:51:46Z"));
  EXPECT_EQ(holds[3].ended, at("2026-11-29T01:51:46Z")) << "within a second";
  EXPECT_EQ(holds[4].phase, HoldPhase::kWaiting);
  EXPECT_EQ(holds[4].reason, "Resources");
  EXPECT_EQ(holds[4].starts_in, Duration::seconds(461));
  EXPECT_EQ(holds[4].left, std::nullopt);
  EXPECT_EQ(holds[4].started, std::nullopt) << "an estimate is no start";
  EXPECT_EQ(holds[4].ended, std::nullopt);
  EXPECT_EQ(holds[5].key, holds[6].key) << "two jobs of one key";
  EXPECT_EQ(holds[5].starts_in, std::nullopt);
  EXPECT_EQ(holds[6].key, (HoldKey{.id = 1, .epoch = 3}));
  EXPECT_EQ(holds[6].id, "1");
  EXPECT_EQ(holds[6].phase, HoldPhase::kRunning);
  EXPECT_EQ(holds[6].reason, "");
  EXPECT_EQ(holds[6].nodes, (std::vector<std::string>{"r01", "r02"}));
  EXPECT_EQ(holds[6].left, Duration::minutes(7) + Duration::seconds(41));
  EXPECT_EQ(holds[6].starts_in, std::nullopt);
  EXPECT_EQ(holds[6].started, at("2026-11-29T01:51:46Z"));
  EXPECT_EQ(holds[6].ended, std::nullopt) << "an expected end is none";
  EXPECT_EQ(holds[7].phase, HoldPhase::kRunning) << "its processes are only stopped";
  EXPECT_EQ(holds[7].reason, "SUSPENDED");
  EXPECT_EQ(holds[7].left, std::nullopt) << "unlimited";
}

TEST(SqueueListTest, ARecordedListHasTheWorkOfOthersThatHasNodes) {
  const auto list = read(kRecorded, Foreign::kRead);
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ(list->holds.size(), 8u);
  std::vector<std::string> works;
  works.reserve(list->foreign->size());
  for (const ForeignWork& each : *list->foreign) works.push_back(shown(each));
  EXPECT_EQ(works, (std::vector<std::string>{
                       "24 nobody r08 43199996",  // 500 days, which squeue calls INVALID
                       "5 nobody r05,r06 1064",   // it has the name and the comment of a hold
                       "6_3 own r07 3464", "6_7 own r08 3464", "7+0 nobody r07 unlimited",
                       "7+1 nobody r08 unlimited"}));
}

TEST(SqueueListTest, AnEmptyListIsAList) {
  EXPECT_TRUE(holds_of("").empty());
  EXPECT_TRUE(foreign_of("").empty());
}

TEST(SqueueListTest, AListThatIsCutOffIsNoList) {
  const std::string whole = line("RUNNING~None~r01~5:00~2026-11-28T17:58:38~N/A");
  const std::string other = job("RUNNING~None~r01~5:00~2026-11-28T17:58:38~N/A");
  ASSERT_EQ(holds_of(whole).size(), 1u);
  for (std::size_t size = 1; size < whole.size(); ++size) {
    EXPECT_FALSE(read(whole.substr(0, size))) << size;
    EXPECT_FALSE(read(whole + whole.substr(0, size))) << size;
  }
  for (std::size_t size = 1; size < other.size(); ++size) {
    EXPECT_FALSE(read(whole + other.substr(0, size), Foreign::kRead)) << size;
  }
  EXPECT_EQ(read("slurm_load_jobs error").error().message,
            "squeue printed \"slurm_load_jobs error\", not a whole job");
}

TEST(SqueueListTest, EachStateOfAJobIsAPhase) {
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

TEST(SqueueListTest, AHoldWhoseReservationHasEndedNeverStarts) {
  const auto gone = holds_of(line("RESV_DEL_HOLD~Reservation r3 was deleted~~5:00~N/A~N/A"));
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].phase, HoldPhase::kWaiting);
  EXPECT_TRUE(gone[0].stuck);
  EXPECT_EQ(gone[0].reason, "RESV_DEL_HOLD: Reservation r3 was deleted");
  for (const auto* state : {"PENDING~Reservation", "PENDING~JobHeldAdmin", "REQUEUE_HOLD~None"}) {
    const auto holds = holds_of(line(fmt::format("{}~~5:00~N/A~N/A", state)));
    ASSERT_EQ(holds.size(), 1u) << state;
    EXPECT_FALSE(holds[0].stuck) << state;
  }
}

TEST(SqueueListTest, OnlyWhatHasNodesNowIsWorkOfOthers) {
  const auto has = [](std::string_view state) {
    const auto works = foreign_of(job(fmt::format("{}~x~r[01-02]~5:00~N/A~N/A", state)));
    if (works.size() != 1) return false;
    const bool stands = state == "SUSPENDED" || state == "STOPPED" || state == "COMPLETING";
    EXPECT_EQ(shown(works[0]), stands ? "19 ann r01,r02 unlimited" : "19 ann r01,r02 300") << state;
    return true;
  };
  for (const auto* state : {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING",
                            "SIGNALING", "CONFIGURING", "POWER_UP_NODE"}) {
    EXPECT_TRUE(has(state)) << state;
  }
  for (const auto* state :
       {"PENDING",       "REQUEUED",   "REQUEUE_HOLD", "REQUEUE_FED",   "SPECIAL_EXIT",
        "RESV_DEL_HOLD", "EXPEDITING", "STAGE_OUT",    "COMPLETED",     "CANCELLED",
        "FAILED",        "TIMEOUT",    "PREEMPTED",    "DEADLINE",      "OUT_OF_MEMORY",
        "REVOKED",       "NODE_FAIL",  "BOOT_FAIL",    "LAUNCH_FAILED", "RECONFIG_FAIL"}) {
    EXPECT_FALSE(has(state)) << state;
  }
  EXPECT_TRUE(foreign_of(job("COMPLETING~None~~5:00~N/A~N/A")).empty()) << "all are given back";
}

TEST(SqueueListTest, AHoldIsAJobOfTheOwnUser) {
  const std::string own = line("RUNNING~None~r01~5:00~N/A~N/A");
  const auto of_user = [&](std::string_view uid) {
    std::string other = own;
    return other.replace(other.find("4242"), 4, uid);
  };
  EXPECT_TRUE(foreign_of(own).empty());
  for (const auto* uid : {"4243", "0", "42", "4294967295"}) {
    EXPECT_TRUE(holds_of(of_user(uid)).empty()) << uid;
    EXPECT_EQ(foreign_of(of_user(uid)).size(), 1u) << uid;
  }
  EXPECT_EQ(read(of_user("orrery")).error().message,
            "squeue printed \"orrery\" as the user of job 18");
  for (const auto* uid : {"", " 4242", "4242 ", "-1", "4294967296"}) {
    EXPECT_FALSE(read(of_user(uid))) << uid;
  }
}

TEST(SqueueListTest, OwnJobsThatAreNoHoldsAreWorkOfOthers) {
  constexpr std::string_view kRest = "RUNNING~None~r01~5:00~N/A~N/A~4242~orrery~.\n";
  for (const auto* labels :
       {"7~sleep~(null)", "7_3~@1~^1", "7+1~@1~^1", "7~@1~^2",
        "7~orr-00000000000000ac-pilot-3-1~orrery:00000000000000ac:pilot-3-1"}) {
    const auto list = read(fmt::format("~{}~{}", labels, kRest), Foreign::kRead);
    ASSERT_TRUE(list) << list.error().message;
    EXPECT_TRUE(list->holds.empty()) << labels;
    EXPECT_EQ(list->foreign->size(), 1u) << labels;
  }
}

TEST(SqueueListTest, TheNameOfAUserIsPrintableAndBounded) {
  const auto user = [](std::string_view name) {
    const auto works =
        foreign_of(fmt::format("~19~train~(null)~RUNNING~None~r01~5:00~N/A~N/A~500~{}~.\n", name));
    return works.size() == 1 ? works[0].user : "";
  };
  EXPECT_EQ(user("ann"), "ann");
  EXPECT_EQ(user("a\n\x1b[31m\xff"), "a??[31m?");
  const std::string longest = user(std::string(1000, 'a'));
  EXPECT_EQ(longest, std::string(57, 'a') + "...");
}

TEST(SqueueListTest, WorkOfOthersThatCannotBeReadSpoilsTheListOnlyIfItIsAskedFor) {
  const std::string own = line("RUNNING~None~r01~5:00~N/A~N/A");
  const auto trouble = [&](std::string_view rest) {
    EXPECT_EQ(holds_of(own + job(rest)).size(), 1u) << rest;
    const auto list = read(own + job(rest), Foreign::kRead);
    return list ? "" : list.error().message;
  };
  EXPECT_EQ(trouble("ASLEEP~None~r01~5:00~N/A~N/A"),
            "squeue printed \"ASLEEP\" as the state of job 19");
  EXPECT_EQ(trouble("RUNNING~None~r[01~5:00~N/A~N/A"),
            "squeue printed \"r[01\" as the nodes of job 19");
  EXPECT_EQ(trouble("RUNNING~None~r01~soon~N/A~N/A"),
            "squeue printed \"soon\" as the time left of job 19");
  EXPECT_EQ(trouble("RUNNING~None~r01~INVALID~N/A~later"),
            "squeue printed \"later\" as the end of job 19");
  const std::string many = job("RUNNING~None~n[000001-600000]~5:00~N/A~N/A");
  EXPECT_EQ(holds_of(own + many + many).size(), 1u);
  EXPECT_EQ(read(own + many + many, Foreign::kRead).error().message,
            "squeue printed more nodes than a cluster can have");
}

TEST(SqueueListTest, ANodeThatFailedOrIsBootedHasItsReason) {
  const auto failed =
      holds_of(line("NODE_FAIL~NodeDown~r01~5:00~2026-11-28T17:58:38~2026-11-28T18:58:39"));
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].phase, HoldPhase::kEndedDirty);
  EXPECT_EQ(failed[0].reason, "NODE_FAIL: NodeDown");
  EXPECT_EQ(failed[0].left, std::nullopt);
  ASSERT_TRUE(failed[0].started && failed[0].ended);
  EXPECT_EQ(*failed[0].ended - *failed[0].started, Duration::seconds(3601));
  const auto booted = holds_of(line("CONFIGURING~None~r[01-02]~5:00~2026-11-28T17:58:38~N/A"));
  ASSERT_EQ(booted.size(), 1u);
  EXPECT_EQ(booted[0].reason, "CONFIGURING");
  EXPECT_TRUE(booted[0].nodes.empty());
  EXPECT_EQ(booted[0].starts_in, Duration()) << "not before now";
  EXPECT_EQ(booted[0].started, std::nullopt) << "it cannot be used yet";
}

// With EnforcePartLimits=NO such jobs waited for ever, and no other was asked for.
TEST(SqueueListTest, AHoldThatNoEndOfAnotherJobLetsStartIsStuck) {
  const auto is_stuck = [](std::string_view reason) {
    const auto holds = holds_of(line(fmt::format("PENDING~{}~~5:00~N/A~N/A", reason)));
    EXPECT_EQ(holds.at(0).reason, reason);
    return holds.at(0).stuck;
  };
  for (const char* reason :
       {"PartitionTimeLimit", "PartitionNodeLimit", "PartitionConfig", "AccountNotAllowed",
        "QOSNotAllowed", "InvalidAccount", "InvalidQOS", "BadConstraints", "ReservationDeleted",
        "AssocMaxWallDurationPerJobLimit", "QOSMaxWallDurationPerJobLimit", "QOSMaxNodePerJobLimit",
        "AssocMaxGRESPerNode"}) {
    EXPECT_TRUE(is_stuck(reason)) << reason;
  }
  for (const char* reason :
       {"Priority", "Resources", "Dependency", "Reservation", "ReqNodeNotAvail", "PartitionDown",
        "JobHeldAdmin", "JobHeldUser", "QOSGrpNodeLimit", "QOSMaxJobsPerUserLimit",
        "AssocMaxJobsLimit", "JobArrayTaskLimit", "QOSMaxNodePerUserLimit"}) {
    EXPECT_FALSE(is_stuck(reason)) << reason;
  }
  EXPECT_FALSE(holds_of(line("RUNNING~InvalidQOS~r01~5:00~N/A~N/A")).at(0).stuck);
}

TEST(SqueueListTest, AHoldThatWaitsSaysHowManyNodesItAsksFor) {
  const auto asked = [](std::string_view count) {
    const std::string text = line("PENDING~None~~5:00~N/A~N/A");
    const auto holds = holds_of(text.substr(0, text.size() - 2) + std::string(count) + ".\n");
    return holds.size() == 1 ? holds[0].asked : 77u;
  };
  EXPECT_EQ(asked("8"), 8u);
  EXPECT_EQ(asked(""), 0u) << "not known";
  EXPECT_EQ(asked("1.50K"), 0u);
  EXPECT_FALSE(read("~18~name~none~PENDING~None~~5:00~N/A~N/A~4242~orrery~8 x.\n"));
}

TEST(SqueueListTest, ATimeThatIsOverIsNoneLeft) {
  const auto left = [](std::string_view times) {
    const auto holds = holds_of(line(fmt::format("RUNNING~None~r01~{}", times)));
    return holds.size() == 1 ? holds[0].left : std::nullopt;
  };
  EXPECT_EQ(left("INVALID~N/A~N/A"), Duration());
  EXPECT_EQ(left("INVALID~2026-11-29T01:44:05~2026-11-29T01:54:04"), Duration());
  EXPECT_EQ(left("INVALID~2026-11-29T01:44:05~2028-11-29T01:54:05"), Duration::hours(17'544))
      << "squeue's word for more than a year, too";
  EXPECT_EQ(left("0:00~N/A~N/A"), Duration());
}

TEST(SqueueListTest, ATimeOfDayThatSlurmHasNotIsNone) {
  for (const auto* none : {"N/A", "NONE", "None", "Unknown"}) {
    const auto holds = holds_of(line(fmt::format("COMPLETED~None~r01~5:00~{}~{}", none, none)) +
                                line(fmt::format("PENDING~None~~5:00~{}~{}", none, none)));
    ASSERT_EQ(holds.size(), 2u) << none;
    EXPECT_EQ(holds[0].started, std::nullopt) << none;
    EXPECT_EQ(holds[0].ended, std::nullopt) << none;
    EXPECT_EQ(holds[1].starts_in, std::nullopt) << none;
  }
}

TEST(SqueueListTest, AHoldThatCannotBeReadSpoilsTheListAndAnothersJobDoesNot) {
  const auto trouble = [](std::string_view rest) { return read(line(rest)).error().message; };
  EXPECT_EQ(trouble("ASLEEP~None~r01~5:00~N/A~N/A"),
            "squeue printed \"ASLEEP\" as the state of job 18");
  EXPECT_EQ(trouble("RUNNING~None~r[01~5:00~N/A~N/A"),
            "squeue printed \"r[01\" as the nodes of job 18");
  EXPECT_EQ(trouble("RUNNING~None~r01~soon~N/A~N/A"),
            "squeue printed \"soon\" as the time left of job 18");
  EXPECT_EQ(trouble("PENDING~None~~5:00~11/28-17:58~N/A"),
            "squeue printed \"11/28-17:58\" as the start of job 18");
  EXPECT_EQ(trouble("RUNNING~None~r01~5:00~~N/A"), "squeue printed \"\" as the start of job 18");
  EXPECT_EQ(trouble("COMPLETED~None~r01~5:00~N/A~17:58"),
            "squeue printed \"17:58\" as the end of job 18");
  EXPECT_TRUE(
      holds_of("~18~other~(null)~ASLEEP~None~r[01~soon~never~ever~nobody's~\n~.\n").empty());
}

TEST(SqueueListTest, JobsThatOnlyLookLikeHoldsAreNone) {
  constexpr std::string_view kRest = "RUNNING~None~r01~5:00~N/A~N/A~4242~orrery~.\n";
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

TEST(SqueueListTest, NoFreeTextMovesTheFieldsOfAList) {
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
      "A~N/A~4242~x~.\n"};
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
  const std::string own = printed(line("RUNNING~None~r01~5:00~2026-11-28T17:58:38~N/A"));
  const auto job_of = [&](const std::array<std::string, 11>& fields) {
    return fmt::format("{}{}{}.\n", separator, fmt::join(fields, separator), separator);
  };
  SqueueReading reading{.separator = separator, .cluster = kCluster, .uid = kUid, .now_wall = kNow};
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE(fmt::format("seed {}, round {}", kSeed, round));
    std::array<std::string, 11> fields;
    for (std::string& field : fields) field = text();
    const std::string free = job_of(fields);
    // Only what users choose is free in a list that has their jobs.
    const std::string other = job_of(
        {"19", text(), text(), "RUNNING", text(), "r02", "1:00", "N/A", "N/A", "500", text()});
    reading.foreign = false;
    const auto holds = read_squeue(fmt::format("{0}{1}{0}", free, own), reading);
    ASSERT_TRUE(holds) << holds.error().message;
    ASSERT_EQ(holds->holds.size(), 1u);
    ASSERT_EQ(holds->holds.front().phase, HoldPhase::kRunning);
    reading.foreign = true;
    const auto all = read_squeue(fmt::format("{0}{1}{0}", other, own), reading);
    ASSERT_TRUE(all) << all.error().message;
    ASSERT_EQ(all->holds.size(), 1u);
    ASSERT_EQ(all->foreign->size(), 2u);
    ASSERT_EQ(all->foreign->front().nodes, std::vector<std::string>{"r02"});
  }
}

TEST(SqueueListTest, TheFormatOfAListBeginsAndEndsEachFieldWithTheSeparator) {
  EXPECT_EQ(squeue_separator(0xab), "<00000000000000ab>");
  EXPECT_EQ(squeue_format("<7>"), "<7>%i<7>%j<7>%k<7>%T<7>%r<7>%N<7>%L<7>%S<7>%e<7>%U<7>%u<7>%D.");
}

}  // namespace
}  // namespace orrery

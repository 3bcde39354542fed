#include "verbs/schedule/schedule_request.hpp"

#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"
#include "verbs/schedule/queue_files_test.hpp"

namespace orrery {
namespace {

std::unique_ptr<ScheduleRequest> loaded(QueueFiles& queue) {
  auto request = ScheduleRequest::load({}, queue.asked());
  EXPECT_TRUE(request) << (request ? "" : request.error().text());
  return request ? *std::move(request) : nullptr;
}

std::string refusal(const ScheduleOptions& asked) {
  const auto request = ScheduleRequest::load({}, asked);
  return request ? "accepted" : request.error().text();
}

std::vector<std::string> started(const ScheduleRequest& request, const PassResult& result) {
  std::vector<std::string> names;
  for (const Decision& decision : result.decisions) {
    const auto* start = std::get_if<StartJob>(&decision);
    if (start != nullptr) names.push_back(request.jobs()[start->job.value()].name);
  }
  return names;
}

TEST(ScheduleRequest, JobsStartInTheirOrderUntilTheFleetIsFull) {
  QueueFiles queue;
  queue.add("a", 8);
  queue.add("b", 8);
  queue.add("c", 8);
  const auto request = loaded(queue);
  const PassResult result = request->decide();
  EXPECT_EQ(started(*request, result), (std::vector<std::string>{"a", "b"}));
  request->carry_out(result);
  const Situation now = request->situation();
  EXPECT_EQ(now.running.size(), 2U);
  ASSERT_EQ(now.waiting.size(), 1U);
  EXPECT_EQ(now.waiting[0].request->name, "c");
  EXPECT_TRUE(started(*request, request->decide()).empty()) << "nothing is free any more";
}

TEST(ScheduleRequest, JobsBehindAHeadThatBlocksAreNotReached) {
  QueueFiles queue;
  queue.asked().policy = "fifo:blocking=true";
  queue.add("a", 8);
  queue.add("wide", 16);
  queue.add("small", 1);
  const auto request = loaded(queue);
  const PassResult result = request->decide();
  EXPECT_EQ(started(*request, result), std::vector<std::string>{"a"});
  EXPECT_EQ(request->not_reached(result), std::vector<std::string>{"small"});
}

TEST(ScheduleRequest, AJobTooLargeForTheFleetIsRefusedAndOneThatFollowsOthersIsHeld) {
  QueueFiles queue;
  queue.add("big", 64);
  queue.add("next", 8, "after: [{job: prep}, {job: tokenize}]\n");
  const auto request = loaded(queue);
  EXPECT_TRUE(request->jobs().empty());
  ASSERT_EQ(request->refused().size(), 1U);
  EXPECT_EQ(request->refused()[0].name, "big");
  EXPECT_NE(request->refused()[0].why.find("64 of nvidia-h100-sxm5-80g asked, the fleet has 16"),
            std::string::npos)
      << request->refused()[0].why;
  ASSERT_EQ(request->held().size(), 1U);
  EXPECT_EQ(request->held()[0].after, (std::vector<std::string>{"prep", "tokenize"}));
}

TEST(ScheduleRequest, AnArrayIsAsManyJobs) {
  QueueFiles queue;
  queue.add("many", 1, "array: {count: 5}\n");
  const auto request = loaded(queue);
  EXPECT_EQ(request->jobs().size(), 5U);
  EXPECT_EQ(started(*request, request->decide()).size(), 5U);
}

TEST(ScheduleRequest, ADirectoryGivesItsSpecsByNameAndNothingElse) {
  QueueFiles queue;
  queue.files().write("jobs/readme.txt", "no spec");
  for (const char* name : {"jobs/b", "jobs/a"}) {
    queue.add(name, 1);
    // A slash may not be in a name.
    queue.files().write(std::string(name) + ".yaml",
                        fmt::format("apiVersion: orrery/v1\nkind: Batch\nname: {}\nroles:\n"
                                    "- {{accelerators: 1, types: [h100]}}\n",
                                    name + 5));
  }
  queue.asked().jobs = {queue.files().path("jobs")};
  const auto request = loaded(queue);
  ASSERT_EQ(request->jobs().size(), 2U);
  EXPECT_EQ(request->jobs()[0].name, "a");
  EXPECT_EQ(request->jobs()[1].name, "b");
}

TEST(ScheduleRequest, ErrorsNameTheOptionOrTheFileAndLine) {
  QueueFiles queue;
  const std::string job = queue.add("a", 8);
  ScheduleOptions asked = queue.asked();
  asked.policy = "fif";
  std::string error = refusal(asked);
  EXPECT_TRUE(error.starts_with("--policy: ")) << error;
  EXPECT_NE(error.find("did you mean \"fifo\"?"), std::string::npos) << error;
  asked = queue.asked();
  asked.failures = "lama3";
  error = refusal(asked);
  EXPECT_TRUE(error.starts_with("--failures: ")) << error;
  EXPECT_NE(error.find("llama3"), std::string::npos) << error;
  asked = queue.asked();
  asked.under = "many";
  EXPECT_EQ(refusal(asked).substr(0, 9), "--under: ");
  asked.under = "";
  asked.by = "2020-01-01 00:00";
  error = refusal(asked);
  EXPECT_NE(error.find("deadline 2020-01-01T00:00:00Z is in the past"), std::string::npos) << error;
  asked = queue.asked();
  asked.fleet = queue.files().path("none.yaml");
  EXPECT_EQ(refusal(asked).substr(0, asked.fleet.size()), asked.fleet);
  queue.files().write("a.yaml", "apiVersion: orrery/v1\nkind: Batch\nname: a\nrole: []\n");
  EXPECT_EQ(refusal(queue.asked()).substr(0, job.size() + 5), job + ":4:1:");
}

TEST(ScheduleRequest, TenantsOfAFileAreThoseThatJobsMayName) {
  QueueFiles queue;
  queue.asked().tenants = queue.files().write(
      "tenants.yaml",
      "apiVersion: orrery/v1\nkind: Tenants\nname: t\ntenants:\n- name: red\n- name: blue\n");
  queue.add("a", 8, "tenant: red\n");
  const auto request = loaded(queue);
  EXPECT_EQ(request->jobs().size(), 1U);
  queue.add("b", 8, "tenant: green\n");
  const std::string error = refusal(queue.asked());
  EXPECT_NE(error.find("green"), std::string::npos) << error;
}

TEST(ScheduleRequest, ABudgetOrADeadlineIsJudgedAndNothingElse) {
  QueueFiles queue;
  queue.add("free", 1);
  queue.add("poor", 8, "estimate: 10 h\nbudget: $1\n");
  queue.add("late", 8, "estimate: 10 h\ndeadline: 2100-01-01T00:00:00Z\n");
  const auto request = loaded(queue);
  const std::vector<ScheduleRequest::Bound> bounds = request->bounds();
  ASSERT_EQ(bounds.size(), 2U);
  EXPECT_EQ(bounds[0].name, "poor");
  EXPECT_TRUE(bounds[0].admission.refusal.starts_with(
      "budget: its cheapest placement, 8 nvidia-h100-sxm5-80g, costs $"))
      << bounds[0].admission.refusal;
  EXPECT_EQ(bounds[0].admission.note, "");
  EXPECT_EQ(bounds[1].name, "late");
  EXPECT_EQ(bounds[1].admission.refusal, "");
  EXPECT_TRUE(
      bounds[1].admission.note.starts_with("on 8 nvidia-h100-sxm5-80g it takes 10 h and costs $"))
      << bounds[1].admission.note;
}

TEST(ScheduleRequest, NoDeviceIsGivenTwice) {
  constexpr std::uint64_t kSeed = 11;
  Rng rng(kSeed);
  QueueFiles queue;
  for (int i = 0; i < 12; ++i) {
    queue.add(fmt::format("job-{}", i), 1 + static_cast<int>(rng.below(8)));
  }
  const auto request = loaded(queue);
  const PassResult result = request->decide();
  std::map<NodeId, std::uint64_t> taken;
  std::size_t devices = 0;
  for (const Decision& decision : result.decisions) {
    const auto* start = std::get_if<StartJob>(&decision);
    if (start == nullptr) continue;
    for (const PlacedGang& gang : start->gangs) {
      for (const NodeDevices& at : gang.allocation.ranks) {
        EXPECT_EQ(taken[at.node] & at.devices, 0U) << "seed " << kSeed;
        taken[at.node] |= at.devices;
        devices += static_cast<std::size_t>(std::popcount(std::uint64_t{at.devices}));
      }
    }
  }
  EXPECT_GT(devices, 8U);
  EXPECT_LE(devices, 16U);
  EXPECT_EQ(started(*request, result).size() + result.waiting.size() +
                request->not_reached(result).size(),
            12U)
      << "each job starts, waits, or was not reached";
}

}  // namespace
}  // namespace orrery

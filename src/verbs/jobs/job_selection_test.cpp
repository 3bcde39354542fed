#include "verbs/jobs/job_selection.hpp"

#include <set>

#include "base/numbers/rng.hpp"
#include "verbs/cluster/live_cluster_test.hpp"

namespace orrery {
namespace {

class JobSelectionTest : public LiveClusterTest {
 protected:
  /// A cluster with jobs by the exact name that is asked for.
  void has(const std::map<std::string, std::vector<v1::Job>>& jobs) {
    on<v1::ListJobsRequest>("ListJobs", [jobs](const v1::ListJobsRequest& request) {
      v1::ListJobsResponse response;
      if (const auto found = jobs.find(request.name()); found != jobs.end()) {
        *response.mutable_jobs() = {found->second.begin(), found->second.end()};
      }
      return answer_with(response);
    });
  }
  [[nodiscard]] static std::vector<std::uint64_t> ids(const SelectedJobs& selected) {
    std::vector<std::uint64_t> found;
    found.reserve(selected.jobs.size());
    for (const SelectedJob& job : selected.jobs) found.push_back(job.id);
    return found;
  }
};

TEST(JobSelectionCheckTest, JobsOrAFilterAreNeededAndNotBoth) {
  EXPECT_EQ(check(JobSelection(), "cancel").error().text(),
            "nothing to cancel: expected numbers or names of jobs, or a filter (--name, --tenant, "
            "--user or --state)");
  EXPECT_EQ(check(JobSelection{.jobs = {"7"}, .user = "ada"}, "cancel").error().text(),
            "\"7\" and a filter: expected jobs or a filter (--name, --tenant, --user, --state), "
            "not both");
  EXPECT_TRUE(check(JobSelection{.jobs = {"7"}}, "cancel"));
  EXPECT_TRUE(check(JobSelection{.tenant = "lab"}, "cancel"));
}

TEST(JobSelectionCheckTest, AStateInWhichNothingCanBeDoneIsRefusedWithANearOne) {
  EXPECT_EQ(check(JobSelection{.phase = "runing"}, "hold").error().text(),
            "--state \"runing\", did you mean \"running\"?: expected one of held, queued, "
            "starting, running, stopping");
  EXPECT_FALSE(check(JobSelection{.phase = "finished"}, "hold"));
  for (const char* phase : {"held", "queued", "starting", "running", "stopping"}) {
    EXPECT_TRUE(check(JobSelection{.phase = phase}, "hold")) << phase;
  }
}

TEST_F(JobSelectionTest, NumbersAreNotLookedUp) {
  const auto selected = selected_jobs(session(), {.jobs = {"9", "7", "9"}});
  ASSERT_TRUE(selected) << selected.error().text();
  EXPECT_EQ(ids(*selected), (std::vector<std::uint64_t>{9, 7}));
  EXPECT_TRUE(heard<v1::ListJobsRequest>("ListJobs").empty());
  EXPECT_FALSE(selected_jobs(session(), {.jobs = {"99999999999999999999"}}));
}

TEST_F(JobSelectionTest, ANameIsAJobOrAllOfItsArrayAscending) {
  has({{"sweep", {job_named(40, "sweep", "queued")}},
       {"sweep[*]", {job_named(31, "sweep[1]", "queued"), job_named(30, "sweep[0]", "running")}},
       {"sweep[1]", {job_named(31, "sweep[1]", "queued")}}});
  EXPECT_EQ(ids(selected_jobs(session(), {.jobs = {"sweep"}}).value()),
            (std::vector<std::uint64_t>{40, 30, 31}));
  const auto one = selected_jobs(session(), {.jobs = {"sweep[1]", "nope", "sweep"}});
  ASSERT_TRUE(one);
  EXPECT_EQ(ids(*one), (std::vector<std::uint64_t>{31, 40, 30}));
  ASSERT_EQ(one->unknown.size(), 1u);
  EXPECT_EQ(one->unknown[0].name, "nope");
}

TEST_F(JobSelectionTest, AFilterIsAskedOfTheControllerAsItIs) {
  has({{"a*", {job_named(5, "ab", "queued"), job_named(2, "aa", "queued")}}});
  const auto selected = selected_jobs(
      session(), {.name = "a*", .tenant = "lab/vision", .user = "ada", .phase = "queued"});
  ASSERT_TRUE(selected);
  EXPECT_EQ(ids(*selected), (std::vector<std::uint64_t>{2, 5}));
  const auto request = heard<v1::ListJobsRequest>("ListJobs").at(0);
  EXPECT_EQ(request.tenant(), "lab/vision");
  EXPECT_EQ(request.user(), "ada");
  EXPECT_EQ(request.phase(), "queued");
  EXPECT_FALSE(request.all());
}

TEST(SelectedJobTest, ANameIsShownOnOneLine) {
  EXPECT_EQ((SelectedJob{7, "", ""}.text()), "job 7");
  EXPECT_EQ((SelectedJob{7, "a\nb", "running"}.text()), "job 7 (a\\nb)");
}

TEST_F(JobSelectionTest, NoJobIsSelectedTwiceAndTheFirstMentionGivesItsPlace) {
  constexpr std::uint64_t kSeed = 11;
  Rng rng(kSeed);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> words;
    std::vector<std::uint64_t> expected;
    std::set<std::uint64_t> seen;
    const std::uint64_t count = 1 + rng.below(12);
    words.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t id = rng.below(6);
      words.push_back(std::to_string(id));
      if (seen.insert(id).second) expected.push_back(id);
    }
    const auto selected = selected_jobs(session(), {.jobs = words});
    ASSERT_TRUE(selected);
    ASSERT_EQ(ids(*selected), expected) << "seed " << kSeed << ", round " << round;
  }
}

}  // namespace
}  // namespace orrery

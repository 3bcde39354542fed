#include "verbs/jobs/job_end.hpp"

#include "verbs/cluster/live_cluster_test.hpp"

namespace orrery {
namespace {

class JobEndTest : public LiveClusterTest {
 protected:
  void SetUp() override {
    LiveClusterTest::SetUp();
    on<v1::WaitJobRequest>("WaitJob", [](const v1::WaitJobRequest& request) {
      const bool odd = request.id() % 2 == 1;
      v1::Job job = job_named(request.id(), "t\t" + std::to_string(request.id()),
                              odd ? "finished" : "failed");
      *job.mutable_started() = seconds_from_noon(0);
      *job.mutable_ended() = seconds_from_noon(90);
      if (!odd) job.set_blame("program: exit status 1 of rank 0");
      return answer_with(job);
    });
  }
  [[nodiscard]] Status wait(const std::vector<std::uint64_t>& ids) {
    return wait_for_jobs(session(), ids, [this](const v1::Job& job, const std::string& text) {
      ended_.push_back(job);
      text_ += text + "\n";
    });
  }
  std::vector<v1::Job> ended_;
};

TEST_F(JobEndTest, FinishedJobsAreToldInTheGivenOrder) {
  EXPECT_TRUE(wait({3, 1}));
  EXPECT_EQ(text_,
            "job 3 (t\\t3) finished after 1 min 30 s\njob 1 (t\\t1) finished after 1 min 30 s\n");
}

TEST_F(JobEndTest, AJobThatFailedIsAnErrorAfterAllHaveEnded) {
  const Status status = wait({2, 1, 4});
  ASSERT_FALSE(status);
  EXPECT_EQ(ended_.size(), 3u);
  EXPECT_EQ(status.error().kind, ErrorKind::kInfeasible);
  EXPECT_EQ(status.error().message,
            "job 2 (t\\t2) failed after 1 min 30 s: program: exit status 1 of rank 0\n"
            "orrery: job 4 (t\\t4) failed after 1 min 30 s: program: exit status 1 of rank 0");
}

TEST_F(JobEndTest, AnUnknownJobEndsTheWait) {
  refuses<v1::WaitJobRequest>("WaitJob", grpc::StatusCode::NOT_FOUND, "there is no job 9");
  EXPECT_EQ(wait({9, 1}).error().text(), "there is no job 9");
  EXPECT_TRUE(ended_.empty());
  EXPECT_TRUE(wait({}));
}

TEST(EndsJsonTest, OneJobIsAnObjectAndSeveralAreAnArray) {
  EXPECT_EQ(ends_json({job_named(7, "a", "finished")})["id"], "7");
  const Json two = ends_json({job_named(7, "a", "finished"), job_named(8, "b", "failed")});
  ASSERT_TRUE(two.is_array());
  EXPECT_EQ(two[1]["phase"], "failed");
  EXPECT_EQ(ends_json({}), Json::array());
}

}  // namespace
}  // namespace orrery

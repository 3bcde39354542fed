#include "verbs/watch/cluster_view.hpp"

#include "verbs/cluster/live_cluster_test.hpp"

namespace orrery {
namespace {

const LiveText kPlain{.colour = Colour::kOff,
                      .now = Instant::parse("2026-11-27T12:00:00Z").value()};

std::string bar_of(std::uint32_t used, std::uint32_t all) {
  ClusterView view;
  view.cluster.set_accelerators_in_use(used);
  view.cluster.set_accelerators(all);
  const std::string text = cluster_view_text(kPlain, view);
  const std::size_t begin = text.find('[');
  return text.substr(begin, text.find(']') + 1 - begin);
}

TEST(ClusterViewTest, ABarIsAsLongAsThePartInUse) {
  EXPECT_EQ(bar_of(0, 0), "[--------------------]");
  EXPECT_EQ(bar_of(1, 100), "[--------------------]");
  EXPECT_EQ(bar_of(50, 100), "[##########----------]");
  EXPECT_EQ(bar_of(100, 100), "[####################]");
}

TEST(ClusterViewTest, TheHeadHasTheFiguresAndTheReasonOfAHalt) {
  ClusterView view;
  v1::Cluster& cluster = view.cluster;
  cluster.set_name("lab\x1b");
  cluster.set_version("0.1.0");
  cluster.set_emulated(true);
  *cluster.mutable_started() = seconds_from_noon(-3'600);
  cluster.set_policy("fifo");
  cluster.set_nodes(4);
  cluster.set_nodes_ready(3);
  cluster.set_jobs_running(1);
  cluster.set_jobs_waiting(2);
  cluster.set_accelerators(8);
  cluster.set_accelerators_in_use(2);
  cluster.set_accelerators_unavailable(2);
  cluster.set_halted("halted: the disk is full");
  EXPECT_EQ(cluster_view_text(kPlain, view),
            "lab\\x1b  0.1.0  emulated  started 1h ago  policy fifo\n"
            "nodes 3/4 ready   jobs 1 running, 2 waiting\n"
            "accelerators [#####---------------] 2/8 in use, 2 unavailable\n"
            "halted: the disk is full\n\nno jobs\n\nno nodes\n");
}

using LookAtClusterTest = LiveClusterTest;

TEST_F(LookAtClusterTest, JobsThatRunComeBeforeThoseThatWait) {
  answers<v1::GetClusterRequest>("GetCluster", v1::Cluster());
  answers<v1::ListNodesRequest>("ListNodes", v1::ListNodesResponse());
  on<v1::ListJobsRequest>("ListJobs", [](const v1::ListJobsRequest& request) {
    v1::ListJobsResponse response;
    *response.add_jobs() = job_named(1, request.phase(), request.phase());
    return answer_with(response);
  });
  const auto view = look_at_cluster(session());
  ASSERT_TRUE(view) << view.error().text();
  std::string phases;
  for (const v1::Job& job : view->jobs.jobs()) phases += job.phase() + " ";
  EXPECT_EQ(phases, "running starting stopping queued held ");
  EXPECT_EQ(cluster_view_json(*view)["jobs"].size(), 5u);
  refuses<v1::ListNodesRequest>("ListNodes", grpc::StatusCode::PERMISSION_DENIED, "no");
  EXPECT_EQ(look_at_cluster(session()).error().text(), "no");
}

}  // namespace
}  // namespace orrery

#include "verbs/cluster/live_words.hpp"

#include "verbs/cluster/live_cluster_test.hpp"
#include "verbs/cluster/live_lists.hpp"

namespace orrery {
namespace {

using LiveWordsTest = LiveClusterTest;

TEST_F(LiveWordsTest, JobsAreOfferedByNumberAndOnlyThoseThatBeginAsTyped) {
  write_cluster_directory();
  v1::ListJobsResponse jobs;
  *jobs.add_jobs() = job_named(7, "train", "running");
  *jobs.add_jobs() = job_named(71, "eval", "queued");
  *jobs.add_jobs() = job_named(8, "other", "held");
  answers<v1::ListJobsRequest>("ListJobs", jobs);
  EXPECT_EQ(live_words(options_, LiveWords::kLiveJobs, "7"),
            (std::vector<CompletionWord>{{"7", "train, running"}, {"71", "eval, queued"}}));
  EXPECT_EQ(live_words(options_, LiveWords::kJobs, "").size(), 3u);
  const auto heard = this->heard<v1::ListJobsRequest>("ListJobs");
  EXPECT_FALSE(heard.at(0).all());
  EXPECT_TRUE(heard.at(1).all());
}

TEST_F(LiveWordsTest, WithoutAClusterThereAreNoWords) {
  options_.cluster_directory = files_.path("no cluster");
  EXPECT_TRUE(live_words(options_, LiveWords::kNodes, "").empty());
  write_cluster_directory();
  refuses<v1::ListNodesRequest>("ListNodes", grpc::StatusCode::PERMISSION_DENIED, "no");
  EXPECT_TRUE(live_words(options_, LiveWords::kNodes, "").empty());
}

TEST(NodeWordsTest, ANodeIsDescribedByItsHealth) {
  v1::ListNodesResponse nodes;
  nodes.add_nodes()->set_name("n1");
  nodes.mutable_nodes(0)->set_health("lost");
  EXPECT_EQ(node_words(nodes), (std::vector<CompletionWord>{{"n1", "lost"}}));
}

using LiveListsTest = LiveClusterTest;

TEST_F(LiveListsTest, EveryPageIsReadOnce) {
  on<v1::ListNodesRequest>("ListNodes", [](const v1::ListNodesRequest& request) {
    const int page = request.page_token().empty() ? 0 : std::stoi(request.page_token());
    v1::ListNodesResponse response;
    response.add_nodes()->set_name("n" + std::to_string(page));
    if (page < 2) response.set_next_page_token(std::to_string(page + 1));
    return answer_with(response);
  });
  const auto nodes = list_nodes(session());
  ASSERT_TRUE(nodes) << nodes.error().text();
  ASSERT_EQ(nodes->nodes_size(), 3);
  EXPECT_EQ(nodes->nodes(2).name(), "n2");
  EXPECT_EQ(nodes->next_page_token(), "");
  EXPECT_EQ(heard<v1::ListNodesRequest>("ListNodes").size(), 3u);
}

TEST_F(LiveListsTest, APageThatIsRefusedIsTheError) {
  refuses<v1::ListPowerDomainsRequest>("ListPowerDomains", grpc::StatusCode::NOT_FOUND, "none");
  EXPECT_EQ(list_power(session()).error().text(), "none");
}

TEST(AnswerJsonTest, FieldsThatAreNotSetAreShownAndControlsEscaped) {
  const v1::Job job = job_named(7, "a\x7f", "");
  EXPECT_EQ(answer_json(job)["id"], "7");
  EXPECT_EQ(answer_json(job)["priority"], 0);
  EXPECT_EQ(answer_json(job)["name"], "a\x7f");
  const std::string line = answer_text(job, AnswerLayout::kLine);
  EXPECT_EQ(line.find('\x7f'), std::string::npos) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  EXPECT_TRUE(answer_text(job, AnswerLayout::kIndented).ends_with("}\n"));
}

TEST(LiveSessionTest, WithoutAClusterTheDirectoryIsNamed) {
  const CommandOptions options{.cluster_directory = "/no/such/cluster"};
  const auto session = LiveSession::open(options);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().kind, ErrorKind::kInput);
  EXPECT_TRUE(session.error().text().starts_with("no cluster at /no/such/cluster"))
      << session.error().text();
}

}  // namespace
}  // namespace orrery

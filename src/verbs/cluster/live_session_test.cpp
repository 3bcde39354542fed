#include "verbs/cluster/live_session.hpp"

#include <gtest/gtest.h>

#include "orrery/v1/orrery.pb.h"
#include "verbs/scratch_files_test.hpp"

namespace orrery {
namespace {

TEST(JobId, IsTheNumberAlone) {
  EXPECT_EQ(job_id("0").value(), 0U);
  EXPECT_EQ(job_id("18446744073709551615").value(), ~std::uint64_t{0});
  for (const char* wrong : {"", "x", "7x", "-1", "+1", " 7", "7 ", "18446744073709551616"}) {
    const Result<std::uint64_t> id = job_id(wrong);
    ASSERT_FALSE(id) << wrong;
    EXPECT_EQ(id.error().kind, ErrorKind::kInput);
    EXPECT_EQ(id.error().text(), std::string("job \"") + wrong +
                                     "\": expected the number of a job, as listed by `orrery jobs "
                                     "--all`");
  }
}

TEST(AnswerJson, HasTheNamesOfTheSchemaAndFieldsThatAreNotSet) {
  v1::CancelJobRequest answer;
  answer.set_id(7);
  const Json json = answer_json(answer);
  EXPECT_EQ(json["id"], "7") << "64 bits are a text in JSON of protobuf";
  EXPECT_EQ(json["request_id"], "");
}

TEST(AnswerText, IsOneLineOrIndentedAndSafeForATerminal) {
  v1::CancelJobRequest answer;
  answer.set_request_id("a\x1b[31m");
  const std::string line = answer_text(answer, AnswerLayout::kLine);
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  EXPECT_EQ(line.find('\x1b'), std::string::npos) << line;
  EXPECT_NE(answer_text(answer, AnswerLayout::kIndented).find("\n \"request_id\": "),
            std::string::npos);
  EXPECT_EQ(Json::parse(line)["request_id"], "a\x1b[31m") << "a reader gets the text itself";
}

TEST(LiveSessionOpen, NamesTheDirectoryWithoutACluster) {
  const ScratchFiles files;
  CommandOptions options;
  options.cluster_directory = files.path("none");
  const auto session = LiveSession::open(options);
  ASSERT_FALSE(session);
  EXPECT_NE(session.error().text().find(files.path("none")), std::string::npos)
      << session.error().text();
}

TEST(LiveSessionOpen, KnowsEachControllerOfTheCluster) {
  const ScratchFiles files;
  files.write("lab/cluster.json", R"({"address": "b:7", "controllers": ["a:7", "b:7"]})");
  CommandOptions options;
  options.cluster_directory = files.path("lab");
  const auto session = LiveSession::open(options);
  ASSERT_TRUE(session) << session.error().text();
  EXPECT_EQ((*session)->client().addresses(), (std::vector<std::string>{"b:7", "a:7"}));
}

}  // namespace
}  // namespace orrery

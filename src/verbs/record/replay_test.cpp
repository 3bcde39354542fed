#include "verbs/record/replay.hpp"

#include <gtest/gtest.h>

#include "verbs/record/record_file.hpp"
#include "verbs/simulate/simulate_files_test.hpp"
#include "verbs/simulate/simulate_run.hpp"

namespace orrery {
namespace {

/// Two jobs that were simulated, with a record in the directory "record/fifo" of the test.
class Replay : public testing::Test {
 protected:
  void SetUp() override {
    const Result<VerbAnswer> played = simulate({}, options("record"), {});
    ASSERT_TRUE(played) << played.error().text();
    hash_ = played->json["policies"][0]["history_hash"].dump();
  }
  /// Returns the options of the run, to be recorded in a directory of this test.
  [[nodiscard]] SimulateOptions options(const std::string& record) const {
    SimulateOptions given = run_.asked();
    given.results.record = files_.path(record);
    return given;
  }
  [[nodiscard]] std::string directory() const { return files_.path("record/fifo"); }
  [[nodiscard]] std::string failure() const {
    const Result<VerbAnswer> answer = replay({}, directory());
    return answer ? "equal" : answer.error().text();
  }

  const SimulateFiles run_{
      std::vector<PhillyRow>{{"2020-06-01 00:00:00", 3600}, {"2020-06-01 00:10:00", 60}}};
  const ScratchFiles& files_ = run_.files();
  std::string hash_;  ///< of the history, as the run printed it
};

TEST_F(Replay, OfARecordIsEqual) {
  const Result<VerbAnswer> answer = replay({}, directory());
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->json["equal"], true);
  EXPECT_EQ(answer->json["history_hash"].dump(), hash_) << "the history of the run itself";
  EXPECT_EQ(answer->text, fmt::format("{} inputs lead to the same {} events, history {}\n",
                                      answer->json["inputs"].dump(), answer->json["events"].dump(),
                                      answer->json["history_hash"].get<std::string>()));
}

TEST_F(Replay, OfAChangedSetupIsRefused) {
  files_.write("record/fifo/setup.json", files_.read("record/fifo/setup.json") + "\n");
  EXPECT_EQ(failure(), directory() +
                           "/setup.json was changed after inputs.log was recorded with "
                           "it");
}

TEST_F(Replay, OfACutRecordSaysWhere) {
  const std::string events = files_.read("record/fifo/events.log");
  files_.write("record/fifo/events.log", events.substr(0, events.size() - 3));
  EXPECT_TRUE(failure().starts_with("events.log ends in the middle of a record, at byte "))
      << failure();
  const std::string inputs = files_.read("record/fifo/inputs.log");
  files_.write("record/fifo/events.log", events);
  files_.write("record/fifo/inputs.log", inputs.substr(0, inputs.size() / 2));
  EXPECT_EQ(failure(), "the record has events that no input leads to");
}

TEST_F(Replay, OfTwoRunsMixedIsADifference) {
  SimulateOptions other = options("other");
  other.trace.file = files_.write(
      "later.csv",
      "timestamp,duration,num_gpus,gpu_time,cluster\n2020-06-01 00:00:00,1800,8,14400,a\n");
  ASSERT_TRUE(simulate({}, other, {}));
  files_.write("record/fifo/events.log", files_.read("other/fifo/events.log"));
  EXPECT_TRUE(
      failure().ends_with(": another event was decided than the one on record (JobSubmitted: "
                          "submission/request/estimate is 3600.0 instead of 1800.0)"))
      << failure();
}

TEST_F(Replay, AFileThatIsMissingIsNamed) {
  std::filesystem::remove(directory() + "/events.log");
  EXPECT_TRUE(failure().starts_with(directory() + "/events.log")) << failure();
  const Result<VerbAnswer> none = replay({}, files_.path("nothing"));
  ASSERT_FALSE(none);
  EXPECT_TRUE(none.error().text().starts_with(files_.path("nothing") + "/setup.json"))
      << none.error().text();
}

TEST_F(Replay, RecordedOptionsAreThoseOfTheRunWithTheirTexts) {
  const Result<SimulateOptions> read = recorded_options(directory());
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->machines.accelerators, "h100:8");
  EXPECT_EQ(read->machines.price, "on-demand") << "the price basis is fixed by the record";
  EXPECT_EQ(read->scheduling.policies, "fifo");
  EXPECT_GE(read->scheduling.policy_version, 1U);
  EXPECT_EQ(read->trace.file, run_.asked().trace.file);
  EXPECT_EQ(read->results.record, "") << "playing it again records nothing";
}

TEST_F(Replay, OfTheSameOptionsOnceMoreReplacesTheRecord) {
  const std::string before = files_.read("record/fifo/events.log");
  files_.write("record/fifo/catalog/left.yaml", "of an earlier run");
  ASSERT_TRUE(simulate({}, options("record"), {}));
  EXPECT_EQ(files_.read("record/fifo/events.log"), before);
  EXPECT_FALSE(std::filesystem::exists(directory() + "/catalog"));
}

TEST(RecordedCatalog, CountsWhereNoneIsNamed) {
  const ScratchFiles files;
  EXPECT_EQ(with_recorded_catalog({}, files.path("r")).catalog_directory, "");
  files.write("r/catalog/x.yaml", "");
  EXPECT_EQ(with_recorded_catalog({}, files.path("r")).catalog_directory, files.path("r/catalog"));
  CommandOptions named;
  named.catalog_directory = "mine";
  EXPECT_EQ(with_recorded_catalog(named, files.path("r")).catalog_directory, "mine");
}

TEST(RecordedOptions, ARecordWithoutAPriceIsOfATimeWhenEverythingWasRented) {
  const ScratchFiles files;
  files.write("setup.json", R"({"accelerators": "h100:8", "generate": "philly"})");
  const Result<SimulateOptions> read = recorded_options(files.path(""));
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->machines.price, "on-demand");
  EXPECT_EQ(read->scheduling.policy_version, 1U) << "older than policy versions";
  files.write("setup.json", R"({"accelerator": "h100:8"})");
  const Result<SimulateOptions> wrong = recorded_options(files.path(""));
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().text().find("setup.json:1:2"), std::string::npos) << wrong.error().text();
}

}  // namespace
}  // namespace orrery

#include "twin/faults/failure_file.hpp"

#include "twin/faults/failure_test.hpp"

namespace orrery {
namespace {

Result<FailureSpec> read(const std::string& keys) {
  Result<Document> document = Document::parse(
      "apiVersion: orrery/v1\nkind: Failures\nname: mine\n" + keys, "failures.yaml");
  if (!document) return forward_error(document);
  return read_failure_spec(*document, test_catalog());
}

std::string refused(const std::string& keys) {
  const Result<FailureSpec> spec = read(keys);
  EXPECT_FALSE(spec) << "accepted: " << keys;
  return spec ? "" : spec.error().text();
}

TEST(FailureFile, ChangesAModelOfTheCatalog) {
  const Result<FailureSpec> spec = read(
      "like: InfiniteHBD\n"
      "failures_per_1000_node_days: 8\n"
      "relapse: {probability: 0.5}\n"
      "bursts: [{scope: rack, share: 0.25, size: 3, spread: 2 min, fault: network}]\n"
      "lemons: {share: 0.02, factor: 5}\n"
      "fail_slow: {per_1000_node_days: 1, slowdown: 1.5}\n"
      "link_flaps_per_1e6_hours: 10\n"
      "silent_corruptions_per_1e6_hours: 1\n"
      "repairs: [{fault: host, repair: {transient_share: 0.5, transient: 5 min, median: 4 h, mean: "
      "6 h}}]\n"
      "detections: [{path: heartbeat, time: 5 s}]\n");
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(spec->id, "mine");
  EXPECT_EQ(spec->failures_per_1000_node_days, 8);
  EXPECT_EQ(spec->relapse.probability, 0.5);
  EXPECT_EQ(spec->relapse.shape, failure_spec("infinitehbd").relapse.shape) << "a mapping is added";
  ASSERT_EQ(spec->bursts.size(), 1u) << "a list is replaced";
  EXPECT_EQ(spec->bursts[0].spread, Seconds(120));
  EXPECT_EQ(spec->bursts[0].fault, FaultKind::kNetwork);
  EXPECT_EQ(spec->mix.size(), failure_spec("infinitehbd").mix.size()) << "what is not named stays";
  EXPECT_EQ(spec->repairs[0].repair.median, Seconds(4 * 3600));
  EXPECT_TRUE(FailureModel::make(supplied_fleet(), *spec, {}));
}

TEST(FailureFile, BeginsWithTheLlama3ProfileWhereItSaysNothing) {
  const Result<FailureSpec> spec = read("network: 0\n");
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(spec->failures_per_1000_node_days, 3.79);
  EXPECT_EQ(spec->network, 0);
}

TEST(FailureFile, SaysWhereAndWhatIsWrong) {
  EXPECT_EQ(refused("like: infinitehdb\n").substr(0, 19), "failures.yaml:4:7: ");
  EXPECT_NE(refused("like: infinitehdb\n").find("did you mean \"infinitehbd\"?"),
            std::string::npos);
  EXPECT_NE(refused("burst: []\n").find("did you mean \"bursts\"?"), std::string::npos);
  EXPECT_EQ(refused("bursts:\n- {scope: rack, share: 2, size: 3, spread: 1 s}\n"),
            "failures.yaml:5:3: share is 2, expected 0 to 1");
  EXPECT_EQ(refused("bursts:\n- {scope: rack, share: 0.2, size: 0, spread: 1 s}\n"),
            "failures.yaml:5:3: size is 0, expected 1 to 10000");
  EXPECT_EQ(refused("bursts:\n- {scope: rack, share: 0.6, size: 2, spread: 1 s}\n"
                    "- {scope: pod, share: 0.6, size: 2, spread: 1 s}\n"),
            "failures.yaml:5:1: bursts: the sum of the shares is 1.2, expected 0 to 1");
  EXPECT_EQ(refused("relapse: {probability: 1}\n"),
            "failures.yaml:4:10: probability is 1, expected 0 to 0.95");
  EXPECT_EQ(refused("mix: [{fault: ups, share: 1}]\n"),
            "failures.yaml:4:6: mix: ups is not a node fault");
  EXPECT_EQ(refused("mix: [{fault: host, share: 0}]\n"),
            "failures.yaml:4:6: mix: the shares sum to 0, expected more");
  EXPECT_EQ(refused("repair: {transient_share: 0, transient: 0 s, median: 2 h, mean: 1 h}\n"),
            "failures.yaml:4:9: mean (seconds), not below the median is 3600, expected 7200 to "
            "3200000000");
  EXPECT_NE(refused("repair: {transient_share: 0, transient: 5, median: 2 h, mean: 3 h}\n")
                .find("failures.yaml:4:41"),
            std::string::npos)
      << "a time says its unit";
  EXPECT_NE(refused("detections: [{path: heartbeet, time: 5 s}]\n").find("heartbeat"),
            std::string::npos);
  EXPECT_EQ(refused("failures_per_1000_node_days: -1\n"),
            "failures.yaml:4:30: failures_per_1000_node_days is -1, expected 0 to 1000000");
}

TEST(FailureFile, IsOfItsKind) {
  const auto text_of = [](const std::string& text) {
    const Result<Document> document = Document::parse(text, "f.yaml");
    EXPECT_TRUE(document);
    const Result<FailureSpec> spec = read_failure_spec(*document, test_catalog());
    return spec ? std::string("accepted") : spec.error().text();
  };
  EXPECT_EQ(text_of("apiVersion: orrery/v1\nkind: Fleet\nname: x\n"),
            "f.yaml:1:1: expected apiVersion orrery/v1 and kind Failures, found \"orrery/v1\" and "
            "\"Fleet\"");
  EXPECT_EQ(text_of("apiVersion: orrery/v1\nkind: Failures\n"),
            "f.yaml:1:1: the key \"name\" is missing");
  EXPECT_EQ(text_of("[1]\n").substr(0, 10), "f.yaml:1:1");
}

TEST(FailureFile, EveryModelOfTheCatalogIsSound) {
  for (const FailureSpec& spec : test_catalog().all<FailureSpec>()) {
    const Status checked = check_failure_spec(spec, test_catalog());
    EXPECT_TRUE(checked) << (checked ? "" : checked.error().text());
  }
}

TEST(FailureFile, EveryKindOfFaultIsNoticedInOneWayAndRepaired) {
  for (const auto& each : enum_words(FaultKind{})) {
    int paths = 0;
    for (const DetectionTime& row : test_catalog().all<DetectionTime>()) {
      paths += static_cast<int>(std::count(row.faults.begin(), row.faults.end(), each.value));
    }
    EXPECT_EQ(paths, 1) << each.word;
    EXPECT_NE(test_catalog().find<RepairTime>(each.word), nullptr) << each.word;
  }
}

}  // namespace
}  // namespace orrery

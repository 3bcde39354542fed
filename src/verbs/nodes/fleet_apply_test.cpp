#include "verbs/nodes/fleet_apply.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "verbs/cluster/live_cluster_test.hpp"

namespace orrery {
namespace {

const std::string kFleet =
    "apiVersion: orrery/v1\nkind: Fleet\nname: f\nsites:\n- name: s\n  halls:\n  - name: h\n"
    "    pods:\n    - name: p\n      racks:\n      - name: r\n        cooling: "
    "in-row-or-dense-air\n        nodes: [{type: dgx-h100, count: 2}]\n";

class FleetApplyTest : public LiveClusterTest {
 protected:
  /// A change that retires n1, where job 7 is.
  [[nodiscard]] static v1::FleetChange busy_change() {
    v1::FleetChange change;
    change.add_retired("n1");
    change.add_busy()->set_node("n1");
    change.mutable_busy(0)->add_jobs(7);
    return change;
  }
  [[nodiscard]] Result<AppliedFleet> apply(const v1::FleetChange& change, BusyNodes busy) {
    const FleetText fleet{"the fleet", "f.yaml"};
    return apply_fleet(session(), {.fleet = fleet, .change = change, .busy = busy}, progress());
  }
};

/// Returns the error of a fleet file with the facts of a directory.
std::string refusal(const std::string& fleet, const std::string& facts) {
  const Result<FleetText> text = read_fleet_to_apply(fleet, facts);
  return text ? "accepted" : text.error().text();
}

TEST(FleetToApply, AFileIsTakenAsItIsAndItsErrorsHaveItsName) {
  const ScratchFiles files;
  const std::string fleet = files.write("fleet.yaml", kFleet);
  EXPECT_EQ(read_fleet_to_apply(fleet, "").value().yaml, kFleet);
  files.write("fleet.yaml", "apiVersion: orrery/v1\nkind: Fleet\nsits: []\n");
  const std::string error = refusal(fleet, "");
  EXPECT_TRUE(error.starts_with(fleet + ":3:1: ")) << error;
}

TEST(FleetToApply, LineEndsOfAnotherSystemAreNoChange) {
  const ScratchFiles files;
  std::string text;
  for (const char each : kFleet) text += each == '\n' ? "\r\n" : std::string(1, each);
  EXPECT_EQ(read_fleet_to_apply(files.write("fleet.yaml", text), "").value().yaml, kFleet);
}

TEST(FleetToApply, FactsOfADirectoryAreThePlaceOfThoseThatFollowTheFleet) {
  const ScratchFiles files;
  const std::string old = "kind: Catalog\nname: old\n";
  const std::string fleet = files.write("fleet.yaml", kFleet + "---\n" + old);
  EXPECT_EQ(read_fleet_to_apply(fleet, "").value().yaml, kFleet + "---\n" + old);
  files.write("facts/b.yaml", "kind: Catalog\nname: b");
  files.write("facts/a.yaml", "kind: Catalog\nname: a\n");
  files.write("facts/calibration.yaml", "kind: Calibration\nname: c\n");
  files.write("facts/notes.txt", "no facts");
  EXPECT_EQ(read_fleet_to_apply(fleet, files.path("facts")).value().yaml,
            kFleet +
                "---\n# a.yaml\nkind: Catalog\nname: a\n"
                "---\n# b.yaml\nkind: Catalog\nname: b\n"
                "---\n# calibration.yaml\nkind: Calibration\nname: c\n")
      << "catalogs by name, then calibrations; each begins a line";
}

TEST(FleetToApply, FactsThatAreNoYamlAreNamedAndAModelIsRefused) {
  const ScratchFiles files;
  const std::string fleet = files.write("fleet.yaml", kFleet);
  const std::string model = files.write("facts/models/m.yaml", "kind: Model\nname: m\n");
  EXPECT_EQ(refusal(fleet, files.path("facts")),
            model +
                ":1:1: a model cannot be added under running jobs; copy it into the catalog/ of "
                "the controller's directory and restart orreryd");
  const std::string damaged = files.write("damaged/a.yaml", "kind: [\n");
  const std::string error = refusal(fleet, files.path("damaged"));
  EXPECT_TRUE(error.starts_with(damaged + ":")) << error;
  EXPECT_NE(refusal(fleet, files.path("none")), "accepted");
}

TEST(FleetToApply, ARequestHoldsAFleetAndItsFactsToTheLastByte) {
  constexpr std::size_t kMost = (std::size_t{4} << 20) - 4'096;
  const ScratchFiles files;
  const std::string fleet = files.write("fleet.yaml", kFleet);
  const std::string head = "kind: Catalog\nname: a\n";
  const std::size_t left =
      kMost - kFleet.size() - std::string("---\n# a.yaml\n").size() - head.size();
  // A comment in short lines fills what is left.
  std::string filled;
  filled.reserve(left);
  while (filled.size() < left) {
    const std::size_t line = std::min<std::size_t>(left - filled.size(), 4'096);
    filled += "#" + std::string(line - std::min<std::size_t>(line, 2), '.') + "\n";
  }
  filled.resize(left, '\n');
  files.write("facts/a.yaml", head + filled);
  const Result<FleetText> whole = read_fleet_to_apply(fleet, files.path("facts"));
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_EQ(whole->yaml.size(), kMost);
  files.write("facts/a.yaml", head + filled + "\n");
  EXPECT_EQ(refusal(fleet, files.path("facts")),
            fmt::format("{} with the files of {}: {} bytes, expected at most {}", fleet,
                        files.path("facts"), kMost + 1, kMost));
}

TEST(FleetToApply, TheFirstDocumentEndsBeforeTheSecond) {
  EXPECT_EQ(first_document("a: 1\n").value(), "a: 1\n");
  const auto first = first_document("a: 1\n---\nb: 2\n---\nc: 3\n");
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_TRUE(first->starts_with("a: 1\n"));
  EXPECT_EQ(first->find("b:"), std::string::npos) << *first;
  EXPECT_FALSE(first_document("a: [\n"));
}

TEST_F(FleetApplyTest, ABusyNodeIsARefusalWhereNothingElseIsAsked) {
  const auto applied = apply(busy_change(), BusyNodes::kRefuse);
  ASSERT_TRUE(applied);
  EXPECT_TRUE(applied->refused);
  EXPECT_TRUE(heard<v1::ApplyFleetRequest>("ApplyFleet").empty());
}

TEST_F(FleetApplyTest, BusyNodesAreDrainedAndWaitedForBeforeTheFleetChanges) {
  answers<v1::DrainNodeRequest>("DrainNode", v1::NodeResponse());
  int looked = 0;
  on<v1::GetNodeRequest>("GetNode", [&looked](const v1::GetNodeRequest& request) {
    v1::Node node;
    node.set_name(request.name());
    if (++looked < 2) node.add_jobs(7);
    return answer_with(node);
  });
  v1::FleetChange done;
  done.set_applied(true);
  answers<v1::ApplyFleetRequest>("ApplyFleet", done);
  const auto applied = apply(busy_change(), BusyNodes::kEvict);
  ASSERT_TRUE(applied) << applied.error().text();
  EXPECT_FALSE(applied->refused);
  EXPECT_TRUE(applied->change.applied());
  EXPECT_EQ(applied->change.busy_size(), 0);
  EXPECT_EQ(applied->change.retired(0), "n1");
  EXPECT_TRUE(messages_.starts_with("waiting until n1 is empty: job 7 on it. ")) << messages_;
  const auto drained = heard<v1::DrainNodeRequest>("DrainNode");
  ASSERT_EQ(drained.size(), 1u);
  EXPECT_TRUE(drained[0].at_once());
  EXPECT_EQ(drained[0].why(), "to be retired by fleet apply");
  EXPECT_EQ(heard<v1::ApplyFleetRequest>("ApplyFleet").at(0).fleet(), "the fleet");
}

TEST_F(FleetApplyTest, AControllerThatRefusesWithoutAReasonIsAnError) {
  answers<v1::ApplyFleetRequest>("ApplyFleet", v1::FleetChange());
  EXPECT_EQ(apply({}, BusyNodes::kRefuse).error().text(),
            "the controller did not change the fleet and gave no reason");
}

TEST_F(FleetApplyTest, WhereAgentsAreNotOfOrreryUpTheirCommandsAreTold) {
  options_.cluster_directory = files_.path("");
  v1::FleetChange change;
  EXPECT_EQ(follow_fleet(call(), change).value(), "");
  change.add_added("n9");
  const auto text = follow_fleet(call(), change);
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_NE(text->find("--node n9 --controller " + controller_.address()), std::string::npos);
}

}  // namespace
}  // namespace orrery

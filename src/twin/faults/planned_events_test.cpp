#include "twin/faults/planned_events.hpp"

#include <gtest/gtest.h>

#include <set>

#include "twin/facts_test.hpp"

namespace orrery {
namespace {

class PlannedEventsTest : public testing::Test {
 protected:
  Result<PlannedEvents> read(const std::string& events) {
    const std::string text = "apiVersion: orrery/v1\nkind: Events\nname: day\nevents:\n" + events;
    const Result<Document> document = Document::parse(text, "events.yaml");
    EXPECT_TRUE(document);
    const auto tenants = [](const std::string& file) -> Result<std::string> {
      return "text of " + file;
    };
    return read_planned_events(*document, {cluster_->topology(), begin_, tenants});
  }
  std::string error_of(const std::string& event) {
    const Result<PlannedEvents> planned = read("- {at: 1 h, " + event + "}\n");
    return planned ? "" : planned.error().text();
  }
  [[nodiscard]] Instant at(int hours) const { return begin_ + Duration::hours(hours); }

  std::unique_ptr<ControlFacts> cluster_ = facts_of(lab_with_storage(2));
  Instant begin_ = Instant() + Duration::hours(1000);
};

TEST_F(PlannedEventsTest, EachKeyBecomesWhatHappens) {
  const std::string rack = cluster_->topology().power_name(PowerDomainId(0));
  const Result<PlannedEvents> planned = read(
      "- {at: 5 h, tenants: other.yaml}\n"
      "- {at: 1 h, drain: lab/hall/su/rack-1/n2, now: true}\n"
      "- {at: 2 h, resume: lab/hall/su/rack-1/n2}\n"
      "- {at: 3 h, power: " +
      rack +
      ", cap: 20 kW}\n"
      "- {at: 4 h, power: " +
      rack +
      "}\n"
      "- {at: 6 h, fault: lab/hall/su/rack-2, kind: hbm, lasts: 2 h}\n"
      "- {at: 7 h, uplinks_of: lab/hall/su/rack-1/n1, bandwidth: 0.25}\n");
  ASSERT_TRUE(planned) << planned.error().text();
  EXPECT_EQ(planned->name, "day");
  const auto& commands = planned->commands;
  ASSERT_EQ(commands.size(), 5U);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(commands[static_cast<std::size_t>(i)].at, at(i + 1));
  const auto& drain = std::get<DrainNode>(commands[0].what);
  EXPECT_EQ(drain.node, NodeId(1));
  EXPECT_TRUE(drain.at_once);
  EXPECT_EQ(std::get<ResumeNode>(commands[1].what).node, NodeId(1));
  EXPECT_EQ(std::get<SetPowerCap>(commands[2].what).cap, Watts(20e3));
  EXPECT_EQ(std::get<SetPowerCap>(commands[3].what).cap, std::nullopt);
  EXPECT_EQ(std::get<SetTenants>(commands[4].what).yaml, "text of other.yaml");
  ASSERT_GT(planned->faults.size(), 4U) << "four nodes and the links of one leaf";
  for (std::size_t i = 0; i < 4; ++i) {
    const Fault& fault = planned->faults[i];
    EXPECT_EQ(fault.at, at(6));
    EXPECT_EQ(fault.kind, FaultKind::kHbm);
    EXPECT_EQ(fault.repair, Duration::hours(2));
    EXPECT_EQ(std::get<NodeId>(fault.scope), NodeId(static_cast<std::uint32_t>(4 + i)));
  }
  const Fault& link = planned->faults[4];
  EXPECT_TRUE(std::holds_alternative<LinkId>(link.scope));
  EXPECT_EQ(link.slowdown, 4);
  EXPECT_EQ(link.repair, Duration::max());
}

TEST_F(PlannedEventsTest, SaysWhereItIsWrongAndWhatWasExpected) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"drain: lab/hall/su/rack-3", "no node or domain \"lab/hall/su/rack-3\""},
      {"power: attic, cap: 1 kW", "no power domain \"attic\"; there are "},
      {"drain: lab, resume: lab", "an event states one of"},
      {"now: true", "an event states one of"},
      {"resume: lab, now: true", "now: expected only with drain"},
      {"resume: lab, cap: 1 kW", "cap: expected only with power"},
      {"fault: lab, lasts: 0 s", "lasts: expected more than 0 s"},
      {"drain: lab, lasts: 1 h", "lasts: expected only with"},
      {"drain: lab, kind: hbm", "kind: expected only with fault"},
      {"fault: lab, kind: fail-slow", "only a failure profile states"},
      {"uplinks_of: lab, bandwidth: 1", "from 0 to below 1"},
      {"drain: lab, bandwidth: 0.5", "bandwidth: expected only with uplinks_of"},
      {"drain: lab, untill: 5", "untill"}};
  for (const auto& [event, text] : cases) {
    const std::string error = error_of(event);
    EXPECT_NE(error.find(text), std::string::npos) << event << ": " << error;
    EXPECT_NE(error.find("events.yaml:5"), std::string::npos) << error;
  }
}

TEST_F(PlannedEventsTest, LinksThatAreNotThereAreAnError) {
  cluster_ = facts_of(R"(apiVersion: orrery/v1
kind: Fleet
name: one
sites: [{name: lab, halls: [{name: hall, pods: [{name: pod, racks: [
  {name: rack, nodes: [{type: dgx-h100}]}]}]}]}]
)");
  EXPECT_NE(error_of("uplinks_of: lab").find("no links lead up"), std::string::npos);
}

}  // namespace
}  // namespace orrery

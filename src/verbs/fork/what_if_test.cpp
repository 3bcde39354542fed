#include "verbs/fork/what_if.hpp"

#include <gtest/gtest.h>

#include "scheduler/asked_policy.hpp"
#include "twin/facts_test.hpp"
#include "verbs/store/written_store_test.hpp"

namespace orrery {
namespace {

/// The state of four nodes, each with the health that a test gives it.
class WhatIfCommands : public testing::Test {
 protected:
  WhatIfCommands()
      : facts_(facts_of(lab_with_storage(1))),
        setup_(facts_->setup(*policy_named("fifo"), Instant())),
        state_(setup_) {}

  void set(std::uint32_t node, NodeHealth health) {
    state_.apply(Instant(), NodeChanged{NodeId(node), health, {}, false, ""});
  }
  [[nodiscard]] std::string name(std::uint32_t node) const {
    return facts_->topology().node_name(NodeId(node));
  }
  [[nodiscard]] std::vector<InputKind> commands(const WhatIfOptions& asked) const {
    Result<std::vector<InputKind>> read = commands_asked(asked, state_);
    EXPECT_TRUE(read) << (read ? "" : read.error().text());
    return read ? *std::move(read) : std::vector<InputKind>();
  }
  [[nodiscard]] std::string refusal(const WhatIfOptions& asked) const {
    const Result<std::vector<InputKind>> read = commands_asked(asked, state_);
    return read ? "accepted" : read.error().text();
  }

  std::unique_ptr<ControlFacts> facts_;
  ControlSetup setup_;
  State state_;
};

TEST_F(WhatIfCommands, ANodeComesInTheWayThatItsAbsenceNeeds) {
  const auto added = [&](NodeHealth health) {
    set(1, health);
    return commands({.add = {name(1)}});
  };
  std::vector<InputKind> of = added(NodeHealth::kDrained);
  ASSERT_EQ(of.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<ResumeNode>(of[0]));
  of = added(NodeHealth::kQuarantined);
  ASSERT_FALSE(of.empty());
  EXPECT_TRUE(std::holds_alternative<NodeRepaired>(of[0]));
  of = added(NodeHealth::kLost);
  ASSERT_FALSE(of.empty());
  const auto* joined = std::get_if<NodeJoined>(of.data());
  ASSERT_NE(joined, nullptr);
  EXPECT_EQ(joined->node, NodeId(1));
  EXPECT_EQ(joined->boot, state_.node(NodeId(1)).boot + 1) << "nothing of the old boot runs";
}

TEST_F(WhatIfCommands, ANodeThatIsThereCannotBeAdded) {
  set(2, NodeHealth::kReady);
  EXPECT_EQ(refusal({.add = {name(2)}}), "--add: \"" + name(2) + "\" is not away: it is ready");
}

TEST_F(WhatIfCommands, CommandsComeInTheOrderOfTheOptionsTable) {
  set(0, NodeHealth::kReady);
  set(1, NodeHealth::kDrained);
  const std::vector<InputKind> of =
      commands({.drain = {name(0)}, .at_once = true, .add = {name(1)}, .policy = "easy"});
  ASSERT_EQ(of.size(), 3U);
  ASSERT_TRUE(std::holds_alternative<SetPolicy>(of[0]));
  EXPECT_EQ(std::get<SetPolicy>(of[0]).yaml, "apiVersion: orrery/v1\nkind: Policy\nname: easy\n");
  EXPECT_TRUE(std::holds_alternative<ResumeNode>(of[1]));
  ASSERT_TRUE(std::holds_alternative<DrainNode>(of[2]));
  EXPECT_EQ(std::get<DrainNode>(of[2]).node, NodeId(0));
  EXPECT_TRUE(std::get<DrainNode>(of[2]).at_once);
}

TEST_F(WhatIfCommands, AnUnknownNodeIsNamedWithTheNearestOne) {
  const std::string near = name(3) + "x";
  EXPECT_EQ(refusal({.drain = {near}}),
            "--drain: no node \"" + near + "\", did you mean \"" + name(3) + "\"?");
  EXPECT_TRUE(refusal({.add = {"zzzzzzzzzzzzzzzzzzzzzzz"}}).starts_with("--add: no node \"zzz"));
}

TEST_F(WhatIfCommands, ACapIsAPowerOfADomainOrNone) {
  const std::string site = setup_.topology->power_name(PowerDomainId(0));
  std::vector<InputKind> of = commands({.caps = {site + "=400 kW", site + "=none"}});
  ASSERT_EQ(of.size(), 2U);
  EXPECT_DOUBLE_EQ(std::get<SetPowerCap>(of[0]).cap->value(), 4e5);
  EXPECT_EQ(std::get<SetPowerCap>(of[0]).domain, PowerDomainId(0));
  EXPECT_FALSE(std::get<SetPowerCap>(of[1]).cap);
  EXPECT_EQ(refusal({.caps = {"400 kW"}}),
            "--cap: expected NAME=POWER, such as \"site/power-cap=400 kW\", not \"400 kW\"");
  EXPECT_EQ(refusal({.caps = {site + "=0 W"}}), "--cap: 0 W: expected more than 0");
  EXPECT_TRUE(refusal({.caps = {"nowhere=1 kW"}}).starts_with("--cap: "));
}

TEST_F(WhatIfCommands, PoliciesAndTenantsAreReadBeforeTheyAreUsed) {
  const ScratchFiles files;
  EXPECT_TRUE(refusal({.policy = "esay"}).starts_with("--policy: ")) << refusal({.policy = "esay"});
  EXPECT_EQ(refusal({.policy = "fifo:blocking=true"}),
            "--policy: expected the name of a policy without options, or a Policy file with "
            "options");
  const std::string bad =
      files.write("p.yaml", "apiVersion: orrery/v1\nkind: Policy\nname: p\nordr: x\n");
  EXPECT_TRUE(refusal({.policy = bad}).starts_with(bad + ":4:1: ")) << refusal({.policy = bad});
  const std::string tenants =
      files.write("t.yaml", "apiVersion: orrery/v1\nkind: Tenants\nname: t\ntenants: 3\n");
  EXPECT_TRUE(refusal({.tenants = tenants}).starts_with(tenants + ":4:"))
      << refusal({.tenants = tenants});
}

TEST(WhatIf, NeedsAStoreASpanAndAChange) {
  const WrittenStore store;
  const auto refusal = [&](const WhatIfOptions& asked) {
    const Result<VerbAnswer> answer = what_if({}, asked);
    return answer ? "accepted" : answer.error().text();
  };
  EXPECT_EQ(refusal({.span = "0 s", .store = store.path()}), "--span: 0 s: expected more than 0");
  EXPECT_EQ(refusal({.store = store.path()}),
            "nothing to change: expected --submit, --drain, --add, --policy, --tenants or --cap");
  const Result<VerbAnswer> none =
      what_if({}, {.policy = "easy", .store = store.files().path("none")});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::kInput);
}

TEST(WhatIf, AnIdleClusterStaysIdleAndItsStoreAsItIs) {
  const WrittenStore store;
  const std::string before = store.files().read("store/store.db");
  const Result<VerbAnswer> answer =
      what_if({}, {.policy = "easy", .span = "1 h", .store = store.path()});
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->json["jobs"], Json::array());
  EXPECT_EQ(answer->json["span_s"], 3600.0);
  EXPECT_EQ(answer->json["waiting"]["jobs"], 0);
  EXPECT_TRUE(answer->text.ends_with("(-: not within 1 h)\n")) << answer->text;
  EXPECT_EQ(store.files().read("store/store.db"), before);
}

}  // namespace
}  // namespace orrery

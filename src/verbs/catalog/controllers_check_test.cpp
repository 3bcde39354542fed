// Findings about the controllers of a shared log, from what each says of itself.
#include "verbs/catalog/controllers_check.hpp"

#include "verbs/cluster/live_cluster_test.hpp"

namespace orrery {
namespace {

v1::ControllerState leader(std::uint64_t batch) {
  v1::ControllerState state;
  state.set_leads(true);
  state.set_term(5);
  state.set_batch(batch);
  return state;
}

v1::ControllerState standby(std::uint64_t batch, double seconds) {
  v1::ControllerState state;
  state.set_batch(batch);
  state.set_behind_s(seconds);
  return state;
}

std::string text(const CheckFinding& finding) {
  return fmt::format("{} {}", word_of(finding.verdict), finding.found);
}

TEST(ControllersCheck, ALeaderAndItsStandbysAreShownWithTheirLag) {
  const auto found = check_controllers({{"a:1", leader(812)},
                                        {"b:1", standby(812, 0.3)},
                                        {"c:1", standby(700, 0.4)},
                                        {"d:1", standby(813, 0.1)}});
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(text(found[0]), "ok a:1 leads: term 5, batch 812");
  EXPECT_EQ(text(found[1]), "ok b:1 stands by: 0 batches and 0.3 s behind");
  EXPECT_EQ(text(found[2]), "ok c:1 stands by: 112 batches and 0.4 s behind");
  EXPECT_EQ(text(found[3]), "ok d:1 stands by: 0 batches and 0.1 s behind");
}

TEST(ControllersCheck, OneThatIsFarBehindOrSilentIsAWarningAndNoLeaderAProblem) {
  const auto old = check_controllers({{"a:1", leader(9'000)},
                                      {"b:1", standby(7'000, 0.1)},
                                      {"c:1", standby(9'000, 60)},
                                      {"d:1", environment_error("it is gone")}});
  EXPECT_EQ(text(old[1]), "warning b:1 stands by: 2000 batches and 0.1 s behind");
  EXPECT_EQ(text(old[2]), "warning c:1 stands by: 0 batches and 60.0 s behind");
  EXPECT_EQ(text(old[3]), "warning d:1 does not answer: it is gone");
  const auto none = check_controllers({{"b:1", standby(7, 9)}});
  EXPECT_EQ(text(none.back()), "problem none leads");
  EXPECT_TRUE(check_controllers({}).empty());
}

class AskedControllersTest : public LiveClusterTest {};

TEST_F(AskedControllersTest, EachAddressIsAskedAndTheLeaderComesFirst) {
  FakeController second(controller_.identity());
  second.start();
  answers<v1::GetControllerRequest>("GetController", standby(3, 0.2));
  second.on("GetController", [](const FakeController::Heard&) { return answer_with(leader(4)); });
  const LiveSession session(
      ClientOptions{.addresses = {controller_.address(), second.address(), "127.0.0.1:1"},
                    .authority = controller_.authority(),
                    .token = {}});
  const std::vector<AskedController> asked = ask_controllers(session);
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(asked[0].address, second.address());
  ASSERT_TRUE(asked[1].state) << asked[1].state.error().text();
  EXPECT_EQ(asked[1].state->batch(), 3u);
  EXPECT_FALSE(asked[2].state);
}

TEST_F(AskedControllersTest, ASingleControllerIsNotAsked) {
  EXPECT_TRUE(ask_controllers(session()).empty());
}

}  // namespace
}  // namespace orrery

// An agent whose certificate comes of age under running ranks.
#include "tests/end_to_end/agent_fixture.hpp"

namespace orrery {
namespace {

TEST_F(AgentTest, RenewsItsCertificateUnderRunningRanks) {
  const Duration day = Duration::hours(24);
  certify(real_->env().clock.now_wall() - day * 300);
  Storage& storage = real_->env().storage;
  const auto until = [&] {
    return term_of(read_agent_tls(storage, node_directory_).value().identity).value().until;
  };
  const Instant before = until();
  start();
  launch(kSaysWho);
  await_step(1);
  await([&] {
    return slurp(log()).find("certificate of this node is renewed") != std::string::npos;
  });
  EXPECT_GE(until() - before, day * 299);
  const Witness rank(std::stoi(read_log(0, 0).part.bytes));
  const std::size_t openings = controller_->told.openings.size();
  EXPECT_EQ(openings, 1u) << "the stream goes on";
  controller_->restart();
  await([&] { return controller_->told.openings.size() > openings; });
  EXPECT_EQ(controller_->told.openings.back().incarnation, 1u);
  EXPECT_TRUE(rank.alive());
  reconcile();
  controller_->order(EndRanks{{kAttempt, 1}, Duration::seconds(30)});
  await_stage(RankStage::kGone);
  acknowledge();
}

}  // namespace
}  // namespace orrery

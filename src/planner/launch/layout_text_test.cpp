#include "planner/launch/layout_text.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

std::string error_of(std::string_view text) {
  PlanSpace space;
  const Status status = read_layout(text, space);
  return status ? "" : status.error().message;
}

TEST(LayoutText, FixesWhatItNamesAndLeavesTheRestOpen) {
  PlanSpace space;
  ASSERT_TRUE(read_layout("tp=8, pp=16,mbs=2,recompute=full,sp=on,zero=0", space));
  EXPECT_EQ(space.tp.values(), std::vector<std::uint32_t>{8});
  EXPECT_EQ(space.pp.values(), std::vector<std::uint32_t>{16});
  EXPECT_EQ(space.micro_batch.values(), std::vector<std::uint32_t>{2});
  EXPECT_EQ(space.zero.values(), std::vector<std::uint32_t>{0});
  EXPECT_TRUE(space.recompute.allows(Recompute::kFull));
  EXPECT_FALSE(space.recompute.allows(Recompute::kNone));
  EXPECT_FALSE(space.sequence_parallel.allows(SequenceParallel::kOff));
  EXPECT_TRUE(space.dp.open());
  EXPECT_TRUE(space.offload.open());
}

TEST(LayoutText, SaysWhatIsWrong) {
  EXPECT_EQ(error_of(""), "layout: \"\": expected key=value");
  EXPECT_EQ(error_of("tp=8,,"), "layout: \"\": expected key=value");
  EXPECT_EQ(error_of("tp=0"), "layout: tp=0: expected 1 or more");
  EXPECT_EQ(error_of("tp=-1"), "layout: tp=-1: expected a whole number");
  EXPECT_EQ(error_of("tp=8.5"), "layout: tp=8.5: expected a whole number");
  EXPECT_EQ(error_of("tp=99999999999"), "layout: tp=99999999999: expected a whole number");
  EXPECT_EQ(error_of("tp=8,tp=4"), "layout: tp is given twice");
  EXPECT_EQ(error_of("mbs=8,micro_batch=4"), "layout: micro_batch is given twice");
  EXPECT_EQ(error_of("zero=4"), "layout: zero=4: expected 0 to 3");
  EXPECT_EQ(error_of("zeroo=1"), "layout: unknown key \"zeroo\", did you mean \"zero\"?");
  EXPECT_NE(error_of("recompute=ful").find("did you mean \"full\""), std::string::npos);
}

TEST(LayoutText, APrintedLayoutFixesThatPlan) {
  const ParallelPlan plan{.tp = 8,
                          .pp = 4,
                          .vpp = 2,
                          .dp = 16,
                          .cp = 2,
                          .ep = 8,
                          .zero = 1,
                          .micro_batch = 2,
                          .recompute_layers = 3,
                          .sequence_parallel = SequenceParallel::kOn,
                          .recompute = Recompute::kFull,
                          .offload = Offload::kOptimizer,
                          .context_exchange = ContextExchange::kAllToAll};
  PlanSpace space;
  ASSERT_TRUE(read_layout(print_layout(plan), space));
  EXPECT_EQ(space.tp.values().front(), plan.tp);
  EXPECT_EQ(space.vpp.values().front(), plan.vpp);
  EXPECT_EQ(space.dp.values().front(), plan.dp);
  EXPECT_EQ(space.cp.values().front(), plan.cp);
  EXPECT_EQ(space.ep.values().front(), plan.ep);
  EXPECT_EQ(space.recompute_layers.values().front(), plan.recompute_layers);
  EXPECT_EQ(space.sequence_parallel.values().front(), plan.sequence_parallel);
  EXPECT_EQ(space.recompute.values().front(), plan.recompute);
  EXPECT_EQ(space.offload.values().front(), plan.offload);
  EXPECT_EQ(space.context_exchange.values().front(), plan.context_exchange);
  EXPECT_EQ(print_layout({}), "tp=1,pp=1,dp=1,micro_batch=1");
}

}  // namespace
}  // namespace orrery

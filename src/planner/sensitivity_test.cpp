#include "planner/sensitivity.hpp"

#include <gtest/gtest.h>

#include "base/format/field_writer.hpp"
#include "hardware/builtin_catalog.hpp"
#include "perf/builtin_calibration.hpp"
#include "planner/launch/layout_text.hpp"
#include "workload/builtin_models.hpp"
#include "workload/models/model_catalog.hpp"

namespace orrery {
namespace {

const Catalog& catalog() {
  static const Catalog loaded = *Catalog::load(builtin_catalog(), {});
  return loaded;
}
const PlannerFacts& facts() {
  static const Calibration calibration = *Calibration::load(builtin_calibration(), {});
  static const PlannerFacts all{catalog(), calibration};
  return all;
}

PlanQuestion question() {
  static const ModelCatalog models = *ModelCatalog::load(builtin_models(), {});
  const MachineRequest request{.accelerator = *catalog().require<Accelerator>("h100"),
                               .accelerators = 128};
  PlanQuestion q;
  q.job = {.model = &(*models.require("llama-3.1-70b"))->model,
           .sequence = Tokens(4096),
           .global_batch = 256};
  q.machines = {{.label = "h100:128",
                 .machine = *machine_of(catalog(), request),
                 .request = request,
                 .economics = {}}};
  return q;
}

const Sensitivity& of(const std::vector<Sensitivity>& all, HardwareFigure figure) {
  for (const Sensitivity& each : all) {
    if (each.figure == figure) return each;
  }
  ADD_FAILURE() << "no such figure";
  return all.front();
}

TEST(Sensitivity, EqualsPlanningAgainOnTheChangedMachine) {
  const PlanQuestion q = question();
  const auto all = sensitivities(facts(), q, 0);
  ASSERT_TRUE(all) << all.error().text();
  EXPECT_EQ(all->size(), 10u);
  const auto base = plan(facts(), q);
  for (const HardwareFigure figure : {HardwareFigure::kPeak, HardwareFigure::kMemoryBandwidth,
                                      HardwareFigure::kScaleOutBandwidth}) {
    PlanQuestion again = q;
    again.machines[0] = *changed(facts(), q.machines[0], figure, 1.01);
    const auto other = plan(facts(), again);
    ASSERT_TRUE(base && other);
    const PlanOffer& before = base->plans.front();
    const PlanOffer& after = other->plans.front();
    const FigureChange& change = of(*all, figure).up;
    EXPECT_NEAR(change.step, after.cost.seconds / before.cost.seconds - 1, 1e-12);
    EXPECT_NEAR(*change.cost, *after.quote.run_cost / *before.quote.run_cost - 1, 1e-12);
    EXPECT_NEAR(*change.energy, *after.quote.step_energy / *before.quote.step_energy - 1, 1e-12);
  }
}

TEST(Sensitivity, BetterHardwareIsNeverSlowerNorWorseFaster) {
  const auto all = sensitivities(facts(), question(), 0);
  ASSERT_TRUE(all);
  for (const Sensitivity& each : *all) {
    const bool latency = each.figure == HardwareFigure::kScaleUpLatency ||
                         each.figure == HardwareFigure::kScaleOutLatency;
    const FigureChange& better = latency ? each.down : each.up;
    const FigureChange& worse = latency ? each.up : each.down;
    EXPECT_LE(better.step, 1e-12) << word_of(each.figure);
    EXPECT_GE(worse.step, -1e-12) << word_of(each.figure);
    EXPECT_GT(better.step, -0.05) << word_of(each.figure);
  }
  EXPECT_LT(of(*all, HardwareFigure::kPeak).up.step, -0.003);
}

TEST(Sensitivity, ChangesOneFigureAlone) {
  const PlanQuestion q = question();
  const Machine& before = q.machines[0].machine;
  const MachineChoice up =
      *changed(facts(), q.machines[0], HardwareFigure::kScaleOutBandwidth, 1.01);
  EXPECT_EQ(up.machine.tiers.front().bandwidth, before.tiers.front().bandwidth);
  EXPECT_DOUBLE_EQ(up.machine.tiers.back().bandwidth, before.tiers.back().bandwidth * 1.01);
  EXPECT_EQ(up.machine.memory, before.memory);
  EXPECT_EQ(up.machine.peak, before.peak);
}

}  // namespace
}  // namespace orrery

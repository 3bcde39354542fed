#include "workload/trace/trace_mapping.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "hardware/builtin_catalog.hpp"
#include "hardware/catalog.hpp"
#include "workload/builtin_models.hpp"
#include "workload/job_spec.hpp"

namespace orrery {
namespace {

Trace sample(int jobs) {
  Trace trace;
  for (int i = 0; i < jobs; ++i) {
    TraceJob& job = trace.jobs.emplace_back();
    job.name = "j" + std::to_string(i);
    job.accelerators = 1u << (i % 10);
  }
  return trace;
}

TEST(TraceMapping, DependsOnTheSeedAndTheNameAndNotOnTheOrder) {
  Trace forward = sample(200);
  Trace backward = forward;
  std::reverse(backward.jobs.begin(), backward.jobs.end());
  backward.jobs.erase(backward.jobs.begin());
  Trace other_seed = forward;
  map_trace(forward, {}, 1);
  map_trace(backward, {}, 1);
  map_trace(other_seed, {}, 2);
  int different = 0;
  for (std::size_t i = 0; i + 1 < forward.jobs.size(); ++i) {
    const TraceJob& one = forward.jobs[i];
    const TraceJob& same = backward.jobs[backward.jobs.size() - 1 - i];
    ASSERT_EQ(one.name, same.name);
    EXPECT_EQ(one.model, same.model);
    EXPECT_EQ(one.kind, same.kind);
    EXPECT_EQ(one.accelerators_max, same.accelerators_max);
    different += one.model != other_seed.jobs[i].model ? 1 : 0;
  }
  EXPECT_GT(different, 50);
}

TEST(TraceMapping, KeepsWhatTheFileTells) {
  Trace trace;
  trace.jobs.resize(3);
  trace.jobs[0].model = "vgg16";
  trace.jobs[0].kind = JobKind::kServe;
  trace.jobs[0].accelerators = 4;
  trace.jobs[0].accelerators_min = 3;
  trace.jobs[0].accelerators_max = 5;
  trace.jobs[1].accelerators = 0;
  trace.jobs[2].share = 500;
  map_trace(trace, {.elastic_share = 1}, 1);
  EXPECT_EQ(trace.jobs[0].model, "vgg16");
  EXPECT_EQ(trace.jobs[0].kind, JobKind::kServe);
  EXPECT_EQ(trace.jobs[0].accelerators_max, 5u);
  EXPECT_EQ(trace.jobs[1].kind, JobKind::kBatch);
  EXPECT_EQ(trace.jobs[1].model, "");
  EXPECT_EQ(trace.jobs[2].accelerators_max, 0u) << "a part of a device does not grow";
}

TEST(TraceMapping, SharesAreTheStatedOnesAndLargeJobsAreTrained) {
  Trace trace = sample(10'000);
  map_trace(trace, {}, 1);
  int elastic = 0;
  int tuned = 0;
  int small = 0;
  for (const TraceJob& job : trace.jobs) {
    if (job.accelerators_max > 0) {
      ++elastic;
      EXPECT_LE(job.accelerators_min, job.accelerators);
      EXPECT_EQ(job.accelerators_max, 2 * job.accelerators);
    }
    if (job.accelerators >= 64) {
      EXPECT_EQ(job.kind, JobKind::kTrain);
    } else {
      ++small;
      tuned += job.kind == JobKind::kFineTune ? 1 : 0;
    }
  }
  EXPECT_NEAR(elastic / 10'000.0, 0.3, 0.02);
  EXPECT_NEAR(tuned * 1.0 / small, 0.25, 0.02);
}

TEST(TraceMapping, EveryModelIsOneOfTheCatalog) {
  Trace trace = sample(2'000);
  map_trace(trace, {}, 1);
  for (const TraceJob& job : trace.jobs) {
    const std::string file = "/" + job.model + ".yaml";
    const auto models = builtin_models();
    EXPECT_TRUE(std::any_of(models.begin(), models.end(), [&](const EmbeddedFile& each) {
      return each.file.ends_with(file);
    })) << job.model;
  }
}

TEST(TraceMapping, SpeedsFollowWhatBoundsTheModel) {
  const Result<Catalog> catalog = Catalog::load(builtin_catalog(), {});
  ASSERT_TRUE(catalog);
  const auto* a100 = catalog->find<Accelerator>("a100");
  const auto* h100 = catalog->find<Accelerator>("h100");
  ASSERT_NE(a100, nullptr);
  ASSERT_NE(h100, nullptr);
  double before = 10;
  for (const ModelClass each : {ModelClass::kLanguage, ModelClass::kVision,
                                ModelClass::kRecommendation, ModelClass::kReinforcement}) {
    EXPECT_DOUBLE_EQ(type_speed(each, *a100, *a100), 1);
    const double faster = type_speed(each, *h100, *a100);
    EXPECT_GT(faster, 1);
    EXPECT_LT(faster, before) << "the less of a step is arithmetic, the less a fast one gains";
    before = faster;
  }
  EXPECT_EQ(type_speed(ModelClass::kVision, Accelerator(), *a100), 0);
}

TEST(TraceMapping, NamesOfTracesHaveTheirClass) {
  EXPECT_EQ(model_class("ResNet-50 (batch size 16)"), ModelClass::kVision);
  EXPECT_EQ(model_class("shufflenet_v2_x1_0"), ModelClass::kVision);
  EXPECT_EQ(model_class("Recommendation (batch size 512)"), ModelClass::kRecommendation);
  EXPECT_EQ(model_class("A3C"), ModelClass::kReinforcement);
  EXPECT_EQ(model_class("bert"), ModelClass::kLanguage);
  EXPECT_EQ(model_class("vit-l-16"), ModelClass::kVision);
}

}  // namespace
}  // namespace orrery

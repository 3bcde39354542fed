#include "scheduler/plans/work.hpp"

#include <gtest/gtest.h>

#include "workload/builtin_models.hpp"

namespace orrery {
namespace {

const ModelCatalog& models() {
  static const ModelCatalog kModels = *ModelCatalog::load(builtin_models(), {});
  return kModels;
}

RoleSpec role_of(WorkSpec work) {
  work.where = {.file = "job.yaml", .line = 7, .column = 3};
  RoleSpec role;
  role.accelerators = 64;
  role.work = std::move(work);
  return role;
}

SizedWork resolved(const WorkSpec& spec, JobKind kind) {
  Result<SizedWork> work = resolve_work(role_of(spec), kind, models());
  EXPECT_TRUE(work) << (work ? "" : work.error().text());
  return work ? *work : SizedWork{};
}

std::string refusal(const WorkSpec& spec, JobKind kind) {
  const Result<SizedWork> work = resolve_work(role_of(spec), kind, models());
  EXPECT_FALSE(work) << "the work was accepted";
  return work ? "" : work.error().text();
}

TEST(Work, TakesThePlannersUsualSequenceAndBatch) {
  const SizedWork sized = resolved({.model = "llama-3.1-70b"}, JobKind::kTrain);
  const TrainingWork& work = *sized.work.training();
  EXPECT_EQ(work.sequence.value(), 8192);
  EXPECT_EQ(work.global_batch, 512);
  EXPECT_FALSE(sized.steps) << "nobody said how long it is";
}

TEST(Work, ABatchNobodyStatedDividesAmongTheRolesAccelerators) {
  RoleSpec role = role_of({.model = "llama-3.1-70b"});
  role.accelerators.reset();
  role.accelerators_min = 24;
  role.accelerators_max = 40;
  const Result<SizedWork> sized = resolve_work(role, JobKind::kTrain, models());
  ASSERT_TRUE(sized);
  const double batch = sized->work.training()->global_batch;
  EXPECT_EQ(batch, 15 * static_cast<int>(batch / 15));
}

TEST(Work, CountsStepsFromTokensOrTakesThem) {
  const WorkSpec by_tokens{
      .model = "llama-3.1-8b", .sequence = 4096, .global_batch = 256, .tokens = Tokens(1e9)};
  EXPECT_EQ(*resolved(by_tokens, JobKind::kTrain).steps, 954);  // 1e9 / 1048576 = 953.7
  const WorkSpec by_steps{.model = "llama-3.1-8b", .steps = 100};
  EXPECT_EQ(*resolved(by_steps, JobKind::kTrain).steps, 100);
}

TEST(Work, EachGangOfAServiceTakesItsPartOfTheRate) {
  RoleSpec role =
      role_of({.model = "llama-3.1-8b", .rate = 12, .input_tokens = 1000, .output_tokens = 100});
  role.replicas = 3;
  const Result<SizedWork> sized = resolve_work(role, JobKind::kServe, models());
  ASSERT_TRUE(sized);
  EXPECT_EQ(sized->work.serving()->rate, 4);
}

TEST(Work, ErrorsNameTheFieldAndWhereItStands) {
  EXPECT_EQ(refusal({.model = "llama-3.1-70c"}, JobKind::kTrain),
            "job.yaml:7:3: no model \"llama-3.1-70c\" in the catalog, did you mean "
            "\"llama-3.1-70b\"?");
  EXPECT_NE(refusal({.model = "llama-3.1-8b", .precision = "fp9"}, JobKind::kTrain)
                .find("job.yaml:7:3: precision: \"fp9\" is not known"),
            std::string::npos);
  EXPECT_EQ(refusal({.model = "llama-3.1-8b", .global_batch = 1.5}, JobKind::kTrain),
            "job.yaml:7:3: global_batch: 1.5: expected a whole number from 1 to 1000000000");
  EXPECT_EQ(refusal({.model = "llama-3.1-8b", .tokens = Tokens(1e9), .steps = 3}, JobKind::kTrain),
            "job.yaml:7:3: tokens: stands beside steps; give one");
  EXPECT_EQ(refusal({.model = "llama-3.1-8b"}, JobKind::kServe),
            "job.yaml:7:3: rate: a service needs it, more than 0");
}

TEST(Work, EqualWorkHasOneIdWhateverItsLength) {
  WorkTable table;
  WorkSpec spec{.model = "llama-3.1-8b", .steps = 100};
  const WorkId one = table.intern(resolved(spec, JobKind::kTrain).work);
  spec.steps = 200;
  EXPECT_EQ(table.intern(resolved(spec, JobKind::kTrain).work), one);
  EXPECT_EQ(table.size(), 1u);
}

TEST(Work, WorkThatDiffersInOneFigureHasItsOwnId) {
  WorkTable table;
  const WorkSpec train{.model = "llama-3.1-8b"};
  const WorkSpec serve{
      .model = "llama-3.1-8b", .rate = 5, .input_tokens = 1000, .output_tokens = 100};
  std::vector<Work> all;
  const auto add = [&](WorkSpec spec, JobKind kind, auto change) {
    change(spec);
    all.push_back(resolved(spec, kind).work);
  };
  add(train, JobKind::kTrain, [](WorkSpec&) {});
  add(train, JobKind::kFineTune, [](WorkSpec&) {});
  add(train, JobKind::kTrain, [](WorkSpec& s) { s.model = "llama-3.1-70b"; });
  add(train, JobKind::kTrain, [](WorkSpec& s) { s.sequence = 4096; });
  add(train, JobKind::kTrain, [](WorkSpec& s) { s.global_batch = 100; });
  add(train, JobKind::kTrain, [](WorkSpec& s) { s.precision = "fp8"; });
  add(train, JobKind::kTrain, [](WorkSpec& s) { s.precision = "mxfp8"; });
  add(serve, JobKind::kServe, [](WorkSpec&) {});
  add(serve, JobKind::kServe, [](WorkSpec& s) { s.rate = 6; });
  add(serve, JobKind::kServe, [](WorkSpec& s) { s.input_tokens = 999; });
  add(serve, JobKind::kServe, [](WorkSpec& s) { s.output_tokens = 99; });
  add(serve, JobKind::kServe, [](WorkSpec& s) { s.precision = "fp8"; });
  add(serve, JobKind::kServe, [](WorkSpec& s) { s.ttft = Seconds(1); });
  add(serve, JobKind::kServe, [](WorkSpec& s) { s.tpot = Seconds(1); });
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(table.intern(all[i]), WorkId::at(i)) << print_work(all[i]);
  }
  EXPECT_EQ(print_work(table[WorkId(0)]),
            "llama-3.1-8b: pretrain, steps of 512 x 8192 tokens in bf16");
}

}  // namespace
}  // namespace orrery

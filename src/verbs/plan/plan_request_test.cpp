// verbs/plan/plan_request_test.cpp - options of `plan` as a question: what they mean, what is
// assumed, and what is refused.
#include "verbs/plan/plan_request.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/format/document.hpp"
#include "verbs/scratch_files_test.hpp"

namespace orrery {
namespace {

/// Changes the options of llama-3.1-8b on 64 H100.
using Change = void (*)(PlanOptions&);

PlanOptions options_with(Change change) {
  PlanOptions plan{.model = "llama-3.1-8b", .machines = {.accelerators = "h100:64"}};
  change(plan);
  return plan;
}

std::string refusal_of(const PlanOptions& plan) {
  const Result<PlanRequest> request = plan_request({}, plan);
  return request ? "it was accepted" : request.error().text();
}

std::string economics_refusal(const PlanCosts& cost) {
  const Result<EconomicsOptions> economics = economics_option({.cost = cost});
  return economics ? "it was accepted" : economics.error().text();
}

bool assumes(const PlanRequest& request, const std::string& text) {
  return std::ranges::find(request.assumptions, text) != request.assumptions.end();
}

TEST(PlanRequest, WhatIsNotGivenIsAssumedAndSaidSo) {
  const Result<PlanRequest> request = plan_request({}, options_with([](PlanOptions&) {}));
  ASSERT_TRUE(request) << request.error().text();
  const PlanQuestion& question = request->question;
  EXPECT_EQ(question.job.model, request->model.get());
  EXPECT_EQ(question.job.sequence.value(), 8192);
  EXPECT_EQ(question.job.global_batch, 512);
  EXPECT_EQ(question.objective, Objective::kTime);
  EXPECT_EQ(question.best, 5u);
  EXPECT_FALSE(question.budget);
  EXPECT_FALSE(question.run);
  ASSERT_EQ(question.machines.size(), 1u);
  EXPECT_EQ(question.machines[0].label, "h100:64");
  EXPECT_EQ(question.machines[0].machine.ranks, 64u);
  EXPECT_TRUE(assumes(*request, "--seq 8192"));
  EXPECT_TRUE(assumes(*request, "--global-batch 512"));
}

TEST(PlanRequest, WhatIsGivenIsTakenWithItsUnit) {
  const Result<PlanRequest> request = plan_request(
      {}, options_with([](PlanOptions& plan) {
        plan.machines.accelerators = "h100:4,mi300x:16";
        plan.training.sequence = 4096;
        plan.training.global_batch = 96;
        plan.training.precision = "fp8";
        plan.training.task = "lora";
        plan.training.attention = "unfused";
        plan.goal = {.objective = "time-under-budget", .budget = "$2,500", .tokens = "2T"};
        plan.cost.power_cap = "500 W";
        plan.top = 3;
        plan.effort = Effort::kExhaustive;
      }));
  ASSERT_TRUE(request) << request.error().text();
  const PlanQuestion& question = request->question;
  EXPECT_EQ(question.job.sequence.value(), 4096);
  EXPECT_EQ(question.job.global_batch, 96);
  EXPECT_EQ(question.job.precision.format, NumberFormat::kFp8);
  EXPECT_EQ(question.job.task, TrainingTask::kLora);
  EXPECT_EQ(question.job.attention, AttentionKernel::kUnfused);
  EXPECT_EQ(question.objective, Objective::kTimeUnderBudget);
  EXPECT_EQ(question.budget->value(), 2500);
  EXPECT_EQ(question.run, 2e12);
  EXPECT_EQ(question.best, 3u);
  EXPECT_EQ(question.effort, Effort::kExhaustive);
  ASSERT_EQ(question.machines.size(), 2u);
  EXPECT_EQ(question.machines[1].label, "mi300x:16");
  for (const MachineChoice& choice : question.machines) {
    EXPECT_EQ(choice.economics.power.cap->value(), 500) << choice.label;
  }
  for (const std::string& text : request->assumptions) {
    EXPECT_FALSE(text.starts_with("--")) << text << " was given";
  }
}

TEST(PlanRequest, ASequenceBeyondTheModelIsAnAssumption) {
  const Result<PlanRequest> request =
      plan_request({}, options_with([](PlanOptions& plan) { plan.training.sequence = 1'000'000; }));
  ASSERT_TRUE(request) << request.error().text();
  EXPECT_TRUE(assumes(
      *request,
      "sequences of 1000000 tokens are longer than the maximum of the model, 131072 tokens"));
}

TEST(PlanRequest, AFormatThatAMachineLacksIsSaidOnceForItsType) {
  const Result<PlanRequest> request = plan_request({}, options_with([](PlanOptions& plan) {
                                                     plan.machines.accelerators = "a100:8,a100:16";
                                                     plan.training.precision = "fp8";
                                                   }));
  ASSERT_TRUE(request) << request.error().text();
  EXPECT_EQ(std::ranges::count(request->assumptions,
                               "nvidia-a100-sxm4-80g has no rate for fp8: the 16-bit rate is used"),
            1);
}

TEST(PlanRequest, TheMachinesOfOneQuestionAreGivenInOneWay) {
  const std::string expected = "expected either --accelerators TYPE:N or --fleet FILE";
  EXPECT_EQ(refusal_of({.model = "llama-3.1-8b"}), expected);
  const ScratchFiles files;
  const std::string fleet =
      files.write("empty.yaml", "apiVersion: orrery/v1\nkind: Fleet\nname: none\nsites: []\n");
  EXPECT_EQ(refusal_of({.model = "llama-3.1-8b", .machines = {.fleet = fleet}}),
            fleet + ":1:1: the fleet has no sites");
}

TEST(PlanRequest, AWrongNumberOfAcceleratorsIsToldWithTheNearest) {
  EXPECT_EQ(refusal_of(options_with([](PlanOptions& p) { p.machines.accelerators = "h100"; })),
            "--accelerators: \"h100\": expected TYPE:N, such as h100:64");
  EXPECT_EQ(refusal_of(options_with([](PlanOptions& p) { p.machines.accelerators = "h100:-8"; })),
            "--accelerators: \"h100:-8\": expected a count from 1 to 16777216");
  EXPECT_EQ(refusal_of(options_with([](PlanOptions& p) { p.machines.accelerators = "h100:8x"; })),
            "--accelerators: \"h100:8x\": expected a count from 1 to 16777216");
  EXPECT_EQ(
      refusal_of(options_with([](PlanOptions& p) { p.machines.accelerators = "h100:8,h100:12"; })),
      "--accelerators: h100:12: 12 is not a multiple of the 8 accelerators of a node; the nearest "
      "are 8 and 16");
}

TEST(PlanRequest, AWordThatIsNoneIsAnsweredWithTheWords) {
  EXPECT_EQ(refusal_of(options_with([](PlanOptions& p) { p.goal.objective = "tim"; })),
            "--objective: \"tim\" is none of time, cost, energy, time-under-budget, did you mean "
            "\"time\"?");
  EXPECT_EQ(refusal_of(options_with([](PlanOptions& p) { p.training.attention = ""; })),
            "--attention: \"\" is neither flash nor unfused");
  EXPECT_EQ(refusal_of(options_with([](PlanOptions& p) { p.layout.fixed = "tp=2,zz=1"; })),
            "layout: unknown key \"zz\"");
}

TEST(PlanRequest, ARunIsCountedInTheUnitOfItsModel) {
  EXPECT_EQ(refusal_of(options_with([](PlanOptions& p) { p.goal.samples = "10"; })),
            "--samples: \"10\": the length of a run of llama-3.1-8b is counted in tokens, expected "
            "--tokens");
  EXPECT_EQ(refusal_of(options_with([](PlanOptions& p) {
              p.model = "vit-l-16";
              p.goal.samples = "0.5";
            })),
            "--samples: \"0.5\": expected a count such as 1.2M");
  const Result<PlanRequest> images = plan_request({}, options_with([](PlanOptions& p) {
                                                    p.model = "vit-l-16";
                                                    p.goal.samples = "1.2M";
                                                  }));
  ASSERT_TRUE(images) << images.error().text();
  EXPECT_EQ(images->question.run, 1.2e6);
}

TEST(PlanRequest, ABudgetAndItsObjectiveComeTogether) {
  const std::string expected =
      "--budget: expected --budget and --objective time-under-budget together";
  EXPECT_EQ(refusal_of(options_with([](PlanOptions& p) { p.goal.budget = "$5"; })), expected);
  EXPECT_EQ(
      refusal_of(options_with([](PlanOptions& p) { p.goal.objective = "time-under-budget"; })),
      expected);
}

TEST(PlanRequest, ARuntimeFileIsCheckedWithItsPlace) {
  const ScratchFiles files;
  PlanOptions plan = options_with([](PlanOptions&) {});
  plan.layout.runtime =
      files.write("fleet.yaml", "apiVersion: orrery/v1\nkind: Fleet\nname: mine\n");
  EXPECT_EQ(refusal_of(plan),
            plan.layout.runtime + ":1:1: expected apiVersion orrery/v1 and kind Runtime");
  plan.layout.runtime = files.path("none.yaml");
  EXPECT_EQ(refusal_of(plan), plan.layout.runtime + ": No such file or directory");
}

TEST(PlanRequest, CostsAreTakenOrLeftToTheCatalog) {
  const Result<EconomicsOptions> none = economics_option({});
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->basis);
  EXPECT_FALSE(none->storage);
  EXPECT_FALSE(none->power.cap);
  EXPECT_FALSE(none->price.owned.utilisation);
  const Result<EconomicsOptions> all = economics_option({.cost = {.price = "owned",
                                                                  .utilisation = 1,
                                                                  .region = "somewhere",
                                                                  .power_cap = "0.5 kW",
                                                                  .storage = "disk"}});
  ASSERT_TRUE(all) << all.error().text();
  EXPECT_EQ(all->basis, PriceBasis::kOwned);
  EXPECT_EQ(all->price.owned.utilisation, 1);
  EXPECT_EQ(all->site.region, "somewhere");
  EXPECT_EQ(all->power.cap->value(), 500);
  EXPECT_EQ(all->storage, "disk");
}

TEST(PlanRequest, CostsThatCannotBeAreRefused) {
  EXPECT_EQ(economics_refusal({.price = "cheap"}),
            "--price: \"cheap\" is none of spot, on-demand, hyperscaler, owned");
  EXPECT_EQ(economics_refusal({.utilisation = 0}),
            "--utilisation: 0: expected more than 0, at most 1");
  EXPECT_EQ(economics_refusal({.utilisation = 1.01}),
            "--utilisation: 1.01: expected more than 0, at most 1");
  EXPECT_EQ(economics_refusal({.power_cap = "500"}),
            "--power-cap: \"500\" has no unit; expected a power such as \"12 MW\"");
  EXPECT_EQ(economics_refusal({.power_cap = "0 W"}), "--power-cap: 0 W: expected more than 0");
}

TEST(PlanRequest, TheOptionsOfACellHaveTheNamesOfTheCommandLine) {
  const Result<Document> document = Document::parse(
      "model: m\naccelerators: h100:8\nseq: 128\nglobal_batch: 2\nbudget: $1\nlayout: tp=2\n"
      "runtime: r.yaml\nprice: spot\nregion: here\ninput_rate: 1 GB/s\nrelease: none\n",
      "cell.yaml");
  ASSERT_TRUE(document);
  PlanOptions plan;
  ASSERT_TRUE(read_struct(document->root(), plan, {}));
  EXPECT_EQ(plan.model, "m");
  EXPECT_EQ(plan.machines.accelerators, "h100:8");
  EXPECT_EQ(plan.training.sequence, 128);
  EXPECT_EQ(plan.training.global_batch, 2);
  EXPECT_EQ(plan.training.input_rate, "1 GB/s");
  EXPECT_EQ(plan.training.release, "none");
  EXPECT_EQ(plan.training.precision, "bf16");
  EXPECT_EQ(plan.goal.budget, "$1");
  EXPECT_EQ(plan.layout.fixed, "tp=2");
  EXPECT_EQ(plan.layout.runtime, "r.yaml");
  EXPECT_EQ(plan.cost.price, "spot");
  EXPECT_EQ(plan.cost.region, "here");
}

TEST(PlanRequest, AModelOfUnknownArchitectureIsRefusedByName) {
  const ScratchFiles files;
  const std::string path =
      files.write("config.json",
                  R"({"model_type": "nobody-knows", "hidden_size": 64, "num_hidden_layers": 2,
          "num_attention_heads": 4, "vocab_size": 100, "intermediate_size": 128})");
  const Result<QuestionFacts> facts = question_facts({}, path, {});
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().text(),
            "--model: " + path +
                ": unknown model_type \"nobody-knows\"; a model with the Llama architecture may "
                "state \"llama\"");
}

}  // namespace
}  // namespace orrery

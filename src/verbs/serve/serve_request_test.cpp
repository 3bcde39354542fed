// verbs/serve/serve_request_test.cpp - options of `plan --serve` as a question, and refusals.
#include "verbs/serve/serve_request.hpp"

#include <gtest/gtest.h>

#include "verbs/serve/serve_answer.hpp"

namespace orrery {
namespace {

PlanOptions on_h100() { return {.model = "llama-3.1-8b", .machines = {.accelerators = "h100"}}; }

std::string refusal_of(const ServeOptions& serve, const PlanOptions& plan = on_h100()) {
  const Result<ServeRequest> request = serve_request({}, {plan, serve});
  return request ? "it was accepted" : request.error().text();
}

TEST(ServeRequest, OptionsBecomeTheQuestion) {
  PlanOptions plan = on_h100();
  plan.machines.accelerators = "h100:16,mi300x";
  plan.cost.power_cap = "500 W";
  plan.top = 7;
  const ServeOptions serve{.input_tokens = 1000,
                           .output_tokens = 200,
                           .rate = 2.5,
                           .ttft = "500 ms",
                           .tpot = "0.02 s",
                           .engine = "TensorRT-LLM:1.1",
                           .precision = "fp8,BF16",
                           .objective = "energy"};
  const Result<ServeRequest> request = serve_request({}, {plan, serve});
  ASSERT_TRUE(request) << request.error().text();
  const ServingQuestion& question = request->question;
  EXPECT_EQ(question.model, request->model.get());
  EXPECT_EQ(question.input, 1000);
  EXPECT_EQ(question.output, 200);
  EXPECT_EQ(question.rate, 2.5);
  EXPECT_DOUBLE_EQ(question.limits.ttft->value(), 0.5);
  EXPECT_DOUBLE_EQ(question.limits.tpot->value(), 0.02);
  EXPECT_EQ(question.engine, "tensorrt-llm");
  EXPECT_EQ(question.engine_version, "1.1");
  EXPECT_EQ(question.formats, (std::vector{NumberFormat::kFp8, NumberFormat::kBf16}));
  EXPECT_EQ(question.objective, ServingObjective::kEnergy);
  EXPECT_EQ(question.best, 7u);
  ASSERT_EQ(question.machines.size(), 2u);
  EXPECT_EQ(question.machines[0].accelerators, 16u);
  EXPECT_FALSE(question.machines[1].accelerators) << "as many as needed";
  EXPECT_EQ(question.machines[1].economics.power.cap->value(), 500);
}

TEST(ServeRequest, AnyStandsForWhatHasAPrice) {
  PlanOptions plan = on_h100();
  plan.machines.accelerators = "any";
  const Result<ServeRequest> request =
      serve_request({}, {plan, {.input_tokens = 1, .output_tokens = 1}});
  ASSERT_TRUE(request) << request.error().text();
  const Catalog& catalog = request->known->catalog();
  for (const ServingChoice& choice : request->question.machines) {
    EXPECT_NE(catalog.price(*choice.accelerator), nullptr) << choice.label;
  }
  const std::size_t left = catalog.all<Accelerator>().size() - request->question.machines.size();
  ASSERT_GT(left, 0u);
  ASSERT_EQ(request->assumptions.size(), 1u);
  EXPECT_EQ(request->assumptions[0],
            "left out: accelerators of the catalog without a price (" + std::to_string(left) + ")");
}

TEST(ServeRequest, TheSizesOfARequestAreRequired) {
  EXPECT_EQ(refusal_of({}), "--input-tokens: required with --serve");
  EXPECT_EQ(refusal_of({.input_tokens = 5}), "--output-tokens: required with --serve");
}

TEST(ServeRequest, AWrongValueIsToldWithItsOption) {
  EXPECT_EQ(refusal_of({.input_tokens = 1, .output_tokens = 1, .ttft = "3"}),
            "--ttft: \"3\" has no unit; expected a time such as \"1.5 h\"");
  EXPECT_EQ(refusal_of({.input_tokens = 1, .output_tokens = 1, .tpot = "0 s"}),
            "--tpot: 0 s: expected more than 0");
  EXPECT_EQ(refusal_of({.input_tokens = 1, .output_tokens = 1, .engine = "vlm:3"}),
            "--engine: \"vlm\" is none of vllm, tensorrt-llm, sglang, atom, deepspeed, habana, "
            "neuronx, jetstream, did you mean \"vllm\"?");
  EXPECT_EQ(refusal_of({.input_tokens = 1, .output_tokens = 1, .precision = "fp8,fp32"}),
            "--precision: \"fp32\": expected one or more of bf16, fp16, fp8, fp6, fp4, nvfp4, "
            "mxfp4, int8, int4");
  EXPECT_EQ(refusal_of({.input_tokens = 1, .output_tokens = 1, .objective = "time"}),
            "--objective: \"time\" is none of cost, energy, rack");
}

TEST(ServeRequest, MachinesAreGivenInOneWayAndCounted) {
  const ServeOptions serve{.input_tokens = 1, .output_tokens = 1};
  PlanOptions plan = on_h100();
  plan.machines.accelerators = "";
  EXPECT_EQ(refusal_of(serve, plan),
            "expected either --accelerators TYPE[:N] (or any) or --fleet FILE");
  plan.machines.accelerators = "h100:0";
  EXPECT_EQ(refusal_of(serve, plan),
            "--accelerators: \"h100:0\": expected a count from 1 to 16777216");
  plan.machines.accelerators = "h100:";
  EXPECT_EQ(refusal_of(serve, plan),
            "--accelerators: \"h100:\": expected a count from 1 to 16777216");
}

TEST(ServeRequest, AServiceIsPlannedFromItsOptions) {
  const Result<VerbAnswer> answer =
      report_serving({}, {on_h100(), {.input_tokens = 1000, .output_tokens = 100, .rate = 5}});
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_TRUE(
      answer->text.starts_with("llama-3.1-8b, requests of 1,000 + 100 tokens, 5 per second\n"));
  ASSERT_FALSE(answer->json["plans"].empty());
  EXPECT_DOUBLE_EQ(answer->json["plans"][0]["output_tokens_s"].get<double>(), 500);
}

}  // namespace
}  // namespace orrery

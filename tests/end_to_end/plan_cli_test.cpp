// tests/end_to_end/plan_cli_test.cpp - the verb plan as a user runs it: its assumptions, the units
// of a run, and the commands and configurations it emits.
#include <nlohmann/json.hpp>

#include "tests/end_to_end/cli.hpp"

namespace orrery {
namespace {

class PlanCli : public Cli {};

const std::string kPlanOfLlama = "plan --model llama-3.1-8b --accelerators h100:64 ";

TEST_F(PlanCli, APlanNamesItsReleaseAndTakesAnother) {
  const std::string asked = "plan --model llama-3.1-8b --accelerators b200:8 --top 1 ";
  const CliRun newest = orrery(asked + "-o json --html " + path("plan.html"));
  ASSERT_EQ(newest.code, 0) << newest.err;
  const auto json = nlohmann::json::parse(newest.out);
  EXPECT_NE(json["assumptions"].dump().find("software: NeMo release 26.08"), std::string::npos);
  EXPECT_EQ(json["plans"][0]["mfu_peak"], "16-bit dense");
  const std::string page = slurp(path("plan.html"));
  EXPECT_NE(page.find("software: NeMo release 26.08"), std::string::npos);
  EXPECT_NE(page.find("MFU (16-bit peak)"), std::string::npos);
  const CliRun none = orrery(asked + "-o json --release none");
  ASSERT_EQ(none.code, 0) << none.err;
  EXPECT_GT(nlohmann::json::parse(none.out)["plans"][0]["step_s"],
            json["plans"][0]["step_s"].get<double>() * 1.1);
  const CliRun wrong = orrery(asked + "--release 26.05");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(
      wrong.err.find("--release: \"26.05\" is not a known release; known, nearest first: 26.0"),
      std::string::npos)
      << wrong.err;
  const CliRun text = orrery(asked + "--precision fp8");
  EXPECT_NE(text.out.find(" of the dense 16-bit peak, "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find(" of the fp8 peak"), std::string::npos) << text.out;
}

TEST_F(PlanCli, ImagesAreNoTokens) {
  const std::string asked = "plan --model vit-h-14 --accelerators h100:32 --top 1 ";
  const CliRun open = orrery(asked);
  ASSERT_EQ(open.code, 0) << open.err;
  EXPECT_NE(open.out.find("4,096 images of 257 tokens"), std::string::npos) << open.out;
  EXPECT_NE(open.out.find(" images/s"), std::string::npos) << open.out;
  EXPECT_NE(open.out.find("1,000 images: "), std::string::npos) << open.out;
  EXPECT_EQ(open.out.find("tokens/s"), std::string::npos) << open.out;
  EXPECT_EQ(open.out.find("A run of"), std::string::npos) << open.out;
  const CliRun stated = orrery(asked + "--samples 1.2M");
  EXPECT_NE(stated.out.find("A run of 1,200,000 images: 293 steps"), std::string::npos)
      << stated.out;
  const CliRun wrong = orrery(asked + "--tokens 1T");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("is counted in images, expected --samples"), std::string::npos)
      << wrong.err;
  const CliRun json = orrery(asked + "-o json");
  const auto plan = nlohmann::json::parse(json.out)["plans"][0];
  EXPECT_TRUE(plan["run"].is_null());
  EXPECT_TRUE(plan.contains("images_per_s"));
  EXPECT_FALSE(plan.contains("tokens_per_s"));
}

TEST_F(PlanCli, EmitsThePlanForThreeLaunchers) {
  const CliRun megatron = orrery(kPlanOfLlama + "--emit megatron");
  EXPECT_EQ(megatron.code, 0) << megatron.err;
  EXPECT_NE(megatron.out.find("--tensor-model-parallel-size"), std::string::npos);
  const CliRun deepspeed = orrery(kPlanOfLlama + "--emit deepspeed");
  ASSERT_EQ(deepspeed.code, 0) << deepspeed.err;
  EXPECT_EQ(nlohmann::json::parse(deepspeed.out)["train_batch_size"], 512);
  const CliRun fsdp = orrery(kPlanOfLlama + "--emit fsdp");
  ASSERT_EQ(fsdp.code, 0) << fsdp.err;
  EXPECT_NE(fsdp.out.find("distributed_type: FSDP"), std::string::npos);
  const CliRun tensor = orrery(kPlanOfLlama + "--emit fsdp --layout tp=2");
  EXPECT_EQ(tensor.code, 2);
  EXPECT_NE(tensor.err.find("FSDP: tp 2 is not in 1 to 1"), std::string::npos) << tensor.err;
  EXPECT_EQ(orrery(kPlanOfLlama + "--emit slurm").code, 2);
}

TEST_F(PlanCli, AShellRunsTheEmittedCommandWithWhatItAsksFor) {
  const CliRun emitted = orrery(
      "plan --model deepseek-v3 --accelerators h100:512 --seq 4096 --global-batch 4096 --tokens 1T "
      "--emit megatron");
  ASSERT_EQ(emitted.code, 0) << emitted.err;
  const std::string script = write("train.sh", emitted.out);
  std::filesystem::create_directory(path("bin"));
  const std::string torchrun =
      write("bin/torchrun", "#!/bin/sh\nprintf '%s\\n' \"$@\" > " + path("arguments") + "\n");
  std::filesystem::permissions(torchrun, std::filesystem::perms::owner_all);
  const std::string run = " PATH=" + path("bin") + ":$PATH sh " + script + " 2>" + path("err");
  EXPECT_NE(std::system(("DATA_PATH=d MASTER_ADDR=node-0" + run).c_str()), 0);
  EXPECT_NE(slurp(path("err")).find("TOKENIZER_MODEL: name or directory"), std::string::npos);
  ASSERT_EQ(std::system(("DATA_PATH=d TOKENIZER_MODEL=t MASTER_ADDR=node-0" + run).c_str()), 0)
      << slurp(path("err"));
  const std::string arguments = "\n" + slurp(path("arguments"));
  for (const char* pair :
       {"--rdzv-endpoint\nnode-0:29500", "--moe-layer-freq\n[0]*3+[1]*58", "--lr\n1e-4",
        "--data-path\nd", "--tokenizer-model\nt", "--train-iters\n59605"}) {
    EXPECT_NE(arguments.find("\n" + std::string(pair) + "\n"), std::string::npos)
        << pair << arguments;
  }
}

TEST_F(PlanCli, AServiceIsEmittedForTheEngineThatItIsPlannedFor) {
  const std::string asked =
      "plan --serve --model llama-3.1-8b --accelerators h100:8 --input-tokens 1000 "
      "--output-tokens 200 ";
  const CliRun emitted = orrery(asked + "--emit sglang");
  ASSERT_EQ(emitted.code, 0) << emitted.err;
  const std::string script = write("serve.sh", emitted.out);
  std::filesystem::create_directory(path("bin"));
  const std::string python =
      write("bin/python3", "#!/bin/sh\nprintf '%s\\n' \"$@\" > " + path("arguments") + "\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const std::string run = " PATH=" + path("bin") + ":$PATH sh " + script + " 2>" + path("err");
  EXPECT_NE(std::system(run.c_str()), 0);
  EXPECT_NE(slurp(path("err")).find("MODEL: directory or file"), std::string::npos);
  ASSERT_EQ(std::system(("MODEL='/a b'" + run).c_str()), 0) << slurp(path("err"));
  const std::string arguments = "\n" + slurp(path("arguments"));
  for (const char* pair : {"sglang.launch_server\n--model-path\n/a b", "--context-length\n1200"}) {
    EXPECT_NE(arguments.find("\n" + std::string(pair) + "\n"), std::string::npos)
        << pair << arguments;
  }
  const auto json = nlohmann::json::parse(orrery(asked + "-o json --emit vllm").out);
  EXPECT_EQ(json["engine"], "vllm");
  const CliRun megatron = orrery(asked + "--emit megatron");
  EXPECT_EQ(megatron.code, 2);
  EXPECT_NE(megatron.err.find("expected vllm, sglang, trtllm or llamacpp"), std::string::npos);
  EXPECT_EQ(orrery(asked + "--emit vllm --engine sglang").code, 2);
  EXPECT_EQ(orrery(kPlanOfLlama + "--emit vllm").code, 2);
}

TEST_F(PlanCli, DeepspeedIsPlannedWithinItsLimits) {
  const CliRun run = orrery("plan --model llama-3.1-70b --accelerators h100:64 --emit deepspeed");
  ASSERT_EQ(run.code, 0) << run.err;
  const auto config = nlohmann::json::parse(run.out);
  if (config.contains("tensor_parallel")) EXPECT_LE(config["zero_optimization"]["stage"], 2);
  const std::string stated =
      "plan --model llama-3.1-70b --accelerators h100:64 --emit deepspeed --layout tp=2,zero=3";
  const CliRun both = orrery(stated);
  EXPECT_EQ(both.code, 2);
  EXPECT_NE(both.err.find("zero 3 beside tp 2 is not declared"), std::string::npos) << both.err;
}

TEST_F(PlanCli, ADesignNamesItsFormatsAndTakesAnother) {
  const std::string asked = std::string("design ") + ORRERY_SOURCE_DIR +
                            "/examples/designs/inference-site.yaml --candidates h100 --no-twin";
  const CliRun usual = orrery(asked);
  ASSERT_EQ(usual.code, 0) << usual.err;
  EXPECT_NE(usual.out.find("bf16, tp="), std::string::npos) << usual.out;
  const CliRun narrow = orrery(asked + " --precision fp8");
  ASSERT_EQ(narrow.code, 0) << narrow.err;
  EXPECT_NE(narrow.out.find("fp8, tp="), std::string::npos) << narrow.out;
  EXPECT_EQ(narrow.out.find("bf16, tp="), std::string::npos) << narrow.out;
  EXPECT_NE(orrery(asked + " --precision bf61").err.find("did you mean \"bf16\""),
            std::string::npos);
}

TEST_F(Cli, TheHostMemoryOfACatalogsOverlayBoundsWhatIsOffloaded) {
  std::filesystem::create_directory(path("overlay"));
  (void)write("overlay/nodes.yaml",
              "apiVersion: orrery/v1\nkind: Catalog\nname: overlay\nnodes:\n"
              "- {id: dgx-h100, host_dram_bytes: 64 GB}\n");
  const std::string plan =
      "plan --model llama-3.1-405b --accelerators h100:64 --layout offload=optimizer -o json";
  const CliRun large = orrery(plan);
  EXPECT_EQ(large.code, 0) << large.err;
  const CliRun small = orrery(plan + " --catalog " + path("overlay"));
  EXPECT_EQ(small.code, 1) << small.out;
  EXPECT_NE(small.err.find("out of host memory"), std::string::npos) << small.err;
  EXPECT_NE(small.err.find("dgx-h100 has 59.6 GiB"), std::string::npos) << small.err;
}

TEST_F(PlanCli, AServiceThatNoNodeHoldsSpansSeveral) {
  const std::string asked =
      "plan --serve --model llama-3.1-405b --precision bf16 --input-tokens 1000 "
      "--output-tokens 200 --accelerators ";
  const CliRun text = orrery(asked + "h100:32");
  ASSERT_EQ(text.code, 0) << text.err;
  for (const char* part :
       {"x 16 over 2 nodes: ", "no 8 of them hold the model in bf16, so an instance",
        "nodes of dgx-h100 (8 accelerators), InfiniBand NDR", "a replica of a live service is"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  }
  const auto json = nlohmann::json::parse(orrery(asked + "h100:32 -o json").out);
  EXPECT_EQ(json["plans"][0]["replica_nodes"], 2);
  const CliRun one = orrery(asked + "h100:8");
  EXPECT_EQ(one.code, 1);
  EXPECT_NE(one.err.find("16 accelerators"), std::string::npos) << one.err;

  const std::string script = write("serve.sh", orrery(asked + "h100:32 --emit vllm").out);
  std::filesystem::create_directory(path("bin"));
  const std::string vllm =
      write("bin/vllm", "#!/bin/sh\nprintf '%s ' \"$@\" > " + path("arguments") + "\n");
  std::filesystem::permissions(vllm, std::filesystem::perms::owner_all);
  const std::string run = " PATH=" + path("bin") + ":$PATH sh " + script + " 2>" + path("err");
  EXPECT_NE(std::system(("MODEL=m NODE_RANK=0" + run).c_str()), 0);
  EXPECT_NE(slurp(path("err")).find("FIRST_NODE: address of node 0"), std::string::npos);
  for (const std::string rank : {"0", "1"}) {
    const std::string set = "MODEL=m FIRST_NODE=n0 NODE_RANK=" + rank;
    ASSERT_EQ(std::system((set + run).c_str()), 0) << slurp(path("err"));
    const std::string arguments = slurp(path("arguments"));
    EXPECT_NE(arguments.find("--nnodes 2 --node-rank " + rank + " --master-addr n0 "),
              std::string::npos)
        << arguments;
    EXPECT_EQ(arguments.find("--headless") != std::string::npos, rank == "1") << arguments;
  }
}

TEST_F(PlanCli, PrefillAndDecodeApartStandBesideTheJointPlans) {
  const std::string asked =
      "plan --serve --model llama-3.1-70b --precision fp8 --input-tokens 8000 --output-tokens 200 "
      "--rate 50 --tpot '20 ms' --accelerators h100 ";
  const CliRun text = orrery(asked);
  ASSERT_EQ(text.code, 0) << text.err;
  for (const char* part : {"Prefill and decode apart, best of each machine", "KV sent in",
                           "A token costs ", "than in plan 1. Prefill instances compute"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  }
  const auto json = nlohmann::json::parse(orrery(asked + "-o json").out);
  const auto& apart = json["apart"].at(0);
  EXPECT_EQ(apart["requests_s"], 50);
  EXPECT_LE(apart["tpot_s"], 0.02);
  EXPECT_GT(apart["kv_transfer_s"], 0);
  EXPECT_EQ(apart["accelerators"],
            apart["prefill"]["replicas"].get<int>() * apart["prefill"]["tp"].get<int>() *
                    apart["prefill"]["pp"].get<int>() +
                apart["decode"]["replicas"].get<int>() * apart["decode"]["tp"].get<int>() *
                    apart["decode"]["pp"].get<int>());

  const std::string script = write("apart.sh", orrery(asked + "--apart --emit sglang").out);
  std::filesystem::create_directory(path("bin"));
  const std::string python =
      write("bin/python3", "#!/bin/sh\nprintf '%s ' \"$@\" > " + path("arguments") + "\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const std::string run =
      " MODEL=m PATH=" + path("bin") + ":$PATH sh " + script + " 2>" + path("err");
  EXPECT_NE(std::system(run.c_str()), 0);
  EXPECT_NE(slurp(path("err")).find("ROLE: prefill or decode"), std::string::npos);
  for (const std::string role : {"prefill", "decode"}) {
    ASSERT_EQ(std::system(("ROLE=" + role + run).c_str()), 0) << slurp(path("err"));
    const std::string arguments = slurp(path("arguments"));
    EXPECT_NE(arguments.find("--disaggregation-mode " + role), std::string::npos) << arguments;
  }
  EXPECT_NE(std::system(("ROLE=both" + run).c_str()), 0);
  EXPECT_EQ(orrery(asked + "--apart").code, 2);
  const CliRun none = orrery(asked + "--apart --emit llamacpp");
  EXPECT_EQ(none.code, 1);
  EXPECT_NE(none.err.find("llama-server cannot be told to hand prompts over"), std::string::npos);
}

}  // namespace
}  // namespace orrery

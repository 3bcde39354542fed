// The program as a user runs it: a process, its exit code, what it prints where.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/end_to_end/cli.hpp"

namespace orrery {

std::string program() { return ORRERY_PROGRAM; }

namespace {

constexpr const char* kHeader = "apiVersion: orrery/v1\nkind: Catalog\nname: mine\n";

TEST_F(Cli, ShowsAnAcceleratorByItsShortName) {
  const CliRun text = orrery("catalog show h100");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("989.4 TFLOP/s"), std::string::npos);
  EXPECT_EQ(text.err, "");
  const CliRun json = orrery("catalog show H100 -o json");
  const auto parsed = nlohmann::json::parse(json.out);
  EXPECT_EQ(parsed["id"], "nvidia-h100-sxm5-80g");
  EXPECT_EQ(parsed["hbm_bytes"], 85899345920);
  EXPECT_EQ(parsed["confidence"], "datasheet");
  EXPECT_EQ(parsed["supply"]["platform"], "cuda");
}

TEST_F(Cli, EveryKindOfTheCatalogCanBeListedAsTextAndJson) {
  const auto kinds = nlohmann::json::parse(orrery("catalog list -o json").out);
  ASSERT_GE(kinds.size(), 25u);
  for (std::size_t i = 0; i < kinds.size(); i += 4) {  // all are of one template
    const auto& kind = kinds[i];
    const std::string name = kind["kind"];
    const auto rows = nlohmann::json::parse(orrery("catalog list " + name + " -o json").out);
    EXPECT_EQ(rows.size(), kind["rows"]) << name;
  }
  EXPECT_EQ(orrery("catalog list accelerators").code, 0);
}

TEST_F(Cli, ANameOfTwoKindsIsShownOfTheKindAskedFor) {
  const auto first = nlohmann::json::parse(orrery("catalog show Texas-ERCOT -o json").out);
  EXPECT_EQ(first["catalog"], "grid_carbon_g_per_kwh");
  const auto second = nlohmann::json::parse(
      orrery("catalog show Texas-ERCOT --kind electricity_usd_per_kwh -o json").out);
  EXPECT_EQ(second["typical"], 0.062);
  EXPECT_EQ(orrery("catalog show h100 --kind nodes").code, 2);
}

TEST_F(Cli, AnUnknownNameIsWrongInputAndSuggestsTheNearest) {
  const CliRun run = orrery("catalog show h10O");
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find("\"h10O\" is not in the catalog"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("h100"), std::string::npos) << run.err;
}

TEST_F(Cli, AnswersWhetherAFrameworkRunsOnAnAccelerator) {
  const CliRun run = orrery("catalog stacks tensorflow trainium");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("TensorFlow on Trainium1 (aws-trainium1):"), std::string::npos) << run.out;
  const auto other = nlohmann::json::parse(orrery("catalog stacks h100 pytorch -o json").out);
  EXPECT_EQ(other["support"], "supported");
  EXPECT_EQ(orrery("catalog stacks fortran h100").code, 2);
}

TEST_F(Cli, AHypotheticalChipIsATenLineFile) {
  std::filesystem::create_directory(path("overlay"));
  static_cast<void>(write("overlay/dream.yaml", std::string(kHeader) + R"(accelerators:
- id: dream
  like: h100
  name: A dream
  hbm_bytes: 256 GiB
  confidence: assumed
nodes:
- {id: dream-8, like: dgx-h100, accelerator: dream}
)"));
  const auto shown =
      nlohmann::json::parse(orrery("catalog show dream -o json --catalog " + path("overlay")).out);
  EXPECT_EQ(shown["hbm_bytes"], 274877906944);
  EXPECT_EQ(shown["bf16_dense_flops"], 989400000000000);
  EXPECT_EQ(shown["nodes"][0], "dream-8");
  EXPECT_EQ(orrery("catalog show dream").code, 2);
}

TEST_F(Cli, AWrongOverlayNamesFileLineAndColumn) {
  std::filesystem::create_directory(path("overlay"));
  const std::string file = write("overlay/bad.yaml", std::string(kHeader) +
                                                         "accelerators:\n- id: x\n  like: h100\n  "
                                                         "tdp_wats: 900 W\n");
  const CliRun run = orrery("catalog list --catalog " + path("overlay"));
  EXPECT_EQ(run.code, 2);
  EXPECT_TRUE(run.err.find(file + ":7:3: unknown key \"tdp_wats\", did you mean \"tdp_watts\"?") !=
              std::string::npos)
      << run.err;
}

TEST_F(Cli, GeneratesAFleetThatValidatesAndShows) {
  const CliRun spec = orrery("fleet generate --system dgx-superpod-h100");
  ASSERT_EQ(spec.code, 0) << spec.err;
  const std::string file = write("superpod.yaml", spec.out);
  EXPECT_EQ(orrery("fleet validate " + file).code, 0);
  const CliRun show = orrery("fleet show " + file);
  EXPECT_EQ(show.code, 0);
  EXPECT_NE(show.out.find("127 nodes"), std::string::npos);
  const auto json = nlohmann::json::parse(orrery("fleet show -o json " + file).out);
  EXPECT_EQ(json["accelerators"], 1016);
  EXPECT_EQ(json["fabrics"][0]["leaves"], 32);
  EXPECT_EQ(json["fabrics"][0]["spines"], 16);
}

TEST_F(Cli, WhatIsGeneratedAsJsonValidates) {
  for (const std::string id :
       {"dgx-superpod-gb200", "google-tpu-v5p-pod", "aws-trn2-ultraserver"}) {
    const CliRun spec = orrery("fleet generate -o json --system " + id);
    ASSERT_EQ(spec.code, 0) << id << ": " << spec.err;
    const CliRun valid = orrery("fleet validate " + write(id + ".json", spec.out));
    EXPECT_EQ(valid.code, 0) << id << ": " << valid.err;
  }
}

TEST_F(Cli, APictureNeverReplacesTheSpecOrADevice) {
  const std::string file =
      write("pod.yaml", orrery("fleet generate --system superpod-h100 --nodes 32").out);
  EXPECT_EQ(orrery("fleet show " + file + " --svg " + path("pod.svg")).code, 0);
  EXPECT_TRUE(slurp(path("pod.svg")).starts_with("<svg"));
  EXPECT_EQ(orrery("fleet show " + file + " --svg " + file).code, 2);
  EXPECT_TRUE(slurp(file).starts_with("apiVersion"));
  EXPECT_EQ(orrery("fleet show " + file + " --svg ''").code, 2);
  EXPECT_EQ(orrery("fleet show " + file + " --svg /dev/full").code, 1);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  const CliRun nowhere = orrery("fleet show " + file + " --svg " + path("no/where.svg"));
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_EQ(nowhere.out, "");
  EXPECT_NE(nowhere.err.find("No such file"), std::string::npos) << nowhere.err;
}

TEST_F(Cli, ASystemOfNoSizeIsRefusedNotDividedBy) {
  std::filesystem::create_directory(path("overlay"));
  for (const char* row :
       {"{id: dgx-superpod-h100, nodes_per_rack: 0}",
        "{id: google-tpu-v4-pod, cube_shape: [0, 4, 4]}",
        "{id: google-tpu-v4-pod, cube_shape: [4, 4]}",
        "{id: google-tpu-v4-pod, cube_shape: [100000, 100000, 100000]}",
        "{id: meta-24k-ib, accelerators: 12}", "{id: meta-24k-ib, topology: banana}"}) {
    const std::string file =
        write("overlay/bad.yaml", std::string(kHeader) + "systems:\n- " + row + "\n");
    const CliRun run = orrery("catalog list --catalog " + path("overlay"));
    EXPECT_EQ(run.code, 2) << row;
    EXPECT_NE(run.err.find(file + ":5:3: "), std::string::npos) << run.err;
  }
}

TEST_F(Cli, GeneratesAnotherNumberOfNodesAndSaysWhatCannotBe) {
  EXPECT_NE(orrery("fleet generate --system superpod-h100 --nodes 64").out.find("count: 2"),
            std::string::npos);
  const CliRun odd = orrery("fleet generate --system gb200-rack --nodes 20");
  EXPECT_EQ(odd.code, 2);
  EXPECT_NE(odd.err.find("comes in racks of 18 nodes"), std::string::npos) << odd.err;
  EXPECT_EQ(orrery("fleet generate --system superpod-h100 --nodes 0").code, 2);
}

TEST_F(Cli, HostileFilesGiveOneErrorAndExitCodeTwo) {
  const std::array<std::pair<const char*, std::string>, 7> files = {{
      {"empty", ""},
      {"garbage", std::string(10u << 20, '\x5b')},
      {"nesting", std::string(5000, '[')},
      {"latin1", "name: caf\xe9\n"},
      {"nul", std::string("name: a\0b\n", 10)},
      {"alias", "a: &x [1]\nb: *x\n"},
      {"list", "- 1\n"},
  }};
  for (const auto& [name, text] : files) {
    const CliRun run = orrery("fleet validate " + write(name, text));
    EXPECT_EQ(run.code, 2) << name << ": " << run.err;
    EXPECT_EQ(run.out, "") << name;
    EXPECT_NE(run.err.find(path(name)), std::string::npos) << name << ": " << run.err;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  }
  EXPECT_EQ(orrery("fleet validate " + path("absent")).code, 2);
}

TEST_F(Cli, WrongArgumentsExitWithTwoAndHelpWithZero) {
  EXPECT_EQ(orrery("").code, 2);
  EXPECT_EQ(orrery("flet show x").code, 2);
  EXPECT_EQ(orrery("catalog list -o xml").code, 2);
  const CliRun help = orrery("--help");
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("catalog"), std::string::npos);
  EXPECT_EQ(orrery("fleet generate --help").code, 0);
  EXPECT_NE(orrery("--version").out.find("orrery "), std::string::npos);
}

TEST_F(Cli, AFullDiskIsAFailureNotSuccess) {
  const std::string command =
      std::string(ORRERY_PROGRAM) + " catalog list accelerators >/dev/full 2>" + path("err");
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_NE(slurp(path("err")).find("writing to standard output failed"), std::string::npos);
}

TEST_F(Cli, CountsTheParametersOfAModel) {
  const auto model = nlohmann::json::parse(orrery("catalog show llama-3.1-405b -o json").out);
  EXPECT_NEAR(model["parameters"]["total"].get<double>(), 405.9e9, 405.9e9 * 0.003);
  const std::string file = write("config.json", R"({"model_type": "gpt2", "n_embd": 768,
    "n_layer": 12, "n_head": 12, "n_positions": 1024, "vocab_size": 50257})");
  const auto own = nlohmann::json::parse(orrery("catalog show " + file + " -o json").out);
  EXPECT_EQ(own["parameters"]["total"], 124439808);
}

const std::string kSmallPlan = "plan --model llama-3.1-8b --accelerators h100:64 ";

TEST_F(Cli, PlansAsJsonWithTermsThatSumToTheStep) {
  const CliRun run = orrery(kSmallPlan + "-o json --top 3");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  const auto answer = nlohmann::json::parse(run.out);
  ASSERT_EQ(answer["plans"].size(), 3u);
  EXPECT_FALSE(answer["pareto"].empty());
  EXPECT_FALSE(answer["assumptions"].empty());
  for (const auto& plan : answer["plans"]) {
    for (const char* key : {"tp", "pp", "vpp", "dp", "cp", "ep", "zero", "micro_batch"}) {
      EXPECT_TRUE(plan[key].is_number_unsigned()) << key;
    }
    double sum = 0;
    for (const auto& [term, seconds] : plan["breakdown"].items()) sum += seconds.get<double>();
    const double step = plan["step_s"];
    EXPECT_NEAR(sum, step, 1e-9 * step);
    EXPECT_LE(plan["step_s_low"], step);
    EXPECT_GE(plan["step_s_high"], step);
    for (const char* key : {"mfu", "memory_bytes", "cost_usd", "energy_j", "j_per_flop"}) {
      EXPECT_GT(plan[key].get<double>(), 0) << key;
    }
    EXPECT_TRUE(plan["recompute"].is_string());
    EXPECT_EQ(plan["tp"].get<int>() * plan["pp"].get<int>() * plan["dp"].get<int>() *
                  plan["cp"].get<int>(),
              64);
  }
}

TEST_F(Cli, ThePublishedLayoutOfLlamaIsPricedNearItsMeasuredUtilisation) {
  const CliRun run = orrery(
      "plan --model llama-3.1-405b --accelerators h100:16384 --seq 8192 --global-batch 2048 "
      "--precision bf16 --layout tp=8,pp=16,dp=128 -o json");
  ASSERT_EQ(run.code, 0) << run.err;
  const double mfu = nlohmann::json::parse(run.out)["plans"][0]["mfu"];
  EXPECT_GT(mfu, 0.30);
  EXPECT_LT(mfu, 0.55);
}

TEST_F(Cli, APlanForPeopleExplainsEveryTermAndTheRunnerUp) {
  const CliRun run = orrery(kSmallPlan);
  ASSERT_EQ(run.code, 0) << run.err;
  for (const char* part :
       {"Step time of plan 1, by term", "matrix products of the layers",
        "Step of plan 2 against plan 1", "Goodput", "Assumptions", "--seq 8192"}) {
    EXPECT_NE(run.out.find(part), std::string::npos) << part;
  }
}

TEST_F(Cli, PrunedAndExhaustivePlansAreTheSame) {
  const std::string job =
      "plan --model mixtral-8x7b --accelerators h100:32 --global-batch 64 -o json ";
  const auto pruned = nlohmann::json::parse(orrery(job).out);
  const auto all = nlohmann::json::parse(orrery(job + "--exhaustive").out);
  EXPECT_EQ(pruned["plans"], all["plans"]);
  EXPECT_EQ(all["counters"]["pruned"], 0);
}

TEST_F(Cli, WrongQuestionsToThePlannerNameTheOptionAndTheRule) {
  const auto refused = [&](const std::string& arguments, const std::string& text) {
    const CliRun run = orrery("plan --model llama-3.1-8b " + arguments);
    EXPECT_EQ(run.code, 2) << arguments;
    EXPECT_EQ(run.out, "") << arguments;
    EXPECT_NE(run.err.find(text), std::string::npos) << arguments << ": " << run.err;
  };
  refused("", "--accelerators TYPE:N or --fleet");
  refused("--accelerators h10O:8", "did you mean \"h100\"?");
  refused("--accelerators h100", "expected TYPE:N");
  refused("--accelerators h100:0", "expected a count");
  refused("--accelerators h100:-8", "expected a count");
  refused("--accelerators h100:12", "the nearest are 8 and 16");
  refused("--accelerators h100:64 --layout tp=3", "tp 3 does not divide 64 ranks");
  refused("--accelerators h100:48 --layout tp=3", "attention heads 32");
  refused("--accelerators h100:64 --layout tp=8,dp=100", "does not divide 64 ranks");
  refused("--accelerators h100:64 --layout tp=8,pp=8,dp=8", "does not divide 64 ranks");
  refused("--accelerators h100:64 --layout dp=64,mbs=3", "global batch");
  refused("--accelerators h100:64 --layout pq=8", "did you mean");
  refused("--accelerators h100:64 --seq 0", "--seq");
  refused("--accelerators h100:64 --global-batch -3", "--global-batch");
  refused("--accelerators h100:64 --global-batch nan", "--global-batch");
  refused("--accelerators h100:64 --precision bf61", "did you mean \"bf16\"?");
  refused("--accelerators h100:64 --objective speed", "--objective");
  refused("--accelerators h100:64 --budget 10", "time-under-budget");
  refused("--accelerators h100:64 --tokens 15X", "--tokens");
  EXPECT_EQ(orrery("plan --model lama-3.1-8b --accelerators h100:8").code, 2);
  const std::string config = write("config.json", R"({"architectures": ["Oracle"]})");
  EXPECT_EQ(orrery("plan --model " + config + " --accelerators h100:8").code, 2);
}

TEST_F(Cli, AModelTooLargeExitsWithOneAndSaysWhatWouldHelp) {
  const CliRun run = orrery("plan --model llama-3.1-405b --accelerators h100:8 -o json");
  EXPECT_EQ(run.code, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find("out of memory"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("What would help"), std::string::npos) << run.err;
}

TEST_F(Cli, AConfigurationOfNoKnownArchitectureIsRefusedForTrainingAndServing) {
  const std::string config =
      write("config.json",
            R"({"model_type": "foobar", "hidden_size": 4096, "num_hidden_layers": 32,
                "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
                "vocab_size": 32000})");
  for (const std::string& asked :
       {"plan --accelerators h100:8 --model " + config,
        "plan --serve --accelerators h100:8 --input-tokens 100 --output-tokens 100 --model " +
            config}) {
    const CliRun run = orrery(asked);
    EXPECT_EQ(run.code, 2) << run.out;
    EXPECT_NE(run.err.find("foobar"), std::string::npos) << run.err;
  }
}

TEST_F(Cli, ARuntimeThatDeclaresLittleGetsSuchPlans) {
  const std::string runtime = write("runtime.yaml",
                                    "apiVersion: orrery/v1\nkind: Runtime\nname: mine\n"
                                    "tensor_max: 1\npipeline_max: 1\ncontext_max: 1\nzero: [3]\n");
  const CliRun run = orrery(kSmallPlan + "--runtime " + runtime + " -o json");
  ASSERT_EQ(run.code, 0) << run.err;
  const nlohmann::json answer = nlohmann::json::parse(run.out);
  for (const auto& plan : answer["plans"]) {
    EXPECT_EQ(plan["zero"], 3);
    EXPECT_EQ(plan["dp"], 64);
  }
  const CliRun wrong = orrery(kSmallPlan + "--layout tp=2 --runtime " + runtime);
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("mine: tp 2"), std::string::npos) << wrong.err;
}

TEST_F(Cli, AWholeFleetIsSearchedForTheCheapestPlan) {
  const CliRun run = orrery("plan --model llama-3.1-8b --objective cost -o json --fleet " +
                            std::string(ORRERY_SOURCE_DIR) + "/examples/fleets/scarce-mixed.yaml");
  ASSERT_EQ(run.code, 0) << run.err;
  const auto answer = nlohmann::json::parse(run.out);
  for (const auto& other : answer["pareto"]) {
    EXPECT_LE(answer["plans"][0]["cost_usd"], other["cost_usd"]);
  }
}

TEST_F(Cli, TheReportIsOnePageThatNeedsNothingElse) {
  const CliRun run = orrery(kSmallPlan + "--html " + path("plan.html"));
  ASSERT_EQ(run.code, 0) << run.err;
  const std::string page = slurp(path("plan.html"));
  EXPECT_NE(page.find("plan 1, matmul: "), std::string::npos);
  for (const char* outside : {"https://", "src=", "url(", "<link", "@import", "fetch("}) {
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  }
}

TEST_F(Cli, SensitivitiesNameEveryFigure) {
  const CliRun run = orrery(kSmallPlan + "--sensitivity -o json --top 1");
  ASSERT_EQ(run.code, 0) << run.err;
  const auto changes = nlohmann::json::parse(run.out)["sensitivity"];
  EXPECT_EQ(changes.size(), 10u);
  EXPECT_EQ(changes[0]["figure"], "peak");
  EXPECT_LT(changes[0]["plus_1_percent"]["step"], 0);
  EXPECT_GT(changes[0]["minus_1_percent"]["step"], 0);
}

TEST_F(Cli, ComparesTypesForOneWorkload) {
  const std::string job = "compare --model llama-3.1-8b --accelerators h100:64,mi300x:64";
  const CliRun run = orrery(job + " -o json");
  ASSERT_EQ(run.code, 0) << run.err;
  const auto rows = nlohmann::json::parse(run.out)["rows"];
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& row : rows) EXPECT_GT(row["plan"]["step_s"], 0);
  EXPECT_NE(orrery(job).out.find("mi300x:64 against h100:64"), std::string::npos);
  EXPECT_EQ(orrery("compare --model llama-3.1-8b --accelerators h100:64").code, 2);
}

TEST_F(Cli, SetsMeasuredBenchmarkRowsBesidePredictedOnes) {
  const std::string runs =
      " --runs " + std::string(ORRERY_SOURCE_DIR) + "/data/runs/training_runs.json";
  const CliRun run = orrery("compare --benchmark mlperf:gpt3 -o json" + runs);
  ASSERT_EQ(run.code, 0) << run.err;
  const auto answer = nlohmann::json::parse(run.out);
  EXPECT_EQ(answer["rows"].size(), 17u);
  EXPECT_GE(answer["compared"], 15);
  EXPECT_LT(answer["mape"], 0.25);
  const CliRun unknown = orrery("compare --benchmark mlperf:chess" + runs);
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("mlperf:gpt3, mlperf:lora"), std::string::npos) << unknown.err;
}

constexpr const char* kServices = R"({"rows": [
  {"id": "chat", "model": {"name": "Llama-3.1-8B"}, "accel": "H100", "n": 1,
   "par": {"tp": 1, "pp": 1}, "engine": "vllm", "precision": "fp8", "input_tokens": 1000,
   "output_tokens": 500, "concurrency": 64, "scenario": "server"},
  {"id": "endless", "model": {"name": "Llama-3.1-8B"}, "accel": "H100", "n": 1,
   "engine": "vllm", "input_tokens": 1000}]})";

TEST_F(Cli, EstimatesServicesWithIntervalsAndSaysWhyARowHasNone) {
  const CliRun run = orrery("estimate --runs " + write("runs.json", kServices) + " -o json");
  ASSERT_EQ(run.code, 0) << run.err;
  const auto rows = nlohmann::json::parse(run.out);
  ASSERT_EQ(rows.size(), 2u);
  for (const std::string name :
       {"tokens_s_total", "output_tokens_s", "requests_s", "ttft_s", "tpot_s", "e2e_s"}) {
    const double value = rows[0].at(name);
    EXPECT_GT(value, 0) << name;
    EXPECT_LE(rows[0].at(name + "_low"), value) << name;
    EXPECT_GE(rows[0].at(name + "_high"), value) << name;
  }
  double sum = 0;
  for (const auto& [term, seconds] : rows[0]["breakdown"].items()) sum += seconds.get<double>();
  EXPECT_NEAR(sum * 500, rows[0]["e2e_s"].get<double>(), 1e-6);
  EXPECT_EQ(rows[0]["batch"], 64);
  EXPECT_EQ(rows[0]["fits"], true);
  EXPECT_GT(rows[0]["memory_bytes"], 8e9);
  EXPECT_TRUE(rows[0]["warnings"].is_array());
  EXPECT_EQ(rows[1].size(), 2u);
  EXPECT_NE(rows[1]["error"].get<std::string>().find("output_tokens"), std::string::npos);
  const CliRun text = orrery("estimate --runs " + path("runs.json"));
  EXPECT_NE(text.out.find("output tokens/s"), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("step (s)"), std::string::npos) << text.out;
}

constexpr const char* kServe =
    "plan --serve --model llama-3.1-70b --input-tokens 1000 --output-tokens 500 ";

TEST_F(Cli, PlansAServiceWithinItsLimits) {
  const CliRun run = orrery(std::string(kServe) +
                            "--accelerators h100,b200:8 --rate 10 --ttft '1 s' --tpot '40 ms' "
                            "--top 3 -o json");
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  ASSERT_EQ(json["plans"].size(), 3u);
  double before = 0;
  for (const auto& plan : json["plans"]) {
    EXPECT_LE(plan["ttft_s"], 1);
    EXPECT_LE(plan["tpot_s"], 0.04);
    EXPECT_NEAR(plan["requests_s"].get<double>(), 10, 0.01);
    EXPECT_GE(plan["usd_per_million_output_tokens"], before);
    before = plan["usd_per_million_output_tokens"];
    double sum = 0;
    for (const auto& [term, seconds] : plan["breakdown"].items()) {
      EXPECT_TRUE(json["terms"].contains(term)) << term;
      sum += seconds.get<double>();
    }
    EXPECT_NEAR(sum, plan["token_s"].get<double>(), 1e-12);
    EXPECT_EQ(plan["accelerators"],
              plan["replicas"].get<int>() * plan["replica_accelerators"].get<int>());
  }
  EXPECT_EQ(json["by_accelerator"].size(), 2u);
  for (const std::string by : {"cost", "energy", "rack"}) {
    EXPECT_TRUE(json["best_by"][by].is_object()) << by;
  }
  EXPECT_FALSE(json["assumptions"].empty());
}

TEST_F(Cli, AServiceForPeopleNamesWhatBindsAndEveryTerm) {
  const CliRun run = orrery(std::string(kServe) + "--accelerators h100:8 --tpot '40 ms'");
  ASSERT_EQ(run.code, 0) << run.err;
  for (const char* part : {"$/M tokens", "tokens/s/W", "matmul", "collective", "limited by: --tpot",
                           "Memory per device", "Assumptions"}) {
    EXPECT_NE(run.out.find(part), std::string::npos) << part << "\n" << run.out;
  }
}

TEST_F(Cli, AnImpossibleServiceSaysWhichLimitBindsAndWhatHelps) {
  const CliRun run = orrery(std::string(kServe) + "--accelerators h100:8 --rate 1000");
  EXPECT_EQ(run.code, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find("--rate 1000 is too high"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("What would help"), std::string::npos) << run.err;
}

TEST_F(Cli, WrongQuestionsAboutServicesNameTheOption) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--accelerators h1000", "--accelerators"},
      {"--accelerators h100:0", "--accelerators"},
      {"--accelerators h100 --rate 0", "rate"},
      {"--accelerators h100 --ttft 5kg", "--ttft"},
      {"--accelerators h100 --engine vlm", "did you mean"},
      {"--accelerators h100 --precision fp9", "--precision"},
      {"--accelerators h100 --objective time", "--objective"},
      {"--accelerators h100 --seq 4096", "--seq"},
      {"", "--accelerators"},
  };
  for (const auto& [arguments, named] : cases) {
    const CliRun run = orrery(kServe + arguments);
    EXPECT_EQ(run.code, 2) << arguments << ": " << run.err;
    EXPECT_EQ(run.out, "") << arguments;
    EXPECT_NE(run.err.find(named), std::string::npos) << arguments << ": " << run.err;
  }
  EXPECT_EQ(orrery("plan --model llama-3.1-8b --accelerators h100:8 --rate 5").code, 2);
  EXPECT_EQ(orrery("plan --serve --model llama-3.1-8b --accelerators h100").code, 2);
}

const std::string kFleets = ORRERY_SOURCE_DIR "/examples/fleets/";
const std::string kJobs = ORRERY_SOURCE_DIR "/examples/jobs/";

TEST_F(Cli, SchedulesAQueueOfJobFiles) {
  const std::string asked = "schedule --fleet " + kFleets + "superpod-h100.yaml " + kJobs +
                            "pretrain-deadline.yaml " + kJobs + "serve-small.yaml";
  const CliRun text = orrery(asked);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("pretrain-deadline"), std::string::npos);
  EXPECT_NE(text.out.find("starts"), std::string::npos);
  const CliRun json = orrery(asked + " -o json --policy capacity");
  EXPECT_EQ(json.code, 0) << json.err;
  const auto answer = nlohmann::json::parse(json.out);
  EXPECT_EQ(answer["policy"], "capacity");
  EXPECT_EQ(answer["started"].size() + answer["waiting"].size(), 5u) << "four are replicas";
}

TEST_F(Cli, ListsJobsBehindAHeadThatStopsTheQueueAndThoseThatWaitForOthers) {
  const auto job = [this](const std::string& name, const std::string& rest) {
    return write(name + ".yaml", "apiVersion: orrery/v1\nkind: Batch\nname: " + name +
                                     "\nestimate: 10 h\nroles: [{" + rest + "\n") +
           " ";
  };
  const CliRun run =
      orrery("schedule --policy fifo -o json --fleet " + kFleets + "superpod-h100.yaml " +
             job("most", "accelerators: 1000, types: [h100]}]") +
             job("head", "accelerators: 64, types: [h100]}]") +
             job("small", "accelerators: 8, types: [h100]}]") +
             job("held", "accelerators: 8, types: [h100]}]\nafter: [most, prep]"));
  ASSERT_EQ(run.code, 0) << run.err;
  const auto answer = nlohmann::json::parse(run.out);
  ASSERT_EQ(answer["started"].size(), 1U) << run.out;
  ASSERT_EQ(answer["waiting"].size(), 3U) << run.out;
  EXPECT_EQ(answer["waiting"][0]["job"], "head");
  EXPECT_EQ(answer["waiting"][1], nlohmann::json::parse(R"({"job": "small", "kind": "order"})"));
  EXPECT_EQ(answer["waiting"][2]["after"], nlohmann::json::parse(R"(["most", "prep"])"));
}

TEST_F(Cli, PricesFailuresByAProfile) {
  const std::string job =
      write("long.yaml",
            "apiVersion: orrery/v1\nkind: Train\nname: long\nestimate: 60 days\n"
            "roles: [{accelerators: 512, types: [h100]}]\n");
  const std::string asked =
      "schedule -o json --fleet " + kFleets + "superpod-h100.yaml " + job + " --failures ";
  const auto price = [&](const std::string& failures) {
    const CliRun run = orrery(asked + failures);
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(run.out)["started"][0]["price_usd"]["failure"].get<double>();
  };
  EXPECT_EQ(price("none"), 0);
  EXPECT_GT(price("llama3"), 0);
  EXPECT_EQ(orrery(asked + "lama3").code, 2);
}

TEST_F(Cli, SaysWhyAJobCanNeverRunAndWhatIsWrongInItsFile) {
  const std::string fleet = "schedule --fleet " + kFleets + "superpod-h100.yaml ";
  const std::string head = "apiVersion: orrery/v1\nkind: Batch\nname: j\n";
  const CliRun never =
      orrery(fleet + write("never.yaml", head + "roles: [{accelerators: 4096, types: [h100]}]\n"));
  EXPECT_EQ(never.code, 1);
  EXPECT_NE(never.out.find("never"), std::string::npos) << never.out;
  const CliRun wrong = orrery(fleet + write("wrong.yaml", head + "roles: [{acelerators: 8}]\n"));
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("wrong.yaml:4"), std::string::npos) << wrong.err;
  const std::string job = write("job.yaml", head + "roles: [{accelerators: 8}]\n");
  EXPECT_EQ(orrery(fleet + job + " --policy fofo").code, 2);
  EXPECT_NE(orrery(fleet + job + " --policy fofo").err.find("fifo"), std::string::npos);
  EXPECT_EQ(orrery(fleet + job + " --explain nobody").code, 2);
}

TEST_F(Cli, AStudyIsTheSameForEveryNumberOfWorkersAndAnErrorHasItsLine) {
  const std::string text = R"({apiVersion: orrery/v1, kind: Study, name: s, run: simulate,
base: {accelerators: "h100:16", generate: philly, jobs: 5}, show: [avg_jct], axes: [{name: )";
  const std::string study = write("s.yaml", text + "policy, values: [fifo, sjf]}]}");
  const CliRun one = orrery("study " + study + " --jobs 1 -o json");
  EXPECT_EQ(nlohmann::json::parse(one.out)["points"].size(), 2u) << one.err;
  EXPECT_EQ(one.out, orrery("study " + study + " --jobs 2 -o json").out);
  const CliRun bad = orrery("study " + write("b.yaml", text + "spars, values: [1]}]}"));
  EXPECT_NE(bad.err.find("b.yaml:2:92: unknown key \"spars\""), std::string::npos) << bad.err;
}

}  // namespace
}  // namespace orrery

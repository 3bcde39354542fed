#include "perf/runs/run_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hardware/builtin_catalog.hpp"
#include "perf/runs/run_file_test.hpp"
#include "workload/builtin_models.hpp"

namespace orrery {

const RunCatalogs& built_in() {
  static const Result<Catalog> kHardware = Catalog::load(builtin_catalog(), {});
  static const Result<ModelCatalog> kModels = ModelCatalog::load(builtin_models(), {});
  static const RunCatalogs kCatalogs{kHardware.value(), kModels.value()};
  return kCatalogs;
}

const Accelerator& accelerator_of(std::string_view id) {
  return *built_in().hardware.require<Accelerator>(id).value();
}

Run read_one(const std::string& row) {
  Result<RunFile> file = RunFile::parse("[\n" + row + "\n]", "runs.json", built_in());
  if (!file) return BadRow{"", file.error()};
  return file->runs.size() == 1 ? std::move(file->runs.front()) : Run(BadRow{"", {}});
}

TrainingRun read_training(const std::string& row) {
  Run run = read_one(row);
  if (auto* good = std::get_if<TrainingRun>(&run)) return std::move(*good);
  ADD_FAILURE() << error_of(row);
  return {};
}

ServingRun read_serving(const std::string& row) {
  Run run = read_one(row);
  if (auto* good = std::get_if<ServingRun>(&run)) return std::move(*good);
  ADD_FAILURE() << error_of(row);
  return {};
}

std::string error_of(const std::string& row) {
  const Run run = read_one(row);
  const auto* bad = std::get_if<BadRow>(&run);
  return bad != nullptr ? bad->error.text() : "";
}

namespace {

using Json = nlohmann::ordered_json;

Json training_row() {
  return Json::parse(R"({"id":"a-1","group":"g","fold":3,
    "model":{"name":"GPT 5B","layers":24,"hidden":4096,"heads":32,"kv_heads":32,"head_dim":128,
      "ffn":16384,"gated_mlp":false,"vocab":51200,"seq":2048,"params_b":5},
    "accel":"A100-80GB-SXM 350W","n":64,"cluster":"8 GPU/node, 8x HDR200 IB per node",
    "par":{"tp":4,"pp":2,"vp":3,"dp":8,"cp":1,"ep":1,"zero":1,"sp":true},
    "mbs":2,"gbs":256,"recompute":"selective","precision":"bf16","flash_attn":false,
    "task":"pretrain","release":"25.11 NeMo Container",
    "result":{"step_s":12.5},"derived":["mfu"],"source":"a paper","raw":{"x":1},"notes":"n",
    "verified":true,"complete":true,"simumax":{"step_s":9},"system":"s"})");
}

Json serving_row() {
  return Json::parse(R"({"id":"s-1","group":"g","model":{"name":"Llama-3.1-70B"},"accel":"H100",
    "n":8,"par":{"tp":4,"pp":1,"ep":1,"dp":2},"engine":"vLLM","engine_version":"0.10.0",
    "precision":{"weights":"fp8","kv":null,"activations":"fp8"},"input_tokens":922,
    "output_tokens":292.3,"concurrency":64,"max_batch":null,"request_rate":null,
    "scenario":"server","dataset":"d","result":{"ttft_s":1},"derived":[],"assumed":["x"],
    "note":"n","source":"s","verified":true,"fold":2,"complete":false,"suspect":"y"})");
}

template <class T>
std::string shown(const std::optional<T>& value) {
  if (!value) return "-";
  if constexpr (std::is_enum_v<T>) {
    return fmt::format("{}", static_cast<int>(*value));
  } else if constexpr (requires { value->value(); }) {
    return fmt::format("{}", value->value());
  } else {
    return fmt::format("{}", *value);
  }
}

std::string shown(const StatedPlan& p) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {}", shown(p.tp), shown(p.pp), shown(p.vpp),
                     shown(p.dp), shown(p.cp), shown(p.ep), shown(p.zero), shown(p.shard),
                     shown(p.attention_dp), shown(p.moe_tp), shown(p.sequence_parallel));
}

template <class AnyRun>
std::string shown_common(const AnyRun& run) {
  return fmt::format("{} {} {} {} {} {} {} {} [{}]", run.id, run.model.name,
                     count_parameters(run.model).total, kv_elements_per_token(run.model),
                     run.accelerator->id, shown(run.power_limit), run.count, shown(run.plan),
                     fmt::join(run.warnings, "; "));
}

// Every field of a run as text, so that two runs can be compared.
std::string shown(const Run& run) {
  if (const auto* t = std::get_if<TrainingRun>(&run)) {
    const ClusterFacts& c = t->cluster;
    return fmt::format(
        "{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", shown_common(*t),
        t->sequence.value(), shown(c.slices), shown(c.slice_accelerators), shown(c.node_bandwidth),
        shown(c.node_accelerators), c.fabric, shown(c.scale_up_domain), shown(t->micro_batch),
        shown(t->global_batch), shown(t->recompute.mode), t->recompute.layers,
        static_cast<int>(t->recompute.offload), t->recompute.kept,
        static_cast<int>(t->precision.format), static_cast<int>(t->precision.scaling),
        static_cast<int>(t->precision.execution), static_cast<int>(t->attention),
        static_cast<int>(t->task), shown(t->release));
  }
  if (const auto* s = std::get_if<ServingRun>(&run)) {
    return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {}", shown_common(*s),
                       s->engine.family, shown(s->engine.version), s->engine_text, s->version_text,
                       shown(s->weights), shown(s->kv), shown(s->activations),
                       shown(s->input_tokens), shown(s->output_tokens), shown(s->concurrency),
                       shown(s->max_batch), shown(s->request_rate), static_cast<int>(s->scenario));
  }
  const auto& bad = std::get<BadRow>(run);
  return bad.id + " " + bad.error.message;
}

TEST(RunFile, ReadsATrainingRow) {
  const TrainingRun run = read_training(training_row().dump());
  EXPECT_EQ(run.id, "a-1");
  EXPECT_EQ(run.accelerator->id, "nvidia-a100-sxm4-80g");
  EXPECT_EQ(run.power_limit, Watts(350));
  EXPECT_EQ(run.count, 64U);
  EXPECT_EQ(run.sequence, Tokens(2048));
  EXPECT_EQ(run.plan.vpp, 3U);
  EXPECT_EQ(run.micro_batch, 2.0);
  EXPECT_EQ(run.global_batch, 256.0);
  EXPECT_EQ(run.recompute.mode, Recompute::kSelective);
  EXPECT_EQ(run.attention, AttentionKernel::kUnfused);
  EXPECT_EQ(run.cluster.fabric, "ib-hdr");
  EXPECT_NEAR(run.release.value_or(0), 5 + 10 / 12.0, 1e-12);
  EXPECT_TRUE(run.complete());
  EXPECT_TRUE(run.warnings.empty());
  EXPECT_EQ(run.where.line, 2);
}

TEST(RunFile, ReadsAServingRow) {
  const ServingRun run = read_serving(serving_row().dump());
  EXPECT_EQ(run.engine.family, "vllm");
  EXPECT_EQ(run.engine.version, 0.10);
  EXPECT_EQ(run.weights, NumberFormat::kFp8);
  EXPECT_EQ(run.kv, std::nullopt);
  EXPECT_EQ(run.output_tokens, 292.3);
  EXPECT_EQ(run.concurrency, 64.0);
  EXPECT_EQ(run.scenario, ServingRun::kServer);
  EXPECT_TRUE(run.complete());
}

// Whether two rows become equal runs.
void expect_same(const Json& left, const Json& right) {
  EXPECT_EQ(shown(read_one(left.dump())), shown(read_one(right.dump())));
}

Json without(Json row, std::string_view key) {
  row.erase(std::string(key));
  return row;
}

Json reversed(const Json& row) {
  Json turned;
  std::vector<std::string> keys;
  for (const auto& [key, value] : row.items()) keys.push_back(key);
  std::reverse(keys.begin(), keys.end());
  for (const std::string& key : keys) turned[key] = row[key];
  return turned;
}

TEST(RunFile, ReadsNothingFromResultsSourcesAndNotes) {
  const std::vector<std::string> idle{"group",   "fold",    "result",   "derived", "source",
                                      "raw",     "notes",   "verified", "system",  "complete",
                                      "simumax", "dataset", "assumed",  "note",    "suspect"};
  for (const Json& row : {training_row(), serving_row()}) {
    Json bare = row;
    for (const std::string& key : idle) {
      Json other = row;
      other[key] = "tp=1, H200, 26.04, fp8, full";
      expect_same(row, other);
      bare.erase(key);
    }
    expect_same(row, bare);
    expect_same(row, reversed(row));
    Json echoed = row;
    echoed["id"] = 17;
    auto renamed = read_one(echoed.dump());
    std::visit([&](auto& run) { run.id = row["id"].get<std::string>(); }, renamed);
    EXPECT_EQ(shown(renamed), shown(read_one(row.dump())));
  }
}

TEST(RunFile, ReadsEveryKeyThatCounts) {
  for (const std::string_view key : {"model", "accel", "n", "cluster", "par", "mbs", "gbs",
                                     "recompute", "precision", "flash_attn", "release"}) {
    EXPECT_NE(shown(read_one(without(training_row(), key).dump())),
              shown(read_one(training_row().dump())))
        << key;
  }
  for (const std::string_view key : {"model", "accel", "n", "par", "engine", "engine_version",
                                     "precision", "input_tokens", "output_tokens", "concurrency"}) {
    EXPECT_NE(shown(read_one(without(serving_row(), key).dump())),
              shown(read_one(serving_row().dump())))
        << key;
  }
}

TEST(RunFile, GoesOnAfterABadRow) {
  const std::string text = R"({"meta":1,"rows":[{"id":"x","accel":"H100"},7,null,)" +
                           training_row().dump() + "," + training_row().dump() + "]}";
  const Result<RunFile> file = RunFile::parse(text, "runs.json", built_in());
  ASSERT_TRUE(file) << file.error().text();
  ASSERT_EQ(file->runs.size(), 5U);
  EXPECT_EQ(std::get<BadRow>(file->runs[0]).id, "x");
  EXPECT_TRUE(std::holds_alternative<BadRow>(file->runs[1]));
  EXPECT_TRUE(std::holds_alternative<BadRow>(file->runs[2]));
  EXPECT_EQ(shown(file->runs[3]), shown(file->runs[4]));
}

TEST(RunFile, RefusesWhatIsNoListOfRows) {
  for (const std::string_view text : {"{}", "7", R"({"rows": 3})", "[1,", ""}) {
    EXPECT_FALSE(RunFile::parse(text, "runs.json", built_in())) << text;
  }
  EXPECT_TRUE(RunFile::parse("[]", "runs.json", built_in())->runs.empty());
  EXPECT_FALSE(RunFile::load("/nonexistent/runs.json", built_in().hardware, built_in().models));
}

std::string with(Json row, std::string_view key, std::string_view value) {
  row[std::string(key)] = "@";
  std::string text = row.dump();
  const std::size_t at = text.find("\"@\"");
  return text.replace(at, 3, value);
}

TEST(RunFile, NamesFileLineFieldAndRuleOfABadRow) {
  struct Case {
    std::string_view key;
    std::string_view value;
    std::string_view says;
  };
  for (const Case& each : std::initializer_list<Case>{
           {"n", "0", "\"n\": 0 is out of range"},
           {"n", "-8", "\"n\": -8 is out of range"},
           {"n", "2.5", "\"n\": expected a whole number"},
           {"n", "\"64\"", "\"n\": expected a whole number"},
           {"n", "null", "the key \"n\" is missing"},
           {"n", "48", "tp x pp x cp x dp"},
           {"mbs", "0", "\"mbs\": 0 is out of range"},
           {"gbs", "NaN", "\"gbs\": expected a number"},
           {"gbs", "Infinity", "\"gbs\": expected a number"},
           {"mbs", "\"2\"", "\"mbs\": expected a number"},
           {"accel", "\"H900\"", "\"accel\""},
           {"accel", "null", "the key \"accel\" is missing"},
           {"flash_attn", "3", "\"flash_attn\": expected true or false"},
           {"model", "\"Llamo-9-70B\"", "\"model\""},
           {"model", "{\"name\": \"llama-3-8b\"}", "sequence length is missing"},
           {"precision", "{}", "\"precision\""}}) {
    const std::string error = error_of(with(training_row(), each.key, each.value));
    EXPECT_EQ(error.substr(0, 12), "runs.json:2:") << each.key << each.value;
    EXPECT_NE(error.find(each.says), std::string::npos) << each.key << each.value << ": " << error;
  }
  EXPECT_NE(error_of(with(serving_row(), "input_tokens", "-1")).find("\"input_tokens\": -1"),
            std::string::npos);
  EXPECT_NE(error_of(with(serving_row(), "precision", "{\"kv\":[]}")).find("\"kv\""),
            std::string::npos);
}

TEST(RunFile, TakesBfloat16AndWarnsWithoutAPrecision) {
  const TrainingRun run = read_training(with(training_row(), "precision", "null"));
  EXPECT_EQ(run.precision, TrainingPrecision{});
  EXPECT_EQ(run.warnings.size(), 1U);
}

TEST(RunFile, KnowsALoraRunByTaskOrName) {
  Json row = without(training_row(), "task");
  EXPECT_EQ(read_training(row.dump()).task, TrainingTask::kPretrain);
  row["model"] = Json::parse(R"({"name":"Llama2 70B LoRA","seq":8192})");
  EXPECT_EQ(read_training(row.dump()).task, TrainingTask::kLora);
  row["task"] = "SFT";
  EXPECT_EQ(read_training(row.dump()).task, TrainingTask::kFineTune);
}

TEST(RunFile, PrefersTheRowsOwnSequence) {
  Json row = training_row();
  row["seq"] = 4096;
  EXPECT_EQ(read_training(row.dump()).sequence, Tokens(4096));
}

TEST(RunFile, InfersTheScenarioOnlyWhereNoneIsGiven) {
  Json row = without(serving_row(), "scenario");
  EXPECT_EQ(read_serving(row.dump()).scenario, ServingRun::kServer);
  row.erase("concurrency");
  EXPECT_EQ(read_serving(row.dump()).scenario, ServingRun::kOffline);
  row["scenario"] = "Single";
  EXPECT_EQ(read_serving(row.dump()).scenario, ServingRun::kSingle);
  row["scenario"] = "odd";
  EXPECT_EQ(read_serving(row.dump()).warnings.size(), 1U);
}

}  // namespace
}  // namespace orrery

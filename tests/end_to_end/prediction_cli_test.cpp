// `orrery calibrate-node`, `predict` and `report` compared with real trainings: the predicted step
// is of the size of the measured one.
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/end_to_end/cli.hpp"

namespace orrery {
namespace {

/// Other work on the machine and a test build leave only the order of magnitude comparable.
constexpr double kBand = 4;

/// Replaces a value in the text of a calibration.
std::string with(std::string text, const std::string& old, const std::string& now) {
  const std::size_t at = text.find(old);
  EXPECT_NE(at, text.npos) << old;
  return text.replace(at, old.size(), now);
}

class PredictionCli : public Cli {
 protected:
  [[nodiscard]] std::string training(const std::string& run, const std::string& precision) const {
    const std::string text = write("text", std::string(40'000, 'a'));
    return write(
        run + ".yaml",
        fmt::format("apiVersion: orrery/v1\nkind: Training\nname: {}\n"
                    "model: {{layers: 2, width: 64, heads: 2, sequence: 64, precision: {}}}\n"
                    "data: {{paths: [{}]}}\nbatch: {{sequences: 16, shards: 4, micro: 4}}\n"
                    "steps: 8\ncheckpoint: {{directory: {}}}\noutput: {}\n",
                    run, precision, text, path(run + "-saved"), path(run)));
  }

  /// A calibration of another machine is used with a warning, one with products of another kind is
  /// refused.
  void expect_doubts(const std::string& calibration) const {
    const std::string predict = "predict " + path("run1.yaml") + " --calibration ";
    const CliRun other =
        orrery(predict + write("other.yaml", with(calibration, "cores: ", "cores: 9")));
    EXPECT_EQ(other.code, 0) << other.err;
    EXPECT_NE(other.err.find("measured on another machine"), std::string::npos) << other.err;
    const CliRun rounded =
        orrery(predict + write("bf16.yaml", with(calibration, "float32", "bfloat16")));
    EXPECT_EQ(rounded.code, 2);
    EXPECT_NE(rounded.err.find("calibrate-node --precision float32"), std::string::npos)
        << rounded.err;
  }

  /// Predictions cover every layout that the spec leaves open, and change no stated value.
  void expect_layouts(const std::string& calibration) const {
    const std::string two = " --ranks 2 -o json --calibration " + calibration;
    const CliRun open = orrery("predict " + path("run1.yaml") + two);
    ASSERT_EQ(open.code, 0) << open.err;
    std::set<std::string> layouts;
    for (const auto& each : nlohmann::json::parse(open.out)) {
      EXPECT_EQ(each.at("ranks"), 2);
      EXPECT_GT(each.at("memory_bytes"), 0);
      layouts.insert(each.at("layout").get<std::string>());
    }
    // The spec states micro-batches of 4.
    for (const char* layout :
         {"tp=1,pp=1,dp=2,micro_batch=4", "tp=1,pp=1,dp=2,zero=1,micro_batch=4",
          "tp=2,pp=1,dp=1,micro_batch=4,sequence_parallel=on", "tp=1,pp=2,dp=1,micro_batch=4"}) {
      EXPECT_TRUE(layouts.contains(layout)) << layout << "\n" << open.out;
    }
    const std::string cut = write(
        "cut.yaml", with(slurp(path("run1.yaml")), "steps:", "layout: {tp: 2, zero: 0}\nsteps:"));
    const CliRun stated = orrery("predict " + cut + two);
    ASSERT_EQ(stated.code, 0) << stated.err;
    for (const auto& each : nlohmann::json::parse(stated.out)) EXPECT_EQ(each.at("tp"), 2);
    const CliRun none = orrery("predict " + cut + " --ranks 1 --calibration " + calibration);
    EXPECT_EQ(none.code, 2) << none.out;
    EXPECT_NE(none.err.find("cut.yaml:7:"), std::string::npos) << none.err;
  }

  /// A job of orrery-train is submitted with the best of them.
  void expect_planned_job(const std::string& calibration) const {
    const std::string job =
        write("job.yaml",
              fmt::format(
                  "apiVersion: orrery/v1\nkind: Train\nname: planned\nroles: [{{accelerators_min: "
                  "1, accelerators_max: 2}}]\nlaunch: {{command: [orrery-train, {}]}}\n",
                  path("run1.yaml")));
    const CliRun planned = orrery("submit --dry-run " + job + " --calibration " + calibration);
    ASSERT_EQ(planned.code, 0) << planned.err;
    EXPECT_NE(planned.out.find("micro_batch: 4"), std::string::npos) << planned.out;
    EXPECT_NE(planned.err.find("planned: 2 ranks, tp="), std::string::npos) << planned.err;
    const CliRun again = orrery("submit --dry-run " + write("again.yaml", planned.out) +
                                " --calibration " + calibration);
    EXPECT_EQ(again.code, 2);
    EXPECT_NE(again.err.find("expected no layout"), std::string::npos) << again.err;
    const std::string other = write("other-job.yaml", with(slurp(job), "orrery-train", "python3"));
    const CliRun unknown = orrery("submit --dry-run " + other + " --calibration " + calibration);
    EXPECT_EQ(unknown.code, 2);
    EXPECT_NE(unknown.err.find("only a job of orrery-train can be planned"), std::string::npos)
        << unknown.err;
  }

  /// Runs all ranks until they end.
  [[nodiscard]] int train(const std::string& spec, int ranks) const {
    const int port = 20'000 + static_cast<int>(::getpid()) % 20'000 + 70 * ranks;
    const std::string one = fmt::format(
        "ORRERY_JOB=predicted ORRERY_RANK=$rank ORRERY_WORLD_SIZE={} ORRERY_ADDRESS=127.0.0.1 "
        "ORRERY_MASTER=127.0.0.1:{} {}-train {} >{} 2>&1 </dev/null",
        ranks, port, program(), spec, path("train.log"));
    std::string others;
    for (int rank = 1; rank < ranks; ++rank) others += fmt::format("rank={}; {} & ", rank, one);
    return std::system((others + "rank=0; " + one + "; code=$?; wait; exit $code").c_str());
  }
};

TEST_F(PredictionCli, PredictsTheStepsOfLocalRanks) {
  const std::string node = path("node.yaml");
  const CliRun measured =
      orrery("calibrate-node --ranks 2 --quick --directory " + path(".") + " --out " + node);
  ASSERT_EQ(measured.code, 0) << measured.err;
  EXPECT_NE(measured.out.find("all-reduce, shared memory"), std::string::npos) << measured.out;
  for (const int ranks : {1, 2}) {
    const std::string run = fmt::format("run{}", ranks);
    const std::string spec = training(run, "float32");
    ASSERT_EQ(train(spec, ranks), 0) << slurp(path("train.log"));
    const CliRun report =
        orrery(fmt::format("report {} --training {} --calibration {} -o json --out {}", path(run),
                           spec, node, path("page.html")));
    ASSERT_EQ(report.code, 0) << report.err;
    const auto json = nlohmann::json::parse(report.out);
    EXPECT_EQ(json.at("layout"), fmt::format("tp=1,pp=1,dp={},micro_batch=4", ranks));
    const double mean = json.at("step_s_mean").get<double>();
    const double predicted = json.at("step_s_predicted").get<double>();
    EXPECT_LT(predicted, kBand * mean) << ranks << " ranks";
    EXPECT_GT(predicted, mean / kBand) << ranks << " ranks";
    EXPECT_NEAR(json.at("step_s_prediction_error").get<double>(), predicted / mean - 1, 1e-9);
  }
  EXPECT_NE(slurp(path("page.html")).find("step time, predicted"), std::string::npos);
  expect_layouts(node);
  expect_planned_job(node);
  expect_doubts(slurp(node));
}

TEST_F(PredictionCli, SaysWhatItCannotPredictFrom) {
  const std::string spec = training("run", "float32");
  const CliRun none = orrery("calibrate-node --ranks 0");
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("--ranks"), std::string::npos) << none.err;
  const CliRun another = orrery("predict " + spec + " --calibration " + spec);
  EXPECT_EQ(another.code, 2);
  EXPECT_NE(another.err.find("run.yaml:2:7: expected kind NodeCalibration"), std::string::npos)
      << another.err;
  const std::string experts =
      write("experts.yaml", with(slurp(spec), "{layers: 2,", "{experts: 4, layers: 2,"));
  const CliRun mixture = orrery("predict " + experts + " --calibration " + spec);
  EXPECT_EQ(mixture.code, 2);
  EXPECT_NE(mixture.err.find("experts.yaml:4:"), std::string::npos) << mixture.err;
  EXPECT_NE(mixture.err.find("experts cannot be predicted"), std::string::npos) << mixture.err;
  const CliRun half = orrery("report " + path("run") + " --training " + spec);
  EXPECT_EQ(half.code, 2);
  EXPECT_NE(half.err.find("expected both or neither"), std::string::npos) << half.err;
}

}  // namespace
}  // namespace orrery

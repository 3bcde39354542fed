#include "verbs/training/training_answer.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/system/real_storage.hpp"
#include "verbs/output_file.hpp"

namespace orrery {
namespace {

Result<Json> read_json(const std::string& path) {
  RealStorage storage;
  auto text = storage.read_file(path, 1 << 20);
  if (!text) return forward_error(text);
  Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object()) return input_error({path, 1, 1}, "expected a JSON object");
  return json;
}

/// 0: there is no such number.
double number_of(const Json& bill, const char* key) {
  if (!bill.is_object()) return 0;
  const auto found = bill.find(key);
  return found != bill.end() && found->is_number() ? found->get<double>() : 0;
}

Result<DeliberateKill> read_kill(const std::string& path) {
  Result<Json> json = read_json(path);
  if (!json) return forward_error(json);
  try {
    return DeliberateKill{.pids = json->at("pids").get<std::vector<std::int64_t>>(),
                          .step = json->at("step").get<std::uint64_t>(),
                          .at = json->at("at").get<double>(),
                          .node = json->at("node").get<std::string>()};
  } catch (const nlohmann::json::exception&) {
    return input_error({path, 1, 1}, "expected pids, step, at and node");
  }
}

/// Predicts the step for the number of ranks that did most steps.
Result<PredictedStep> read_prediction(const CommandOptions& options, const LocalPlanFiles& files,
                                      const TrainingLog& run) {
  LocalPlanFiles of_the_run = files;
  of_the_run.exchange = run.memory == TrainingLog::Memory::kShared ? LocalExchange::kSharedMemory
                                                                   : LocalExchange::kSockets;
  Result<LocalPlan> plan = read_local_plan(options, of_the_run, run.layout);
  if (!plan) return forward_error(plan);
  if (!plan->doubt.empty() && options.message) {
    options.message(fmt::format("orrery: {}\n", plan->doubt));
  }
  const std::uint32_t ranks = run.usual_ranks();
  if (ranks == 0) return infeasible("the run has no steps to compare a prediction with");
  Result<LocalStep> step = predict_step(*plan, ranks);
  if (!step) return forward_error(step);
  return PredictedStep{ranks, step->seconds};
}

Result<TrainingStory> read_story(const TrainingReportCall& call, Json& bill) {
  Result<TrainingLog> run = read_training_log(call.run);
  if (!run) return forward_error(run);
  TrainingStory story{.title = "Training run", .run = std::move(*run)};
  if (!call.unbroken.empty()) {
    Result<TrainingLog> unbroken = read_training_log(call.unbroken);
    if (!unbroken) return forward_error(unbroken);
    story.unbroken = std::move(*unbroken);
  }
  if (!call.kill.empty()) {
    Result<DeliberateKill> kill = read_kill(call.kill);
    if (!kill) return forward_error(kill);
    story.kill = std::move(*kill);
  }
  if (call.job.empty()) return story;
  Result<Json> job = read_json(call.job);
  if (!job) return forward_error(job);
  if (const auto found = job->find("bill"); found != job->end()) bill = *found;
  for (const auto& [key, what] :
       {std::pair{"accelerator_hours", "accelerator-hours"},
        std::pair{"lost_accelerator_hours", "lost accelerator-hours"},
        std::pair{"energy_kwh", "kWh"}, std::pair{"cost_usd", "cost, USD"}}) {
    story.bill.emplace_back(what, fmt::format("{:.4g}", number_of(bill, key)));
  }
  return story;
}

Json attempts_json(const TrainingLog& log) {
  Json attempts = Json::array();
  for (const TrainedGeneration& each : log.generations) {
    if (attempts.empty() || attempts.back().at("attempt") != each.attempt) {
      attempts.push_back({{"attempt", each.attempt}, {"generations", Json::array()}});
    }
    attempts.back()["generations"].push_back({{"generation", each.generation},
                                              {"ranks", each.ranks},
                                              {"step", each.step},
                                              {"at", each.at}});
  }
  return attempts;
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json summary_json(const TrainingStory& story, const Json& bill) {
  const TrainingLog& run = story.run;
  Json json{
      {"steps", run.steps.size()},
      {"final_loss", run.steps.empty() ? Json() : Json(run.steps.back().loss)},
      {"held_out_loss", or_null(run.held_out_loss)},
      {"final_state_sha256", run.state_sha256},
      {"attempts", attempts_json(run)},
      {"layout", run.layout_text()},
      {"step_s_measured", run.median_step_s()},
      {"step_s_mean", story.predicted ? Json(run.mean_step_s(story.predicted->ranks)) : Json()},
      {"step_s_predicted", story.predicted ? Json(story.predicted->seconds) : Json()},
      {"step_s_prediction_error", or_null(story.prediction_error())},
      {"detect_s", or_null(story.detect_s())},
      {"recover_s", run.recoveries_s.empty() ? Json() : Json(run.recoveries_s.front())}};
  for (const char* key : {"accelerator_hours", "energy_kwh", "lost_accelerator_hours"}) {
    json[key] = number_of(bill, key);
  }
  if (story.kill) {
    json["killed_pids"] = story.kill->pids;
    json["killed_at_step"] = story.kill->step;
    json["killed_node"] = story.kill->node;
  }
  if (story.unbroken) {
    const TrainingLog& whole = *story.unbroken;
    json["unbroken_final_loss"] = whole.steps.empty() ? Json() : Json(whole.steps.back().loss);
    json["unbroken_state_sha256"] = whole.state_sha256;
    json["unbroken_step_s_measured"] = whole.median_step_s();
  }
  return json;
}

std::string summary_text(const TrainingStory& story) {
  const TrainingLog& run = story.run;
  std::string text =
      fmt::format("{} steps, last loss {:.6f}, {:.0f} ms per step\n", run.steps.size(),
                  run.steps.empty() ? 0.0 : run.steps.back().loss, 1000 * run.median_step_s());
  for (const TrainedGeneration& each : run.generations) {
    text += fmt::format("generation {} from step {}: {} ranks{}\n", each.generation, each.step,
                        each.ranks, each.lost_at ? ", one rank was lost" : "");
  }
  if (const auto detect = story.detect_s(); detect && !run.recoveries_s.empty()) {
    text += fmt::format(
        "loss of the rank detected after {:.3f} s, next step completed {:.3f} s later\n", *detect,
        run.recoveries_s.front());
  }
  if (story.predicted) {
    const std::uint32_t ranks = story.predicted->ranks;
    text += fmt::format("step of {} ranks: predicted {:.1f} ms, measured {:.1f} ms ({:+.1f} %)\n",
                        ranks, 1000 * story.predicted->seconds, 1000 * run.mean_step_s(ranks),
                        100 * story.prediction_error().value_or(0));
  }
  text += fmt::format("state {}\n", run.state_sha256);
  if (!story.unbroken) return text;
  return text + fmt::format("state {} of the unbroken run: {}\n", story.unbroken->state_sha256,
                            story.ended_equal() ? "equal, bit for bit" : "DIFFERENT");
}

}  // namespace

VerbAnswer training_summary(const TrainingStory& story, const Json& bill) {
  return {summary_text(story), summary_json(story, bill)};
}

Result<JudgedAnswer> report_training(const CommandOptions& options,
                                     const TrainingReportCall& call) {
  if (call.prediction.training.empty() != call.prediction.calibration.empty()) {
    return input_error({}, "--training and --calibration: expected both or neither");
  }
  Json bill = Json::object();
  Result<TrainingStory> story = read_story(call, bill);
  if (!story) return forward_error(story);
  if (!call.prediction.training.empty()) {
    const Result<PredictedStep> predicted = read_prediction(options, call.prediction, story->run);
    if (!predicted) return tl::unexpected(predicted.error());
    story->predicted = *predicted;
  }
  if (!call.out.empty()) {
    if (Status written = write_output_file(call.out, training_html(*story)); !written) {
      return forward_error(written);
    }
  }
  JudgedAnswer report{.shown = training_summary(*story, bill), .verdict = {}};
  if (story->unbroken && !story->ended_equal()) {
    report.verdict = infeasible("the two runs did not end in the same state, or did not both end");
  }
  return report;
}

}  // namespace orrery

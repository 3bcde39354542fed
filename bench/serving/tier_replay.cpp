// tier_replay: plays answers of real models through the gate of a service with a smaller model and
// through the judge of a canary (scripts/bench_tiers).
//
//   tier_replay --outcomes FILE.json [--seeds N] [--requests N]
//
// The file has what each model answered to each of many tasks, and what is right. A seed draws
// requests from the tasks; after half of them the small model may break: an earlier checkpoint of
// it answers from then on. The promise: at any time at most 5 % of the answers so far are another
// text than the large model's, confidence 95 %.
//
// The peer is a fixed threshold on the probability that the small model is good enough, as
// RouteLLM's: fitted once to labelled tasks, the lowest threshold that keeps the promise on the
// half of the tasks that it is tuned on; played, as the gate is, on the other half. It needs no
// audits. Costs are in those of an answer of the large model.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers/rng.hpp"
#include "bench/figure.hpp"
#include "gateway/tiers/tiered_body.hpp"
#include "serving/canary.hpp"
#include "serving/tiers/tier_gate.hpp"

namespace orrery {
namespace {

constexpr QualityTerms kTerms{.loss_max = 0.05, .delta = 0.05, .audit = 0.05};

struct AnsweredTask {
  TierFeatures features{};
  bool small_same = false;   ///< as the large model's
  bool broken_same = false;  ///< the broken small model's
  bool large_right = false;
  bool int8_right = false;
  bool bad_right = false;
};

struct Outcomes {
  double small_cost = 0;
  std::vector<AnsweredTask> tuned;   ///< every other task
  std::vector<AnsweredTask> played;  ///< the others
};

AnsweredTask task_of(const Json& json) {
  const Json& answers = json.at("answers");
  const std::string right = json.at("right");
  AnsweredTask task;
  WebRequest request{.method = "POST", .target = "/v1/completions", .headers = {}, .body = {}};
  request.body = Json{{"model", "tasks"}, {"prompt", json.at("prompt")}, {"max_tokens", 12}}.dump();
  task.features = TieredBody::read(request)->features();
  task.small_same = answers.at("small") == answers.at("large");
  task.broken_same = answers.at("broken") == answers.at("large");
  task.large_right = answers.at("large") == right;
  task.int8_right = answers.at("int8") == right;
  task.bad_right = answers.at("bad") == right;
  return task;
}

Outcomes read_outcomes(const std::string& path) {
  std::ifstream file(path);
  const Json json = Json::parse(file, nullptr, false);
  if (json.is_discarded()) must(Result<int>(input_error({path}, "no JSON of scripts/bench_tiers")));
  Outcomes outcomes{.small_cost = json.at("small_cost"), .tuned = {}, .played = {}};
  std::size_t count = 0;
  for (const Json& each : json.at("tasks")) {
    (count++ % 2 == 0 ? outcomes.tuned : outcomes.played).push_back(task_of(each));
  }
  return outcomes;
}

const AnsweredTask& draw_of(const std::vector<AnsweredTask>& tasks, Rng& rng) {
  return tasks[rng.below(tasks.size())];
}

enum class SmallModel : std::uint8_t { kStays, kBreaks };

/// A run of requests, of which the promise is watched after each.
struct TierRun {
  SmallModel small = SmallModel::kStays;
  std::uint64_t seed = 0;
  std::uint64_t requests = 0;
};

struct TierOutcome {
  bool broken = false;
  double cost = 0;
  std::uint64_t audits_to_retreat = 0;
};

/// What a run came to so far.
class PromiseWatch {
 public:
  void add(AnswerQuality quality, double cost) {
    ++answers_;
    worse_ += quality == AnswerQuality::kWorse ? 1 : 0;
    cost_ += cost;
    broken_ = broken_ || static_cast<double>(worse_) > kTerms.loss_max * answers();
  }
  [[nodiscard]] TierOutcome outcome() const { return {broken_, cost_ / answers(), 0}; }

 private:
  [[nodiscard]] double answers() const { return static_cast<double>(answers_); }

  std::uint64_t answers_ = 0;
  std::uint64_t worse_ = 0;
  double cost_ = 0;
  bool broken_ = false;
};

TierOutcome play_gate(const Outcomes& outcomes, const TierRun& run) {
  Rng tasks = Rng::stream(run.seed, "tasks");
  Rng draws = Rng::stream(run.seed, "audits");
  TierGate gate({.quality = kTerms});
  PromiseWatch watch;
  std::uint64_t audits_before = 0;
  std::uint64_t audits_to_retreat = 0;
  for (std::uint64_t i = 0; i < run.requests; ++i) {
    const bool breaks = run.small == SmallModel::kBreaks && i >= run.requests / 2;
    const AnsweredTask& task = draw_of(outcomes.played, tasks);
    const bool same = breaks ? task.broken_same : task.small_same;
    const TierChoice choice = gate.choose(task.features, draws.uniform());
    gate.add_answer();
    if (choice.compares) {
      gate.settle(choice, task.features, same ? AnswerQuality::kAsGood : AnswerQuality::kWorse);
    }
    const double small_cost = choice.is_small() || choice.compares ? outcomes.small_cost : 0;
    const double large_cost = !choice.is_small() || choice.compares ? 1 : 0;
    const bool worse = choice.is_small() && !same;
    watch.add(worse ? AnswerQuality::kWorse : AnswerQuality::kAsGood, small_cost + large_cost);
    if (!breaks) audits_before = gate.ledger().audited();
    if (breaks && audits_to_retreat == 0 && gate.learning()) {
      audits_to_retreat = gate.ledger().audited() - audits_before;
    }
  }
  TierOutcome outcome = watch.outcome();
  outcome.audits_to_retreat = audits_to_retreat;
  return outcome;
}

/// The peer's model and threshold.
struct FixedThreshold {
  TierModel model;
  double threshold = 1;

  [[nodiscard]] bool passes(const AnsweredTask& task) const {
    return probability_of(model, task.features) >= threshold;
  }
};

/// The lowest of 100 thresholds with which at most 5 % of the tuned answers are worse.
FixedThreshold tune(const Outcomes& outcomes) {
  std::vector<LabelledTask> labelled;
  labelled.reserve(outcomes.tuned.size());
  for (const AnsweredTask& task : outcomes.tuned)
    labelled.push_back({task.features, task.small_same});
  FixedThreshold rule{must(fit_tier_model(labelled)), 1};
  const double most = kTerms.loss_max * static_cast<double>(outcomes.tuned.size());
  for (int step = 99; step >= 0; --step) {
    const FixedThreshold tried{rule.model, step / 100.0};
    const auto worse = std::ranges::count_if(outcomes.tuned, [&](const AnsweredTask& task) {
      return tried.passes(task) && !task.small_same;
    });
    if (static_cast<double>(worse) > most) break;
    rule = tried;
  }
  return rule;
}

TierOutcome play_fixed(const Outcomes& outcomes, const FixedThreshold& rule, const TierRun& run) {
  Rng tasks = Rng::stream(run.seed, "tasks");
  PromiseWatch watch;
  for (std::uint64_t i = 0; i < run.requests; ++i) {
    const bool breaks = run.small == SmallModel::kBreaks && i >= run.requests / 2;
    const AnsweredTask& task = draw_of(outcomes.played, tasks);
    const bool same = breaks ? task.broken_same : task.small_same;
    const bool small = rule.passes(task);
    watch.add(small && !same ? AnswerQuality::kWorse : AnswerQuality::kAsGood,
              small ? outcomes.small_cost : 1);
  }
  return watch.outcome();
}

double median_of(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

void print_tiers(const Outcomes& outcomes, std::uint64_t seeds, std::uint64_t requests) {
  const FixedThreshold rule = tune(outcomes);
  fmt::print(stderr, "fixed threshold, tuned: {:.2f}\n", rule.threshold);
  for (const SmallModel small : {SmallModel::kStays, SmallModel::kBreaks}) {
    double broken = 0;
    double peer_broken = 0;
    std::uint64_t slowest = 0;
    std::vector<double> costs;
    std::vector<double> peer_costs;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      const TierRun run{small, seed, requests};
      const TierOutcome ours = play_gate(outcomes, run);
      const TierOutcome peer = play_fixed(outcomes, rule, run);
      broken += ours.broken ? 1 : 0;
      peer_broken += peer.broken ? 1 : 0;
      costs.push_back(ours.cost);
      peer_costs.push_back(peer.cost);
      slowest = std::max(slowest, ours.audits_to_retreat);
    }
    const char* what = small == SmallModel::kStays ? "nothing changes" : "the small model breaks";
    const auto count = static_cast<double>(seeds);
    print_figure({"tiers", fmt::format("runs that break the promise, {}", what), broken / count,
                  "share", kTerms.delta, "fixed threshold", peer_broken / count});
    print_figure({"tiers", fmt::format("cost, {}", what), median_of(costs), "of the large model's",
                  small == SmallModel::kStays ? std::optional(0.6) : std::nullopt,
                  "fixed threshold", median_of(peer_costs)});
    if (small == SmallModel::kBreaks) {
      print_figure({"tiers",
                    "audits until the retreat, most",
                    static_cast<double>(slowest),
                    "audits",
                    200,
                    {},
                    {}});
    }
  }
}

struct CanaryRun {
  CanaryOutcome outcome = CanaryOutcome::kNotWorse;
  double seen = 0;  ///< share of all requests that the canary got until then
};

/// Stages of 1, 10 and 50 % of the requests, 6,000 requests each, judged after each request.
CanaryRun play_canary(const Outcomes& outcomes, bool AnsweredTask::* canary_right,
                      std::uint64_t seed) {
  Rng rng = Rng::stream(seed, "canary");
  CanaryArm canary;
  CanaryArm former;
  for (const double share : {0.01, 0.1, 0.5}) {
    const std::uint64_t before = canary.requests;
    CanaryJudgement judged;
    for (int i = 0; i < 6000 || judged.outcome == CanaryOutcome::kTooFew; ++i) {
      const bool tried = rng.uniform() < share;
      const AnsweredTask& task = draw_of(outcomes.played, rng);
      CanaryArm& arm = tried ? canary : former;
      ++arm.requests;
      arm.quality.count += 1;
      arm.quality.sum += (tried ? task.*canary_right : task.large_right) ? 1 : 0;
      if (!tried) continue;
      judged = judge_canary(canary, former,
                            {.requests_min = before + 50, .latencies = false, .quality = true});
      const auto requests = static_cast<double>(canary.requests);
      const double seen = requests / (requests + static_cast<double>(former.requests));
      if (judged.outcome == CanaryOutcome::kWorse) return {judged.outcome, seen};
    }
  }
  return {};
}

void print_canaries(const Outcomes& outcomes, std::uint64_t seeds) {
  double promoted = 0;
  double in_time = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const CanaryRun good = play_canary(outcomes, &AnsweredTask::int8_right, seed);
    const CanaryRun bad = play_canary(outcomes, &AnsweredTask::bad_right, seed);
    promoted += good.outcome == CanaryOutcome::kNotWorse ? 1 : 0;
    in_time += bad.outcome == CanaryOutcome::kWorse && bad.seen < 0.05 ? 1 : 0;
  }
  const auto count = static_cast<double>(seeds);
  print_figure(
      {"tiers", "canary: int8 weights rolled back", 1 - promoted / count, "share", 0.05, {}, {}});
  print_figure({"tiers",
                "canary: earlier checkpoint seen too late or never",
                1 - in_time / count,
                "share",
                0.05,
                {},
                {}});
}

}  // namespace
}  // namespace orrery

int main(int count, char** arguments) {
  CLI::App app("Plays answers of real models through the gate of tiers and the judge of canaries.",
               "tier_replay");
  std::string file;
  std::uint64_t seeds = 100;
  std::uint64_t requests = 20'000;
  app.add_option("--outcomes", file, "answers of scripts/bench_tiers")->required();
  app.add_option("--seeds", seeds, "runs");
  app.add_option("--requests", requests, "of a run");
  CLI11_PARSE(app, count, arguments);
  const orrery::Outcomes outcomes = orrery::read_outcomes(file);
  orrery::print_tiers(outcomes, seeds, requests);
  orrery::print_canaries(outcomes, seeds);
  return 0;
}

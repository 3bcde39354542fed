#include "planner/serving/apart_plan.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

/// Where no rate is asked for, numbers of instances are tried up to so many of the kind of which
/// there are fewer: larger ones would leave more of a machine over.
constexpr double kFewerMost = 4;
constexpr double kPromptsMost = 512;

/// The least x in [low, high] that `holds`, to a ten thousandth. Precondition: high holds.
template <class Holds>
double least(double low, double high, Holds holds) {
  while (high - low > 1e-4 * high) {
    const double middle = (low + high) / 2;
    (holds(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

void ApartSearch::add(const ServingJob& job, const ServingConstants& constants, double taken) {
  ApartCandidate& candidate =
      candidates_.emplace_back(ApartCandidate{.job = job, .constants = constants, .taken = taken});
  ServingLoad& load = candidate.job.load;
  load.output = std::min(load.output, constants.engine.answer);
  candidate.prompt = prompt_instance(candidate.job, constants);
  candidate.answer = fullest(candidate);
}

std::optional<AnswerInstance> ApartSearch::fullest(const ApartCandidate& candidate) const {
  const ServingPlan& plan = candidate.job.plan;
  if (candidate.job.load.output < 2) return std::nullopt;
  const auto at = [&](double batch) {
    return answer_instance(candidate.job, candidate.constants, batch);
  };
  const auto slow = [&](double batch) {
    return question_.limits.tpot && at(batch).tpot > *question_.limits.tpot;
  };
  const double first = plan.attention_dp * plan.pp;
  AnswerInstance instance = at(first);
  const double scheduler = candidate.constants.engine.sequences_max * plan.attention_dp;
  double bad = std::floor(std::min(instance.memory.sequences, scheduler)) + 1;
  double good = first;
  if (bad <= first || slow(first)) return std::nullopt;
  while (bad - good > 1) {
    const double middle = std::floor((good + bad) / 2);
    (slow(middle) ? bad : good) = middle;
  }
  return at(good);
}

/// Prompts a second of one instance; each group of devices sends one cache at a time.
double ApartSearch::prompt_rate(const ApartPair& pair) const {
  const ApartCandidate& candidate = *pair.prompts;
  return std::min(candidate.prompt.requests_max,
                  candidate.job.plan.attention_dp / pair.transfer.value());
}

double ApartSearch::answer_rate(const ApartPair& pair) const {
  const ApartCandidate& candidate = *pair.answers;
  return std::min(candidate.answer->requests,
                  candidate.job.plan.attention_dp / pair.transfer.value());
}

/// Accelerators for one request a second, were there parts of instances.
double ApartSearch::least_taken(const ApartPair& pair) const {
  return pair.prompts->taken / (kBusyMax * prompt_rate(pair)) +
         pair.answers->taken / answer_rate(pair);
}

/// The first token waits for the prompts ahead, its own, the cache's way and half a pass.
double ApartSearch::ttft(const ApartPair& pair, const ApartSize& size, Seconds tpot) const {
  const ApartCandidate& prompts = *pair.prompts;
  const double each = size.requests / size.prompts;
  const double running = std::max(1.0, each * (prompts.job.load.output - 1) * tpot.value());
  const EngineConstants& engine = prompts.constants.engine;
  const double ahead = std::min(running, prompts_ahead(engine, each / prompt_rate(pair), running));
  return engine.first + prompts.prompt.prompt.value() * (1 + ahead) + pair.transfer.value() +
         tpot.value() / 2;
}

/// Whether the first token comes in time with the answers' instances full.
bool ApartSearch::keeps_first(const ApartPair& pair, const ApartSize& size) const {
  const auto& limit = question_.limits.ttft;
  return !limit || ttft(pair, size, pair.answers->answer->tpot) <= limit->value();
}

/// Requests a second that so many instances serve; 0: none within the limits.
double ApartSearch::capacity(const ApartPair& pair, ApartSize size) const {
  const double most =
      std::min(size.prompts * kBusyMax * prompt_rate(pair), size.answers * answer_rate(pair));
  const auto late = [&](double requests) {
    size.requests = requests;
    return !keeps_first(pair, size);
  };
  if (!late(most)) return most;
  if (late(1e-6 * most)) return 0;
  return least(1e-6 * most, most, late) * (1 - 2e-4);
}

/// The fewest instances for the rate, with less than `most` accelerators.
bool ApartSearch::set_for_rate(ApartPair& pair, double most) const {
  const double rate = *question_.rate;
  ApartSize& size = pair.size;
  size.requests = rate;
  size.answers = std::ceil(rate / answer_rate(pair) * (1 - 1e-9));
  size.prompts = std::ceil(rate / (kBusyMax * prompt_rate(pair)) * (1 - 1e-9));
  const double limit =
      std::floor((most - size.answers * pair.answers->taken) / pair.prompts->taken);
  if (size.prompts > limit) return false;
  double bad = size.prompts - 1;
  const auto enough = [&](double prompts) {
    size.prompts = prompts;
    return keeps_first(pair, size);
  };
  double good = size.prompts;
  while (!enough(good)) {
    if (good >= limit) return false;
    bad = good;
    good = std::min(2 * good, limit);
  }
  while (good - bad > 1) {
    const double middle = std::floor((good + bad) / 2);
    (enough(middle) ? good : bad) = middle;
  }
  size.prompts = good;
  pair.requests_max = std::max(rate, capacity(pair, size));
  return true;
}

/// The numbers of instances with the fewest accelerators for a request, as often as there is room.
bool ApartSearch::set_for_machine(ApartPair& pair) const {
  const double there = question_.accelerators.value_or(INFINITY);
  double best = INFINITY;
  ApartSize kept;
  const double ratio = kBusyMax * prompt_rate(pair) / answer_rate(pair);
  const double most = std::clamp(kFewerMost * std::ceil(1 / ratio), kFewerMost, kPromptsMost);
  for (double prompts = 1; prompts <= most; ++prompts) {
    const double fair = prompts * ratio;
    const double room = std::floor((there - prompts * pair.prompts->taken) / pair.answers->taken);
    for (const double answers : {std::floor(fair), std::ceil(fair)}) {
      pair.size = {.prompts = prompts, .answers = std::clamp(answers, 1.0, std::max(1.0, room))};
      pair.size.requests = capacity(pair, pair.size);
      if (pair.taken() > there || pair.size.requests <= 0) continue;
      const double each = pair.taken() / pair.size.requests;
      if (each >= best * (1 - 1e-9)) continue;
      best = each;
      kept = pair.size;
    }
  }
  if (best == INFINITY) return false;
  pair.size = kept;
  const double times = question_.accelerators ? std::floor(there / pair.taken()) : 1;
  pair.size.prompts *= times;
  pair.size.answers *= times;
  pair.size.requests *= times;
  pair.requests_max = pair.size.requests;
  return true;
}

std::optional<ApartPair> ApartSearch::best() const {
  std::vector<ApartPair> pairs;
  for (const ApartCandidate& prompts : candidates_) {
    for (const ApartCandidate& answers : candidates_) {
      if (!answers.answer) continue;
      pairs.push_back({.prompts = &prompts,
                       .answers = &answers,
                       .transfer = cache_transfer(prompts.job, answers.job, question_.network)});
    }
  }
  std::ranges::stable_sort(pairs, [&](const ApartPair& a, const ApartPair& b) {
    return least_taken(a) < least_taken(b);
  });
  std::optional<ApartPair> best;
  double fewest = INFINITY;  // accelerators for one request a second
  for (ApartPair& pair : pairs) {
    if (least_taken(pair) >= fewest) break;
    const double there = question_.accelerators.value_or(INFINITY);
    const double rate = question_.rate.value_or(1);
    const bool set =
        question_.rate ? set_for_rate(pair, std::min(there, fewest * rate)) : set_for_machine(pair);
    if (!set || pair.taken() / pair.size.requests >= fewest) continue;
    fewest = pair.taken() / pair.size.requests;
    best = pair;
  }
  return best;
}

ApartFigures ApartSearch::figures(const ApartPair& pair) const {
  const ApartCandidate& answers = *pair.answers;
  const double each = pair.size.requests / pair.size.answers;
  const auto serves = [&](double batch) {
    return answer_instance(answers.job, answers.constants, batch).requests >= each;
  };
  const double batch = least(0, answers.answer->batch, serves);
  ApartFigures figures;
  figures.answer = answer_instance(answers.job, answers.constants, batch);
  figures.tpot = figures.answer.tpot;
  figures.ttft = Seconds{ttft(pair, pair.size, figures.tpot)};
  figures.e2e = figures.ttft + figures.tpot * (answers.job.load.output - 1);
  figures.busy = pair.size.requests / (pair.size.prompts * pair.prompts->prompt.requests_max);
  return figures;
}

ServingExpense ApartSearch::expense(const Economics& economics, const ApartPair& pair) const {
  const ApartFigures at = figures(pair);
  ServingPrediction prompt;
  prompt.requests = pair.size.requests / pair.size.prompts;
  prompt.batch = at.busy;
  prompt.breakdown = pair.prompts->prompt.breakdown;
  ServingPrediction answer;
  answer.requests = pair.size.requests / pair.size.answers;
  answer.batch = at.answer.batch;
  answer.breakdown = at.answer.breakdown;
  ServingExpense both = expense_of(economics, {.job = pair.prompts->job,
                                               .constants = pair.prompts->constants,
                                               .prediction = prompt,
                                               .instances = pair.size.prompts,
                                               .role = ServingRole::kPrompt});
  const ServingExpense other = expense_of(economics, {.job = pair.answers->job,
                                                      .constants = pair.answers->constants,
                                                      .prediction = answer,
                                                      .instances = pair.size.answers,
                                                      .role = ServingRole::kAnswer});
  if (both.power && other.power) *both.power += *other.power;
  if (both.price && other.price) *both.price += *other.price;
  return both;
}

}  // namespace orrery

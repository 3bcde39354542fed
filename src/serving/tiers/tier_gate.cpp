#include "serving/tiers/tier_gate.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace orrery {
namespace {

/// Weight of a request in the share of the small model.
constexpr double kNewest = 0.005;
/// Log likelihood ratio at which audits end in a retreat. A model at the allowed rate gets there
/// once in exp(6) = 400 audits at most (Lorden 1971); a good one hardly ever.
constexpr double kRetreatAt = 6;

}  // namespace

std::string_view name_of(TierReason reason) {
  switch (reason) {
    case TierReason::kGoodEnough:
      return "good enough";
    case TierReason::kDoubtful:
      return "doubtful";
    case TierReason::kNoAllowance:
      return "no allowance";
    case TierReason::kLearning:
      return "learning";
    case TierReason::kUnfit:
      return "unfit";
  }
  return "";
}

TierChoice TierGate::choose(const TierFeatures& features, double draw) {
  const bool compares = draw < (learning() ? terms_.probe : terms_.quality.audit);
  TierChoice choice{TierReason::kLearning, compares};
  if (!learning()) {
    const bool suits = probability_of(model_, features) >= *threshold_;
    small_share_ += kNewest * ((suits ? 1.0 : 0.0) - small_share_);
    choice.reason = !suits             ? TierReason::kDoubtful
                    : ledger_.allows() ? TierReason::kGoodEnough
                                       : TierReason::kNoAllowance;
  }
  if (choice.is_small()) ledger_.add_small(compares ? Audit::kBegun : Audit::kNone);
  return choice;
}

void TierGate::settle(const TierChoice& choice, const TierFeatures& features, AnswerQuality found) {
  tasks_.push_back({features, found == AnswerQuality::kAsGood});
  if (tasks_.size() > terms_.tasks) tasks_.pop_front();
  ++fresh_;
  if (choice.is_small()) {
    ledger_.settle(found);
    // What was answered before a retreat says nothing about the time after it.
    if (!learning()) watch_audit(found);
  }
  if (tasks_.size() == terms_.tasks && fresh_ * 4 >= terms_.tasks) learn();
}

void TierGate::drop(const TierChoice& choice) {
  if (choice.is_small() && choice.compares) ledger_.settle(AnswerQuality::kAsGood);
}

void TierGate::learn() {
  fresh_ = 0;
  // Every other task, so that both halves are of the same time.
  std::vector<LabelledTask> fitted;
  std::vector<LabelledTask> others;
  fitted.reserve(tasks_.size());
  others.reserve(tasks_.size());
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    (i % 2 == 0 ? fitted : others).push_back(tasks_[i]);
  }
  const Result<TierModel> model = fit_tier_model(fitted);
  if (!model) return;
  std::vector<ScoredTask> scored;
  scored.reserve(others.size());
  for (const LabelledTask& task : others) {
    scored.push_back({probability_of(*model, task.features), task.good});
  }
  // A part of the promise alone, so that audits do not come near it while nothing changes.
  constexpr double kPart = 0.6;
  threshold_ = tier_threshold(scored, kPart * terms_.quality.loss_max, terms_.quality.delta);
  model_ = *model;
  if (!threshold_) return;
  // A threshold that hardly any request reaches saves nothing: learning on is faster.
  const auto passing = std::ranges::count_if(
      scored, [&](const ScoredTask& task) { return task.probability >= *threshold_; });
  if (static_cast<std::size_t>(passing) * 10 < scored.size()) threshold_.reset();
}

/// The rate of worse answers among the small model's own at which the promise is just kept.
double TierGate::allowed_rate() const {
  constexpr double kMost = 0.3;
  return std::min(terms_.quality.loss_max / std::max(small_share_, 1e-3), kMost);
}

void TierGate::watch_audit(AnswerQuality found) {
  const double allowed = allowed_rate();
  const double likely = 3 * allowed;
  const double ratio = found == AnswerQuality::kWorse ? std::log(likely / allowed)
                                                      : std::log((1 - likely) / (1 - allowed));
  evidence_ = std::max(0.0, evidence_ + ratio);
  if (evidence_ < kRetreatAt) return;
  threshold_.reset();
  tasks_.clear();
  evidence_ = 0;
  ++retreats_;
}

}  // namespace orrery

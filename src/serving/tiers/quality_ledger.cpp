#include "serving/tiers/quality_ledger.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.hpp"

namespace orrery {

QualityLedger::QualityLedger(const QualityTerms& terms) : terms_(terms) {
  ORRERY_ASSERT(terms.loss_max > 0 && terms.loss_max <= 1 && terms.delta > 0 && terms.delta <= 1 &&
                    terms.audit > 0 && terms.audit <= 1,
                "shares are above 0 and at most 1");
  // Few audits that found something are bounded best by a large weight, many by a small one.
  constexpr double kGreatest = 8;
  double weight = kGreatest;
  for (Line& line : lines_) {
    line = {.weight = weight, .slope = -std::log1p(-terms.audit * -std::expm1(-weight))};
    weight /= 2;
  }
  start_ = std::log(static_cast<double>(kBounds) / terms.delta);
}

void QualityLedger::add_small(Audit audit) {
  ++small_;
  if (audit == Audit::kNone) return;
  ++audited_;
  ++lost_;
}

void QualityLedger::settle(AnswerQuality found) {
  ORRERY_ASSERT(lost_ > 0, "only an audit that was begun is settled");
  lost_ -= found == AnswerQuality::kAsGood ? 1 : 0;
}

double QualityLedger::bound() const {
  if (small_ == 0) return 0;
  // With every answer audited nothing is left to estimate.
  if (terms_.audit >= 1) return static_cast<double>(lost_);
  double least = static_cast<double>(small_);
  for (const Line& line : lines_) {
    least = std::min(least, (line.weight * static_cast<double>(lost_) + start_) / line.slope);
  }
  return least;
}

bool QualityLedger::allows() const {
  return bound() + 1 <= terms_.loss_max * static_cast<double>(answers_ + 1);
}

}  // namespace orrery

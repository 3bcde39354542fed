// serving/tiers/tier_gate.hpp - which of two models answers a request: the small one where it is
// good enough, the large one elsewhere.
//
// The gate first learns. The large model answers all, the small one is asked beside it for a share
// of the requests, and the comparisons are labelled tasks. A model of the probability that the
// small one is good enough is fitted to one half of the newest tasks, the threshold from which on
// it may answer is found on the other. Then it serves: the small model answers where its
// probability reaches the threshold and the ledger has room for one more answer that is worse. A
// share of all requests is compared, whichever model answers; from these the gate learns on.
//
// The ledger alone keeps the promise about all answers so far. But what it has saved up would let a
// model that has become bad answer for a while, so audits are watched as well: a cumulative sum of
// log likelihood ratios (Page 1954), of three times the rate that the promise allows against that
// rate, ends in a retreat: the gate forgets what it has learnt, and learns anew.
//
// Owned by a gateway for a service with tiers. Randomness is a value: each request brings a draw.
// One thread. Cost: O(1) a request; fitting O(tasks) once in so many probes.
// Invariants:
//   1. An audit that was begun is settled or dropped at most once.
//   2. While the gate learns the small model answers nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>

#include "serving/tiers/quality_ledger.hpp"
#include "serving/tiers/tier_model.hpp"

namespace orrery {

enum class TierReason : std::uint8_t {
  kGoodEnough,   ///< small: its probability reaches the threshold
  kDoubtful,     ///< large: its probability does not
  kNoAllowance,  ///< large: one answer more that is worse might break the promise
  kLearning,     ///< large: what the small model can do is not known
  kUnfit,  ///< large: the request is of a kind that is not compared, or the small model is away
};

/// "good enough", "doubtful", "no allowance", "learning", "unfit".
[[nodiscard]] std::string_view name_of(TierReason reason);

struct TierChoice {
  TierReason reason = TierReason::kUnfit;
  /// Both models are asked, and what the comparison finds is told to settle().
  bool compares = false;

  [[nodiscard]] bool is_small() const { return reason == TierReason::kGoodEnough; }
};

struct TierTerms {
  QualityTerms quality;
  double probe = 0.25;      ///< share of the requests that are compared while the gate learns
  std::size_t tasks = 600;  ///< newest comparisons that it learns from

  friend bool operator==(const TierTerms&, const TierTerms&) = default;
};

class TierGate {
 public:
  explicit TierGate(const TierTerms& terms) : terms_(terms), ledger_(terms.quality) {}

  /// Chooses for a request and notes the choice. `draw` in [0, 1), even, of this request alone.
  TierChoice choose(const TierFeatures& features, double draw);
  /// A client has got an answer, of either model.
  void add_answer() { ledger_.add_answer(); }
  /// A comparison that choose() asked for has ended. One that cannot be made is not settled: an
  /// audit counts as lost for good, and nothing is learnt.
  void settle(const TierChoice& choice, const TierFeatures& features, AnswerQuality found);
  /// An audited answer was not wanted any more: it was not worse, and nothing is learnt.
  void drop(const TierChoice& choice);

  [[nodiscard]] const TierTerms& terms() const { return terms_; }
  [[nodiscard]] const QualityLedger& ledger() const { return ledger_; }
  [[nodiscard]] bool learning() const { return !threshold_; }
  /// Times that audits have ended the small model's work.
  [[nodiscard]] std::uint64_t retreats() const { return retreats_; }

 private:
  [[nodiscard]] double allowed_rate() const;
  void learn();
  void watch_audit(AnswerQuality found);

  TierTerms terms_;
  QualityLedger ledger_;
  std::deque<LabelledTask> tasks_;  ///< the newest comparisons
  std::size_t fresh_ = 0;           ///< of these, since the gate learnt
  TierModel model_;
  std::optional<double> threshold_;  ///< none: the gate learns
  double small_share_ = 1;           ///< of the newest requests, suited to the small model
  double evidence_ = 0;              ///< of a small model that has become worse
  std::uint64_t retreats_ = 0;
};

}  // namespace orrery

// gateway/tiers/tier_comparison.hpp - asks the other model of a service with tiers for the same
// request, and compares the answers.
//
// The desk (gateway/tiers/tier_desk.hpp) owns it until `done` has run, which it does once, in a
// round of the loop of its own. On the loop's thread. It goes through the same router as all
// requests, and is charged to the replicas that it asks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/system/real_loop.hpp"
#include "gateway/tiers/tiered_body.hpp"
#include "http/web_client.hpp"
#include "serving/routing/route_table.hpp"
#include "serving/routing/router_state.hpp"
#include "serving/tiers/quality_ledger.hpp"

namespace orrery {

class GatewayCore;

/// What is to be compared.
struct ComparedAnswers {
  TieredBody body;
  std::string answer;  ///< text of the model that has answered the client
  enum class By : std::uint8_t { kSmall, kLarge } by = By::kSmall;
  std::uint64_t small = 0;  ///< RoutedService::id
  std::uint64_t large = 0;
  TierMeasure measure = TierMeasure::kExact;
};

class TierComparison final : public WebCallEvents {
 public:
  /// Nothing: the other model, or the judge, could not be asked.
  using Done = std::function<void(std::optional<AnswerQuality>)>;

  TierComparison(GatewayCore& core, ComparedAnswers answers);
  TierComparison(const TierComparison&) = delete;
  TierComparison& operator=(const TierComparison&) = delete;
  ~TierComparison() override;

  /// To be set in the round in which this was made.
  void on_done(Done done) { done_ = std::move(done); }

  void on_head(const WebResponseHead& head) override { status_ = head.status; }
  void on_body(std::string_view bytes) override;
  void on_end() override;
  void on_error(const WebCallFailure& failure) override;

 private:
  enum class Step : std::uint8_t { kOther, kJudge };

  void ask();
  void ask_again();
  void take(const std::string& text);
  void release();
  void stop_timer();
  void end(std::optional<AnswerQuality> found);

  GatewayCore& core_;
  ComparedAnswers answers_;
  Done done_;
  Step step_ = Step::kOther;
  std::uint32_t tries_ = 0;  ///< of this step
  std::optional<RouteCharge> charge_;
  std::string request_;
  int status_ = 0;
  std::string received_;
  std::optional<TimerId> timer_;
  WebCall call_;
};

/// Whether two answers say the same, but for blanks at their ends and runs of blanks within.
[[nodiscard]] bool says_the_same(std::string_view a, std::string_view b);
/// The body of a request that has a model judge whether `small` is as good an answer as `large`.
[[nodiscard]] std::string judge_request(std::string_view model, const std::string& prompt,
                                        const std::string& small, const std::string& large);
/// What a judge has said; nothing: neither yes nor no.
[[nodiscard]] std::optional<AnswerQuality> verdict_of(std::string_view said);

}  // namespace orrery

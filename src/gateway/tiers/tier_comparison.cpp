#include "gateway/tiers/tier_comparison.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <utility>

#include "gateway/gateway_core.hpp"

namespace orrery {
namespace {

/// Attempts to find a replica. A comparison can wait, since no client waits for it.
constexpr std::uint32_t kTriesMax = 30;
constexpr Duration kPause = Duration::seconds(2);
/// The longest time of one answer.
constexpr Duration kAnswerTime = Duration::minutes(5);
constexpr std::size_t kAnswerMax = std::size_t{1} << 20;
constexpr std::size_t kBytesPerToken = 4;

std::string without_runs_of_blanks(std::string_view text) {
  std::string kept;
  kept.reserve(text.size());
  for (const char c : text) {
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (blank && (kept.empty() || kept.back() == ' ')) continue;
    kept += blank ? ' ' : c;
  }
  if (kept.ends_with(' ')) kept.pop_back();
  return kept;
}

}  // namespace

bool says_the_same(std::string_view a, std::string_view b) {
  return without_runs_of_blanks(a) == without_runs_of_blanks(b);
}

std::string judge_request(std::string_view model, const std::string& prompt,
                          const std::string& small, const std::string& large) {
  const std::string question = fmt::format(
      "A request was answered twice. Is the second answer as correct and as useful as the first? "
      "Reply with one word, yes or no.\n\nRequest:\n{}\n\nFirst answer:\n{}\n\nSecond answer:\n{}",
      prompt, large, small);
  const nlohmann::ordered_json body{{"model", model},
                                    {"messages", {{{"role", "user"}, {"content", question}}}},
                                    {"temperature", 0},
                                    {"max_tokens", 4}};
  return body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::optional<AnswerQuality> verdict_of(std::string_view said) {
  std::string word;
  for (const char c : said) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalpha(byte) != 0) {
      word += static_cast<char>(std::tolower(byte));
    } else if (!word.empty()) {
      break;
    }
  }
  if (word == "yes") return AnswerQuality::kAsGood;
  if (word == "no") return AnswerQuality::kWorse;
  return std::nullopt;
}

TierComparison::TierComparison(GatewayCore& core, ComparedAnswers answers)
    : core_(core), answers_(std::move(answers)) {
  timer_ = core_.loop().call_after(Duration(), [this] {
    timer_.reset();
    ask();
  });
}

TierComparison::~TierComparison() {
  stop_timer();
  call_.cancel();
  release();
}

void TierComparison::ask() {
  const bool judges = step_ == Step::kJudge;
  const bool of_large = judges || answers_.by == ComparedAnswers::By::kSmall;
  const auto found = core_.services().find(of_large ? answers_.large : answers_.small);
  if (found == core_.services().end() || !found->second.index) return ask_again();
  const GatewayService& service = found->second;
  // The judge's question stays as it was made with the answers.
  if (!judges) request_ = answers_.body.for_comparison(service.model);
  const RouteDecision decision = choose(
      core_.router(), {.service = *service.index,
                       .prompt_tokens = request_.size() / kBytesPerToken + 1,
                       .output_tokens = static_cast<std::uint64_t>(service.tokens.output_mean),
                       .draw = core_.draws().uniform(),
                       .now = core_.now()});
  if (decision.outcome != RouteOutcome::kReplica) return ask_again();
  charge_ = core_.router().charge(decision.slot, decision.load, {}, core_.now());
  status_ = 0;
  received_.clear();
  constexpr std::array<WebHeader, 1> kHeaders{{{"Content-Type", "application/json"}}};
  call_ = core_.client().start(core_.router().replica(decision.slot).endpoint,
                               {.method = "POST",
                                .target = judges ? "/v1/chat/completions" : answers_.body.path(),
                                .headers = kHeaders,
                                .body = request_},
                               *this);
  timer_ = core_.loop().call_after(kAnswerTime, [this] {
    timer_.reset();
    call_.cancel();
    ask_again();
  });
}

void TierComparison::stop_timer() {
  if (timer_) core_.loop().cancel(*std::exchange(timer_, std::nullopt));
}

void TierComparison::ask_again() {
  release();
  if (++tries_ >= kTriesMax) return end(std::nullopt);
  timer_ = core_.loop().call_after(kPause, [this] {
    timer_.reset();
    ask();
  });
}

void TierComparison::on_body(std::string_view bytes) {
  if (received_.size() < kAnswerMax) received_.append(bytes);
}

void TierComparison::on_end() {
  stop_timer();
  if (status_ == 429 || status_ >= 500) return ask_again();
  release();
  const auto text = status_ == 200 ? answer_text(received_) : std::nullopt;
  if (text) {
    take(*text);
  } else {
    end(AnswerQuality::kWorse);
  }
}

void TierComparison::on_error(const WebCallFailure&) {
  stop_timer();
  ask_again();
}

void TierComparison::take(const std::string& text) {
  if (step_ == Step::kJudge) {
    return end(verdict_of(text).value_or(AnswerQuality::kWorse));
  }
  const bool same = says_the_same(text, answers_.answer);
  if (same || answers_.measure == TierMeasure::kExact) {
    return end(same ? AnswerQuality::kAsGood : AnswerQuality::kWorse);
  }
  const bool small_first = answers_.by == ComparedAnswers::By::kSmall;
  const auto large = core_.services().find(answers_.large);
  if (large == core_.services().end()) return end(std::nullopt);
  request_ =
      judge_request(large->second.model, answers_.body.prompt(),
                    small_first ? answers_.answer : text, small_first ? text : answers_.answer);
  step_ = Step::kJudge;
  tries_ = 0;
  ask();
}

void TierComparison::release() {
  if (const auto charge = std::exchange(charge_, std::nullopt)) {
    core_.router().credit(*charge, {}, core_.now());
  }
}

/// The desk destroys this object in `done`, which may not happen in a call of the client.
void TierComparison::end(std::optional<AnswerQuality> found) {
  timer_ = core_.loop().call_after(Duration(), [this, found] {
    timer_.reset();
    const Done done = std::move(done_);
    done(found);
  });
}

}  // namespace orrery

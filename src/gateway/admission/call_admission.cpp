#include "gateway/admission/call_admission.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "serving/routing/shedding.hpp"

namespace orrery {

CallAdmission::CallAdmission(GatewayService& service, CallerAccount& account,
                             ServiceClass service_class)
    : service_(service),
      account_(account),
      class_(service_class),
      flow_(service.queue.order().flow({service_class, account_.terms.priority},
                                       account_.terms.name, account_.terms.weight)) {}

CallAdmission::~CallAdmission() { leave(); }

bool CallAdmission::reserve(std::uint64_t tokens, Instant now) {
  tokens_ = tokens;
  reserved_ = account_.bucket.take(tokens, now);
  refused_ = !reserved_;
  return reserved_;
}

bool CallAdmission::sheds(GatewayCore& core, const RouteDecision& decision) const {
  const bool full =
      decision.outcome == RouteOutcome::kWait || decision.outcome == RouteOutcome::kShed;
  if (!full || class_ == ServiceClass::kBatch) return false;
  const double target_s = core.router().targets_of(*service_.index).ttft_s;
  if (target_s <= 0) return false;
  const double tokens = service_.queue.order().tokens_ahead(flow_, tokens_);
  const double ahead = tokens / static_cast<double>(std::max<std::uint64_t>(tokens_, 1)) +
                       static_cast<double>(service_.queue.picks());
  const double ttft_s = predicted_ttft(core.router(), decision, ahead);
  return core.draws().uniform() < shed_chance(ttft_s / target_s, core.options().shed_beyond);
}

void CallAdmission::serve() {
  FairQueue& order = service_.queue.order();
  const FairQueue::Ticket ticket = std::exchange(ticket_, 0);
  if (ticket != 0) {
    order.serve(ticket);
    service_.queue.unbind(ticket);
  } else if (!served_) {
    order.pass(flow_, tokens_);
  }
  served_ = true;
}

void CallAdmission::wait(GatewayCall& call, Instant deadline) {
  FairQueue& order = service_.queue.order();
  ticket_ = served_ ? order.push_again() : order.push(flow_, tokens_, deadline);
  service_.queue.bind(ticket_, call);
}

void CallAdmission::leave() {
  if (ticket_ == 0) return;
  service_.queue.order().erase(ticket_);
  service_.queue.unbind(std::exchange(ticket_, 0));
}

GatewayCall* CallAdmission::last_but_this() const {
  const auto ticket = service_.queue.order().last_but(flow_, tokens_);
  return ticket ? &service_.queue.at(*ticket) : nullptr;
}

void CallAdmission::settle(double tokens, Instant now) {
  const auto estimated = static_cast<double>(tokens_);
  if (std::exchange(reserved_, false)) account_.bucket.give_back(estimated - tokens, now);
  if (std::exchange(served_, false)) service_.queue.order().settle(flow_, tokens - estimated);
}

ErrorAnswer CallAdmission::quota_error() const {
  return {.status = 429,
          .message = fmt::format(
              "Rate limit reached for model '{}' of {}: {:.6g} tokens a second. Try again later.",
              service_.model, account_.terms.name, account_.terms.tokens_per_s),
          .type = "tokens",
          .code = "rate_limit_exceeded"};
}

std::string CallAdmission::retry_after(Instant now) const {
  const double seconds = account_.bucket.time_until(tokens_, now).count_seconds();
  constexpr double kMost = 86'400;
  return fmt::format("{:.0f}", std::clamp(std::ceil(seconds), 1.0, kMost));
}

void CallAdmission::add_limit_headers(std::vector<WebHeader>& headers, Instant now) {
  const TokenBucket& bucket = account_.bucket;
  if (!bucket.limited()) return;
  values_ = {fmt::format("{:.0f}", bucket.size()),
             fmt::format("{:.0f}", std::floor(bucket.left(now))),
             reset_text(bucket.time_until_full(now))};
  headers.push_back({"x-ratelimit-limit-tokens", values_[0]});
  headers.push_back({"x-ratelimit-remaining-tokens", values_[1]});
  headers.push_back({"x-ratelimit-reset-tokens", values_[2]});
}

std::string reset_text(Duration time) {
  const std::int64_t milliseconds = (time.count_ns() + 999'999) / 1'000'000;
  if (milliseconds < 1000) return fmt::format("{}ms", milliseconds);
  const std::int64_t minutes = milliseconds / 60'000;
  const double seconds = static_cast<double>(milliseconds % 60'000) / 1000;
  return minutes == 0 ? fmt::format("{:.6g}s", seconds)
                      : fmt::format("{}m{:.6g}s", minutes, seconds);
}

}  // namespace orrery

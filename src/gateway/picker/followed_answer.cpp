#include "gateway/picker/followed_answer.hpp"

namespace orrery {
namespace {

/// What is kept of the end of an answer without events, where its usage stands.
constexpr std::size_t kTailMax = std::size_t{256} << 10;

}  // namespace

void FollowedAnswer::begin(int status, std::string_view content_type) {
  status_ = status;
  if (content_type.starts_with("text/event-stream")) events_.emplace();
}

void FollowedAnswer::add(std::string_view bytes, Instant now) {
  has_body_ = true;
  if (bytes.empty()) return;
  if (!first_) first_ = now;
  last_ = now;
  if (events_) {
    static_cast<void>(events_->scan(bytes));
    return;
  }
  tail_.append(bytes);
  if (tail_.size() > 2 * kTailMax) tail_.erase(0, tail_.size() - kTailMax);
}

RequestEnd FollowedAnswer::whole_end() const {
  const bool failed = status_ >= 500 || (events_ && events_->failed());
  return failed ? RequestEnd::kFailed : RequestEnd::kCompleted;
}

bool FollowedAnswer::knows_tokens() const {
  return status_ < 300 && usage(0).known == TokenUsage::Known::kYes;
}

TokenUsage FollowedAnswer::usage(std::uint64_t prompt_estimate) const {
  if (!events_) return find_usage(tail_);
  if (events_->usage().known == TokenUsage::Known::kYes) return events_->usage();
  if (events_->chunks() == 0) return {};
  return {TokenUsage::Known::kYes, prompt_estimate, events_->chunks(), {}};
}

EndedRequest FollowedAnswer::ended(RequestEnd end, Instant arrived,
                                   std::uint64_t prompt_estimate) const {
  const TokenUsage used = usage(prompt_estimate);
  EndedRequest ended{.end = end, .prompt_tokens = used.prompt, .output_tokens = used.output};
  if (!events_ || !first_) return ended;
  ended.ttft = *first_ - arrived;
  if (used.output < 2) return ended;
  const auto gaps = static_cast<std::int64_t>(used.output - 1);
  ended.tpot = Duration::nanoseconds((last_ - *first_).count_ns() / gaps);
  return ended;
}

}  // namespace orrery

#include "gateway/service_stats.hpp"

#include <algorithm>

namespace orrery {
namespace {

constexpr Duration kPart = Duration::seconds(10);
constexpr std::int64_t kParts = 30;

bool is_late(const EndedRequest& request, const RouteTargets& targets) {
  const auto beyond = [](Duration time, double target_s) {
    return target_s > 0 && time.count_seconds() > target_s;
  };
  return beyond(request.ttft, targets.ttft_s) || beyond(request.tpot, targets.tpot_s);
}

}  // namespace

std::string_view name_of(RequestEnd end) {
  switch (end) {
    case RequestEnd::kCompleted:
      return "completed";
    case RequestEnd::kCancelled:
      return "cancelled";
    case RequestEnd::kShed:
      return "shed";
    case RequestEnd::kFailed:
      return "failed";
  }
  return "";
}

void count(const EndedRequest& request, ServiceCounts& counts) {
  switch (request.end) {
    case RequestEnd::kCompleted:
      ++counts.completed;
      break;
    case RequestEnd::kCancelled:
      ++counts.cancelled;
      break;
    case RequestEnd::kShed:
      ++counts.shed;
      counts.over_limit += request.over_limit ? 1 : 0;
      break;
    case RequestEnd::kFailed:
      ++counts.failed;
      break;
  }
  counts.prompt_tokens += request.prompt_tokens;
  counts.output_tokens += request.output_tokens;
}

std::int64_t ServiceStats::part_at(Instant now) const {
  return (now - start_).count_ns() / kPart.count_ns();
}

void ServiceStats::add(const EndedRequest& request, Instant now) {
  count(request, counts_);
  const std::int64_t number = part_at(now);
  if (parts_.empty() || parts_.back().number < number) {
    parts_.push_back({.number = number});
    while (parts_.front().number + kParts <= number) parts_.pop_front();
  }
  Part& part = parts_.back();
  if (request.prompt_tokens + request.output_tokens > 0) ++part.requests;
  part.prompt_tokens += request.prompt_tokens;
  part.output_tokens += request.output_tokens;
  if (request.ttft > Duration()) {
    ++counts_.timed;
    if (is_late(request, targets_)) ++counts_.late;
    ttft_.add(request.ttft);
    part.ttft.add(request.ttft);
    ttft_sum_ += request.ttft;
  }
  if (request.tpot > Duration()) {
    tpot_.add(request.tpot);
    part.tpot.add(request.tpot);
    tpot_sum_ += request.tpot;
  }
}

ServiceReport ServiceStats::report(Instant now) const {
  const std::int64_t first = std::max<std::int64_t>(part_at(now) - kParts + 1, 0);
  ServiceReport report;
  report.counts = counts_;
  report.window = now - (start_ + kPart * first);
  for (const Part& part : parts_) {
    if (part.number < first) continue;
    report.window_requests += part.requests;
    report.window_prompt_tokens += part.prompt_tokens;
    report.window_output_tokens += part.output_tokens;
    report.ttft += part.ttft;
    report.tpot += part.tpot;
  }
  return report;
}

}  // namespace orrery

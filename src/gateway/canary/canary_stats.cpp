#include "gateway/canary/canary_stats.hpp"

namespace orrery {

void CanaryStats::set(const std::optional<RoutedCanary>& canary) {
  if (!canary) {
    report_.reset();
  } else if (!report_ || report_->revision != canary->revision) {
    report_.emplace().revision = canary->revision;
  }
}

ArmReport& CanaryStats::arm(std::uint32_t revision) {
  return revision == report_->revision ? report_->canary : report_->others;
}

void CanaryStats::add(std::uint32_t revision, const EndedRequest& request) {
  const bool tells = request.end == RequestEnd::kCompleted || request.end == RequestEnd::kFailed;
  if (!report_ || !tells) return;
  ArmReport& of = arm(revision);
  ++of.requests;
  of.failed += request.end == RequestEnd::kFailed ? 1 : 0;
  if (request.ttft > Duration()) of.ttft.add(request.ttft);
  if (request.tpot > Duration()) of.tpot.add(request.tpot);
}

void CanaryStats::add_failure(std::uint32_t revision) {
  if (!report_) return;
  ArmReport& of = arm(revision);
  ++of.requests;
  ++of.failed;
}

void CanaryStats::add_score(std::uint32_t revision, double score) {
  if (!report_) return;
  ArmReport& of = arm(revision);
  of.scores += 1;
  of.score_sum += score;
}

}  // namespace orrery

// gateway/service_stats.hpp - what a gateway counts of one service: totals since its start, and a
// window that slides in parts.
//
// The gateway owns one for each service it has ever routed to. Not thread-safe; time is a value.
// Invariant: the window covers at least the newest 29 parts and at most 30. Cost: O(1) a request,
// O(parts) a report.
#pragma once

#include <cstdint>
#include <deque>

#include "base/time.hpp"
#include "serving/gateway_report.hpp"
#include "serving/latency_histogram.hpp"
#include "serving/routing/route_targets.hpp"

namespace orrery {

enum class RequestEnd : std::uint8_t { kCompleted, kCancelled, kShed, kFailed };

/// "completed", "cancelled", "shed", "failed".
[[nodiscard]] std::string_view name_of(RequestEnd end);

/// One request that has ended.
struct EndedRequest {
  RequestEnd end = RequestEnd::kCompleted;
  bool over_limit = false;  ///< shed, as it is beyond the limit of its tenant
  std::uint64_t prompt_tokens = 0;
  std::uint64_t output_tokens = 0;
  Duration ttft;  ///< zero: not known
  Duration tpot;  ///< zero: not known
};

/// Counts a request, with its tokens.
void count(const EndedRequest& request, ServiceCounts& counts);

class ServiceStats {
 public:
  explicit ServiceStats(Instant start) : start_(start) {}

  /// What requests are held to from now on.
  void set_targets(const RouteTargets& targets) { targets_ = targets; }
  void add(const EndedRequest& request, Instant now);

  [[nodiscard]] const ServiceCounts& counts() const { return counts_; }
  /// Since the start.
  [[nodiscard]] const LatencyHistogram& ttft() const { return ttft_; }
  [[nodiscard]] const LatencyHistogram& tpot() const { return tpot_; }
  [[nodiscard]] Duration ttft_sum() const { return ttft_sum_; }
  [[nodiscard]] Duration tpot_sum() const { return tpot_sum_; }
  /// The report, without the service's id and its tenants.
  [[nodiscard]] ServiceReport report(Instant now) const;

 private:
  struct Part {
    std::int64_t number = 0;  ///< parts since start_
    std::uint64_t requests = 0;
    std::uint64_t prompt_tokens = 0;
    std::uint64_t output_tokens = 0;
    LatencyHistogram ttft;
    LatencyHistogram tpot;
  };

  [[nodiscard]] std::int64_t part_at(Instant now) const;

  Instant start_;
  RouteTargets targets_;
  ServiceCounts counts_;
  LatencyHistogram ttft_;
  LatencyHistogram tpot_;
  Duration ttft_sum_;
  Duration tpot_sum_;
  std::deque<Part> parts_;  ///< by number; only those with requests
};

}  // namespace orrery

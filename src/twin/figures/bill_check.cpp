#include "twin/figures/bill_check.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

double quantile(std::span<const float> sorted, double part) {
  if (sorted.empty()) return 0;
  const auto at = static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1));
  return double{sorted[at]};
}

}  // namespace

double BilledTerm::error() const {
  if (expected == billed) return 0;
  return std::abs(billed - expected) / std::max(std::abs(expected), 1e-12);
}

double BilledAttempt::error() const {
  double most = 0;
  for (const BilledTerm& term : {seconds, dollars, electricity, egress, joules, co2_grams}) {
    most = std::max(most, term.error());
  }
  return most;
}

void BillCheck::note(Instant now, std::span<const Event> events, const State& state) {
  for (const Event& event : events) {
    if (const auto* started = std::get_if<JobStarted>(&event)) {
      begin(*started, state, now);
    } else if (const auto* resized = std::get_if<JobResized>(&event)) {
      change(resized->job);
    } else if (const auto* clock = std::get_if<ClockSet>(&event)) {
      change(clock->job);
    } else if (const auto* requeued = std::get_if<JobRequeued>(&event)) {
      leave(requeued->job, state);
    } else if (const auto* ended = std::get_if<JobEnded>(&event)) {
      end(*ended, state);
    }
  }
}

// The job may have been stopped by a later event of the same instant.
void BillCheck::begin(const JobStarted& event, const State& state, Instant now) {
  const Job& job = state.job(event.job);
  if (!holds_devices(job.phase) || job.attempt != event.attempt) {
    ++not_compared_;
    return;
  }
  const auto known = before_.find(event.job);
  const Situation situation = state.situation(now);
  const WaitingJob waiting{.id = event.job,
                           .request = state.running(event.job).request,
                           .submitted = job.submitted,
                           .done = job.done,
                           .attained = job.attained,
                           .data_at = known == before_.end() ? 0 : known->second.data_at};
  const PriceContext context{situation, state.policy(), situation.fleet};
  open_[event.job] = {.attempt = event.attempt,
                      .started = now,
                      .expected = expected_bill(context, waiting, event.gangs, event.terms)};
}

void BillCheck::change(JobId job) {
  const auto found = open_.find(job);
  if (found != open_.end()) found->second.as_started = false;
}

void BillCheck::leave(JobId id, const State& state) {
  not_compared_ += open_.erase(id);
  const Job& job = state.job(id);
  before_[id] = {job.usage, job.data_at};
}

void BillCheck::end(const JobEnded& event, const State& state) {
  const auto found = open_.find(event.job);
  if (found == open_.end()) return;
  const Open open = found->second;
  open_.erase(found);
  JobUsage earlier;
  if (const auto known = before_.find(event.job); known != before_.end()) {
    earlier = known->second.usage;
    before_.erase(known);
  }
  if (event.phase == JobPhase::kCancelled || !open.as_started) {
    ++not_compared_;
    return;
  }
  const Job& job = state.job(event.job);
  const ExpectedBill& expected = open.expected;
  const JobUsage& all = job.usage;
  const BilledAttempt billed{
      .job = event.job,
      .attempt = open.attempt,
      .seconds = {expected.seconds, (job.metered - open.started).count_seconds()},
      .dollars = {expected.dollars(), all.dollars - earlier.dollars},
      .electricity = {expected.electricity, all.electricity - earlier.electricity},
      .egress = {expected.egress, all.egress - earlier.egress},
      .joules = {expected.joules, all.joules - earlier.joules},
      .co2_grams = {expected.co2_grams, all.co2_grams - earlier.co2_grams}};
  errors_.push_back(static_cast<float>(billed.error()));
  if (each_) each_(billed);
}

BillFigures BillCheck::figures() const {
  std::vector<float> sorted = errors_;
  std::sort(sorted.begin(), sorted.end());
  const auto within = std::ranges::upper_bound(sorted, static_cast<float>(kTolerance));
  BillFigures figures{.compared = sorted.size(), .not_compared = not_compared_ + open_.size()};
  if (!sorted.empty()) {
    figures.within =
        static_cast<double>(within - sorted.begin()) / static_cast<double>(sorted.size());
  }
  figures.error_p50 = quantile(sorted, 0.5);
  figures.error_p95 = quantile(sorted, 0.95);
  return figures;
}

}  // namespace orrery

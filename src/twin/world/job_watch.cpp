#include "twin/world/job_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <variant>

namespace orrery {
namespace {

constexpr std::size_t kBehindOthers = kQueueCauses - 1;

std::uint32_t nodes_of(std::span<const PlacedGang> gangs) {
  std::vector<NodeId> nodes;
  for (const PlacedGang& gang : gangs) {
    for (const NodeDevices& at : gang.allocation.ranks) nodes.push_back(at.node);
  }
  std::sort(nodes.begin(), nodes.end());
  const auto end = std::unique(nodes.begin(), nodes.end());
  return static_cast<std::uint32_t>(end - nodes.begin());
}

std::string_view words_of(std::size_t cause) {
  if (cause == kBehindOthers) return "behind other jobs";
  switch (static_cast<RejectionKind>(cause)) {
    case RejectionKind::kBusy:
      return "too few free devices";
    case RejectionKind::kNever:
      return "no such hardware";
    case RejectionKind::kQuota:
      return "quota of the tenant";
    case RejectionKind::kPower:
      return "no power left";
    case RejectionKind::kMemory:
      return "too little memory";
    case RejectionKind::kStack:
      return "no software stack";
    case RejectionKind::kBudget:
      return "above the budget";
    case RejectionKind::kLater:
      return "delayed by the policy";
  }
  return "too few free devices";
}

/// Counts a stay in the queue up to now.
void close(WatchedJob& seen, std::size_t cause, Duration stay) {
  seen.queued += stay;
  seen.causes[cause] += stay;
}

}  // namespace

JobWatch::Entry& JobWatch::entry(JobId job) {
  if (entries_.size() <= job.value()) entries_.resize(job.value() + 1);
  return entries_[job.value()];
}

void JobWatch::look(const Core& core, std::span<const Event> events, Instant now) {
  bool passed = false;
  for (const Event& event : events) {
    passed = passed || std::holds_alternative<PassDone>(event);
    if (const auto* start = std::get_if<JobStarted>(&event)) {
      entry(start->job).seen.nodes = nodes_of(start->gangs);
    } else if (const auto* resize = std::get_if<JobResized>(&event)) {
      entry(resize->job).seen.nodes = nodes_of(resize->gangs);
    }
    std::visit(
        [&](const auto& what) {
          if constexpr (requires { JobId(what.job); }) look_at(what.job, core.state(), now);
        },
        event);
  }
  if (passed) note_refusals(core, now);
}

void JobWatch::look_at(JobId job, const State& state, Instant now) {
  if (!job.valid()) return;
  Entry& at = entry(job);
  const bool queues = state.has(job) && state.job(job).phase == JobPhase::kQueued;
  if (queues == (at.since != Instant::max())) return;
  if (queues) {
    at.since = now;
    at.cause = kBehindOthers;
    return;
  }
  close(at.seen, at.cause, now - at.since);
  at.since = Instant::max();
  const bool first = !state.has(job) || state.job(job).first_start >= now;
  if (first) at.seen.queued_to_start = at.seen.queued;
}

void JobWatch::note_refusals(const Core& core, Instant now) {
  for (const StillWaits& waits : core.still_waiting()) {
    Entry& at = entry(waits.job);
    const auto cause = static_cast<std::size_t>(waits.refusal.kind);
    if (at.since == Instant::max() || at.cause == cause) continue;
    close(at.seen, at.cause, now - at.since);
    at.since = now;
    at.cause = cause;
  }
}

WatchedJob JobWatch::of(JobId job, Instant now) const {
  if (job.value() >= entries_.size()) return {};
  const Entry& at = entries_[job.value()];
  WatchedJob seen = at.seen;
  if (at.since == Instant::max()) return seen;
  const bool started = seen.nodes > 0;
  close(seen, at.cause, now - at.since);
  if (!started) seen.queued_to_start = seen.queued;
  return seen;
}

std::string causes_text(const WatchedJob& job) {
  std::array<std::size_t, kQueueCauses> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return job.causes[a] > job.causes[b]; });
  std::string text;
  for (const std::size_t cause : order) {
    if (job.causes[cause] == Duration()) break;
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", words_of(cause), job.causes[cause].text());
  }
  return text;
}

}  // namespace orrery

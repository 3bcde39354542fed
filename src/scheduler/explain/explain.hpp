// scheduler/explain/explain.hpp - why one job waits, until when, and the smallest changes that
// start it now.
//
// Computed on request, from the situation that a pass would see; a pass itself keeps only a
// Refusal. Every change shown was applied to the situation and decided in the scheduler's next
// pass, with the whole queue, its reservations and preemption: the job starts there, and no job
// ahead takes its place.
//
// Pure in its inputs; one thread. Cost: tens of milliseconds with 12,500 nodes, 10,000 running
// and 50,000 waiting jobs; the searches are bounded by numbers of trials, not by time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/forecast/start_forecast.hpp"
#include "scheduler/scheduler.hpp"

namespace orrery {

/// How an explanation names jobs.
struct ExplainNames {
  std::function<std::string(JobId)> job;
};

enum class ChangeKind : std::uint8_t {
  kPatience,  ///< it starts on what is free instead of waiting for something better
  kPlan,      ///< it starts without a plan that is still being made
  kLevel,     ///< a wider topology level
  kRule,      ///< without segments, exclusive places or aligned rails
  kSize,      ///< fewer accelerators
  kType,      ///< another type of the fleet
  kJobMoves,
  kQuota,
  kPowerCap,
  kJobEnds,
};

/// A hypothesis under which the job starts now. Kinds are ordered from the smallest change to the
/// largest.
struct Change {
  ChangeKind kind = ChangeKind::kSize;
  std::string what;                   ///< "with 24 accelerators instead of 32"
  StartJob start;                     ///< the start that the scheduler decided under it
  std::optional<JobRequest> request;  ///< the request asked for instead
  std::optional<JobId> other;         ///< job that ends or moves
  std::vector<PlacedGang> moved;      ///< the gangs of that job after its move
  std::int64_t devices = 0;           ///< kQuota: how many more the tenant could take
  PowerDomainId domain;               ///< domain whose cap is raised (kPowerCap)
  std::optional<Watts> cap;           ///< new limit of that domain
  std::optional<double> longer;       ///< run time over that of the wish, less one
  std::optional<double> dearer;       ///< dollars over the ideal price of the wish
  std::optional<double> hungrier;     ///< joules over those of the wish, where energy is the goal
};

struct Explanation {
  JobId job;
  std::string name;
  std::string wish;                ///< "32 h100"
  std::optional<Refusal> refusal;  ///< none: it could start but for the queue
  std::string why;
  bool waits_for_plan = false;  ///< its plan is still being made
  std::vector<std::string> blocked_by;
  std::vector<JobId> blocking;  ///< running jobs: it fits when all of them have left
  std::uint32_t ahead = 0;      ///< waiting jobs before it in the policy's order
  std::optional<LikelyStart> when;
  std::string deadline;         ///< whether it can be met; empty: no deadline, or unknown length
  std::vector<Change> changes;  ///< by kind
  std::uint32_t tried = 0;      ///< changes that make room and were decided in a pass of the whole
                                ///< queue

  /// Makes it that of a job that the fleet, as built, can never run, for the reason `text`.
  void set_never(std::string text);
  /// Returns several lines; the last one ends with a newline.
  [[nodiscard]] std::string text() const;
};

/// Describes a refusal in a few words: "busy: 8 accelerators short (node)".
[[nodiscard]] std::string refusal_text(const Refusal& refusal);

/// Precondition: the job waits in the situation.
[[nodiscard]] Explanation explain(const Situation& situation, const Policy& policy, JobId job,
                                  const ExplainNames& names);

}  // namespace orrery

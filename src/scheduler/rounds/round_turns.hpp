// scheduler/rounds/round_turns.hpp - which jobs have a turn on which devices, where jobs take turns
// in rounds (PreemptionRule::kRounds).
//
// Called once a pass. A turn is a job and an option of its only role. Turns are taken in order:
// each job gets its first one for which there are devices. The order is that of Policy::order:
//
// kMaxMin      Gavel (throughput_shares.hpp; section 5 of the paper, and scheduler.py of
//              stanford-futuredata/gavel): the types one after the other, the fastest first, and on
//              each the largest X(m, o) / (t(m, o) + half a round) first, where t is for how long m
//              has had devices of the type since a period began. Equals go by what they lack of X.
//              A period begins at a round for which jobs have come or ended, at most every 1920 s.
//              X is made at each round, for those of its jobs that were there when the period
//              began; a job that has come since gets what is left over. The program is the same
//              while the same jobs are there with the same devices to take turns on, and is of no
//              more than kShareClasses classes: beyond them speeds count to 4, 2, then no binary
//              digits after the first, and jobs of more classes than that have equal shares.
//              Between rounds no program is solved: of the jobs that wait, the one that has had
//              least time (device-seconds over devices) goes first, then the one submitted first.
// kFinishTime  Themis (finish_time.hpp): the fifth of the jobs whose rho is largest (fairness knob
//              f = 0.8) is offered the devices of ended leases first. Their auction, which makes
//              the product of the bidders' gains greatest, is replaced by its greedy form for gangs
//              of one size: by log(rho without the lease / rho with it) a device. What they leave
//              goes to the others by rho. No job is charged a hidden payment, for none bids
//              falsely.
// kGoodput     Sia (goodput_assignment.hpp): what is assigned, then the largest gain a device.
//              Between rounds those that wait are assigned what is free.
// kDeadlineShares
//              ElasticFlow (deadline_shares.hpp): what promised deadlines need in this round, in
//              their order, then what is left, to the others by submission. A slot is a round. As a
//              round begins, deadlines that are ahead are promised, by submission. Time for one
//              restart is kept before each deadline, except in the last slot; a plan may change the
//              size of a job once more. A job of unknown length is promised nothing and counts as
//              one of Policy::unknown_run; a time limit ends a run at any size. Between rounds
//              those that wait share what is free, and no deadline counts.
// all others   key_of(), and a job that runs goes on by the option that it has.
//
// A round looks at no more than kRoundJobs waiting jobs, the first by key_of(), beside those that
// run. Pure but for the memory of shares. Cost: O(jobs x options x log), and the programs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/policy.hpp"
#include "scheduler/rounds/throughput_shares.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

/// Waiting jobs that a round looks at: the programs of 20,000 unlike ones would take minutes.
inline constexpr std::size_t kRoundJobs = 1000;

/// Classes of unlike jobs, waiting and running, in the program of kMaxMin: some 50 ms.
inline constexpr std::size_t kShareClasses = 500;

/// A job that takes turns: one gang of whole devices.
struct RoundJob {
  WaitingJob job;        ///< a running job is entered as if it waited from now on
  std::uint32_t at = 0;  ///< position among the running or the waiting jobs of the situation
  std::optional<std::uint32_t> option;  ///< option by which it runs; none: it waits
};

struct Turn {
  std::uint32_t job = 0;     ///< position among the jobs that take turns
  std::uint32_t option = 0;  ///< option of its role

  friend bool operator==(const Turn&, const Turn&) = default;
};

/// Whether a round begins, or devices that were freed within a round are assigned.
enum class RoundPhase : std::uint8_t { kBegins, kGoesOn };

struct RoundInputs {
  const Situation& situation;
  const Policy& policy;
  RoundPhase phase = RoundPhase::kBegins;
  std::span<const RoundJob> jobs;
  std::vector<std::uint32_t>
      devices;  ///< by type, the devices to take turns on; within a round: the free ones
};

[[nodiscard]] inline const std::vector<GangOption>& options_of(const RoundJob& job) {
  return job.job.request->roles.front().options;
}

/// All turns, in the order in which they are to be taken.
[[nodiscard]] std::vector<Turn> turns_of(const RoundInputs& in, ThroughputShares& shares);

/// Whether the turns of a policy depend on a SharePeriod.
[[nodiscard]] bool keeps_share_period(const Policy& policy);

/// Called as a round begins. kMaxMin: begins a period for the jobs of the situation, if they are
/// not the jobs for which the last one began and that one is old enough. kDeadlineShares: admits
/// jobs. Cost: the lists of jobs, or that of admit_by_deadline(). Preconditions:
/// keeps_share_period(); the situation has a history.
void renew_share_period(const Situation& situation, const Policy& policy, SharePeriod& period);

/// Keeps only the first kRoundJobs waiting jobs by key_of(), in the order of the situation.
/// O(jobs).
void keep_first(std::vector<RoundJob>& jobs, const Policy& policy, const Situation& situation);

/// Whether a job may take turns: services, shares of devices and jobs of several gangs do not.
[[nodiscard]] bool takes_turns(const JobRequest& job);

}  // namespace orrery

// scheduler/deadline_shares.hpp - how many devices jobs need at least to keep their deadlines,
// whose deadlines are promised, and who gets the devices that are left: the shares of ElasticFlow.
//
// D. Gu et al., "ElasticFlow: An Elastic Serverless Training Platform for Distributed Deep
// Learning", ASPLOS 2023, section 4, Algorithms 1 and 2, and ef_sim_allocation() and
// allocate_free_gpus() of ElasticFlow/scheduler/scheduler.py in pkusys/ElasticFlow. Time is in
// slots of length d. Jobs are planned in the order of their deadlines; job i has in slot t
//   x_i(t) = its largest size within min(level_i(t), G(t) - sum of x_k(t) over the jobs before it),
// where G is the number of devices. The minimum satisfactory share of a job is the least level with
//   sum over the slots before its deadline of T_i(x_i(t)) x d >= M_i,
// where T is its rate by its number of devices and M the work left. As in their code the level is
// one size smaller up to the latest slot from which that is enough. A job is admitted if it and all
// that were admitted before have such a share. Devices that are left in the first slot go first to
// jobs without any, then size by size to the job whose device-time, sum of x_i(t) x d, falls most
// (rises least) a device added; the rest of its plan is filled anew from the second slot on. Sizes
// that do no more work in the first slot than a smaller one, for they cost a restart, are passed.
//
// A job that is admitted stays so: with exact rates and lengths and without restarts each finds its
// share again in the next slot, if the job has every size up to its largest on one type. The
// reason: less work left lowers its levels in every slot and free devices raise none, so the sum of
// x over the first k jobs only falls. Where sizes are few, rounding to them may break it.
//
// Simplified: the types of a fleet are told apart, and a plan is on one type: the one that the job
// has where its deadline can be kept there, else that of least device-time. A restart counts in the
// first slot alone. The gain of a job is not worked out anew when another one gets more. A job that
// no longer keeps its deadline has its largest sizes until then, as in their code. Theirs refuses
// jobs that are not admitted; here they have what is left, for a job that was submitted is not
// refused by a policy, and ask again in each round.
//
// A job that asks costs a plan and, for each admitted job of a later deadline, one that is made if
// its own deadline is kept, and one that is taken back unless it is for the job before. One that is
// just like another that was refused since the last admission costs nothing. Jobs that ask for the
// first time do so until kAdmissionPlans are spent, those that were refused in earlier rounds until
// kAskAgainPlans are, so that a round makes no more than these and the plans of two more jobs; the
// other jobs ask in later rounds. Where a round may end so, the latter begin with another job than
// in the last one, by a golden section of their list further on.
//
// Pure. Cost: O(plans x sizes x steps), where steps are changes of the number of free devices: at
// most two for each change of size in a plan, and one a slot. Beside those of admission a round
// makes O(jobs x sizes) plans. Memory: O(jobs + changes of size in plans).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace orrery {

/// One size of a job on a type.
struct SizeRate {
  std::uint32_t option = 0;   ///< of the job's role
  std::uint32_t devices = 0;  ///< at least 1
  double rate = 0;            ///< part of the whole work done in a second

  friend bool operator==(const SizeRate&, const SizeRate&) = default;
};

/// The sizes of a job on one type, rising in devices and in rate; at least one.
struct SizeLadder {
  std::uint32_t type = 0;
  std::vector<SizeRate> sizes;

  friend bool operator==(const SizeLadder&, const SizeLadder&) = default;
};

struct DeadlineJob {
  std::vector<SizeLadder> ladders;   ///< by preference, a type each; at least one
  double left = 1;                   ///< part of the whole work
  std::optional<double> due;         ///< seconds from now; none: no deadline, or an unknown length
  std::optional<std::uint32_t> has;  ///< the option that it runs by; none: it waits
  double restart = 0;                ///< seconds until it works by another option
  double stays = 0;                  ///< seconds for which it keeps what it has, for admission
  bool asked = false;                ///< in an earlier round, in which it was not admitted
};

/// Devices that other jobs hold in the first slot, and for longer where it ends before `after`.
struct DeviceRelease {
  std::uint32_t type = 0;
  std::uint32_t devices = 0;
  double after = 0;  ///< seconds from now
};

struct DeadlineInputs {
  std::span<const DeadlineJob> jobs;       ///< the order in which equals are served
  std::span<const std::uint32_t> devices;  ///< by type, from now on
  std::span<const DeviceRelease> releases;
  double slot = 1;          ///< seconds, more than 0
  std::uint64_t round = 0;  ///< its number
};

/// Plans of a round after which no more jobs ask for the first time, each counted once a type of
/// its job; and after which no more ask again.
inline constexpr std::uint64_t kAdmissionPlans = 100'000;
inline constexpr std::uint64_t kAskAgainPlans = 5000;

struct DeadlineAdmission {
  std::vector<char> promised;  ///< by job, whether its deadline is
  std::uint64_t plans = 0;     ///< made or taken back for those that asked
};

/// Promised are those that were `admitted`, all, then those of the others that ask for the first
/// time, then the rest, in the order of the jobs.
/// Precondition: admitted jobs are due.
[[nodiscard]] DeadlineAdmission admit_by_deadline(const DeadlineInputs& in,
                                                  std::span<const char> admitted);

/// By job, the option that it has in the first slot; none: none.
using DeadlineShares = std::vector<std::optional<std::uint32_t>>;
[[nodiscard]] DeadlineShares share_by_deadline(const DeadlineInputs& in,
                                               std::span<const char> admitted);

}  // namespace orrery

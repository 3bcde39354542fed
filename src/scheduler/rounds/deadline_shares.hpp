// scheduler/rounds/deadline_shares.hpp - the least devices that jobs need to keep their deadlines,
// the jobs whose deadlines are promised, and the jobs that get the other devices: the shares of
// ElasticFlow.
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
// Simplified: the types of a fleet are distinguished, and a plan is on one type: the one that the
// job has if its deadline can be kept there, else that of least device-time. A restart counts in
// the first slot alone. The gain of a job is not computed anew when another one gets more. A job
// that no longer keeps its deadline has its largest sizes until then, as in their code. Their code
// refuses jobs that are not admitted; here these share the devices that are left, because a policy
// does not refuse a submitted job, and ask again in each round.
//
// A job that asks for admission costs a plan and, for each admitted job of a later deadline, one
// plan that is made if its own deadline is kept, and one that is taken back unless that was done
// for the job before. A job equal to one that was refused since the last admission costs nothing.
// Jobs that ask for the first time do so until kAdmissionPlans are spent, those that were refused
// in earlier rounds until kAskAgainPlans are, so that a round makes no more than these and the
// plans of two more jobs; the other jobs ask in later rounds. Where a round may end before all have
// asked, the latter begin at another job in each round, a golden section of their list further on.
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
  double left = 1;                   ///< part of the whole work that is left
  std::optional<double> due;         ///< seconds from now; none: no deadline, or an unknown length
  std::optional<std::uint32_t> has;  ///< the option that it runs with; none: it waits
  double restart = 0;                ///< seconds until it works with another option
  double stays = 0;    ///< seconds for which admission assumes that it keeps its devices
  bool asked = false;  ///< whether it asked in an earlier round and was refused
};

/// Devices that other jobs hold in the first slot, and until `after` if that is later.
struct DeviceRelease {
  std::uint32_t type = 0;
  std::uint32_t devices = 0;
  double after = 0;  ///< seconds from now until the release
};

struct DeadlineInputs {
  std::span<const DeadlineJob> jobs;       ///< ties are resolved in this order
  std::span<const std::uint32_t> devices;  ///< by type, from now on
  std::span<const DeviceRelease> releases;
  double slot = 1;          ///< seconds, more than 0
  std::uint64_t round = 0;  ///< number of the round
};

/// Plans of a round, each counted once for each type of its job, after which no more jobs ask for
/// the first time, and after which no more jobs ask again.
inline constexpr std::uint64_t kAdmissionPlans = 100'000;
inline constexpr std::uint64_t kAskAgainPlans = 5000;

struct DeadlineAdmission {
  std::vector<char> promised;  ///< by job, whether its deadline is promised
  std::uint64_t plans = 0;     ///< plans made or taken back for jobs that asked
};

/// Promises the deadlines of all `admitted` jobs, then of those that ask for the first time, then
/// of the others, in the order of the jobs, where they can be kept. Precondition: admitted jobs
/// have `due`.
[[nodiscard]] DeadlineAdmission admit_by_deadline(const DeadlineInputs& in,
                                                  std::span<const char> admitted);

/// By job, the option that it has in the first slot; none: no devices.
using DeadlineShares = std::vector<std::optional<std::uint32_t>>;
[[nodiscard]] DeadlineShares share_by_deadline(const DeadlineInputs& in,
                                               std::span<const char> admitted);

}  // namespace orrery

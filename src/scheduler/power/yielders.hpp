// scheduler/power/yielders.hpp - the running jobs that may have to be preempted, indexed for the
// waiting jobs.
//
// Belongs to a scheduler's memory. What is needed of every running job is read from the job once,
// when it starts or changes, and is stored here by the job's position among the situation's running
// jobs. The caller checks what depends on usage or on the pass itself (guarantees, jobs that were
// preempted already).
// Invariant: after look() every answer is that of the situation, whatever was kept; a bound is
// never less than the service of its job.
// Cost: a look compares a few numbers of each job in a block that changed (in all blocks, if
// changes are not counted), a query compares one of each running job; O(1) for the jobs that are
// visited.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "scheduler/tenants/queue_order.hpp"

namespace orrery {

class Yielders {
 public:
  static constexpr std::int32_t kNobody = std::numeric_limits<std::int32_t>::max();

  /// The situation and the policy must remain valid until the last query.
  void look(const Situation& situation, const Policy& policy);
  void forget();

  [[nodiscard]] std::size_t tenants() const { return ranks_.size(); }
  /// The lowest rank_of the preemptible jobs of a tenant; kNobody if it has none.
  [[nodiscard]] std::int32_t lowest_rank(TenantId tenant) const {
    const auto& ranks = ranks_[tenant.value()];
    return ranks.empty() ? kNobody : ranks.begin()->first;
  }

  /// Calls visit(position) for the preemptible jobs of the tenants for which `of` is not 0.
  template <class Visit>
  void each_preemptible(std::span<const char> of, const Visit& visit) const {
    for (std::uint32_t i = 0; i < seats_.size(); ++i) {
      if (seats_[i].preemptible && of[seats_[i].tenant.value()] != 0) visit(i);
    }
  }

  /// Calls visit(position) for the jobs of one gang that could go on with fewer devices.
  template <class Visit>
  void each_elastic(const Visit& visit) const {
    for (std::uint32_t i = 0; elastic_ > 0 && i < seats_.size(); ++i) {
      if (seats_[i].elastic && has_surplus(i)) visit(i);
    }
  }

  /// Calls visit(position) for the preemptible jobs of a tenant that can go on from a checkpoint.
  template <class Visit>
  void each_that_resumes(TenantId of, const Visit& visit) const {
    for (std::uint32_t i = 0; i < seats_.size(); ++i) {
      const Seat& seat = seats_[i];
      if (seat.tenant == of && seat.preemptible && seat.checkpoint != Duration::max()) visit(i);
    }
  }

  /// A job that can go on from its checkpoint and has run for Policy::min_run.
  struct Settled {
    std::uint32_t at = 0;       ///< position among the running jobs
    std::uint32_t devices = 0;  ///< devices that it holds
    double service = 0;         ///< aged_service; 0: not settled
  };
  /// Calls visit(Settled) for the jobs with at least that much service, by ascending position;
  /// visit returns the least service for the remaining ones.
  template <class Visit>
  void each_settled(double least, const Visit& visit) {
    for (std::uint32_t i = 0; i < bounds_.size(); ++i) {
      if (bounds_[i] < least || bounds_[i] <= 0) continue;
      const Settled& job = settled(i);
      if (job.service > 0 && job.service >= least) least = visit(job);
    }
  }
  /// Devices of the jobs with at least that much service, including idle devices beside ranks; may
  /// be somewhat too large. O(1).
  [[nodiscard]] std::uint64_t devices_with(double least) const;
  /// The data of a job that each_settled visited.
  [[nodiscard]] const Settled& settled(std::uint32_t at);

 private:
  /// The inputs of an answer at the time it was computed, and the answer.
  struct Seat {
    JobId id;
    TenantId tenant;
    const JobRequest* request = nullptr;
    Instant started;
    Instant since;
    Instant expected_end;
    Duration checkpoint;
    double done = 0;
    double attained = 0;
    Instant submitted;
    Instant until;  ///< end of validity of the bound
    ServiceBasis basis;
    std::uint32_t devices = 0;  ///< devices that it holds
    std::int32_t rank = 0;
    bool stopping = false;
    bool preemptible = false;  ///< and not stopping
    bool elastic = false;      ///< its role is elastic and the job is not stopping

    [[nodiscard]] bool is_of(const RunningJob& job) const;
  };

  /// What is known of a block of seats.
  struct Block {
    std::uint64_t changes = 0;  ///< Situation::running_changes
    Instant until;              ///< earliest Seat::until of the block
    bool known = false;
  };

  void look_at(std::uint32_t at);
  void count(const Seat& seat, std::int32_t sign);
  [[nodiscard]] Seat seat_of(const RunningJob& job) const;
  [[nodiscard]] double bound_of(const RunningJob& job, const Seat& seat) const;
  [[nodiscard]] bool has_surplus(std::uint32_t at) const;

  const Situation* situation_ = nullptr;
  const Policy* policy_ = nullptr;
  double ageing_ = 0;
  double step_ = 0;
  double stretch_ = 0;
  std::uint64_t plans_ = 0;
  std::size_t elastic_ = 0;          ///< number of elastic seats
  std::vector<Seat> seats_;          ///< by position
  std::vector<Block> blocks_;        ///< by block of positions
  std::vector<double> bounds_;       ///< by position; 0: the job is never overtaken
  std::vector<std::uint32_t> held_;  ///< by position: devices, including idle ones beside ranks
  /// Sums of held_ over the jobs whose bounds are in the same quarter of an octave.
  std::array<std::uint64_t, 256> held_by_bound_{};
  std::vector<Settled> settled_;  ///< by position, since the last look
  std::vector<char> is_known_;    ///< by position: whether settled_ is valid
  std::vector<std::map<std::int32_t, std::uint32_t>>
      ranks_;  ///< by tenant: the number of preemptible jobs by rank
};

}  // namespace orrery

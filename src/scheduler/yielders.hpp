// scheduler/yielders.hpp - the running jobs that may have to yield, as those who wait ask for them.
//
// Belongs to a scheduler's memory. What is asked of every running job is read from the job once,
// when it starts or changes, and stands here by the job's position among the situation's running
// jobs. What usage or the pass itself changes (guarantees, who has yielded already) is the caller's
// to check.
// Invariant: after look() every answer is that of the situation, whatever was kept; a bound is no
// less than the service of its job.
// Cost: a look compares a few numbers of each job in a block that changed (all, where changes are
// not counted), an ask one of each running job; O(1) for those named.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "scheduler/queue_order.hpp"

namespace orrery {

class Yielders {
 public:
  static constexpr std::int32_t kNobody = std::numeric_limits<std::int32_t>::max();

  /// The situation and the policy must stay until the last ask.
  void look(const Situation& situation, const Policy& policy);
  void forget();

  [[nodiscard]] std::size_t tenants() const { return ranks_.size(); }
  /// The lowest rank_of the preemptible jobs of a tenant; kNobody: it has none.
  [[nodiscard]] std::int32_t lowest_rank(TenantId tenant) const {
    const auto& ranks = ranks_[tenant.value()];
    return ranks.empty() ? kNobody : ranks.begin()->first;
  }

  /// Calls visit(position) for the preemptible jobs of those tenants that `of` is not 0 for.
  template <class Visit>
  void each_preemptible(std::span<const char> of, const Visit& visit) const {
    for (std::uint32_t i = 0; i < seats_.size(); ++i) {
      if (seats_[i].preemptible && of[seats_[i].tenant.value()] != 0) visit(i);
    }
  }

  /// Calls visit(position) for the jobs of one gang that could go on with less.
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
    std::uint32_t at = 0;       ///< among the running
    std::uint32_t devices = 0;  ///< that it holds
    double service = 0;         ///< aged_service; 0: it is not settled
  };
  /// Calls visit(Settled) for those with at least so much service, ascending by position; visit
  /// returns the least from there on.
  template <class Visit>
  void each_settled(double least, const Visit& visit) {
    for (std::uint32_t i = 0; i < bounds_.size(); ++i) {
      if (bounds_[i] < least || bounds_[i] <= 0) continue;
      const Settled& job = settled(i);
      if (job.service > 0 && job.service >= least) least = visit(job);
    }
  }
  /// Devices of the jobs with at least so much service, those beside ranks too, or somewhat more.
  /// O(1).
  [[nodiscard]] std::uint64_t devices_with(double least) const;
  /// Of a job that each_settled named.
  [[nodiscard]] const Settled& settled(std::uint32_t at);

 private:
  /// What an answer rests on, as it was when it was found, and the answer.
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
    Instant until;  ///< of the bound
    ServiceBasis basis;
    std::uint32_t devices = 0;  ///< that it holds
    std::int32_t rank = 0;
    bool stopping = false;
    bool preemptible = false;  ///< and not stopping
    bool elastic = false;      ///< its role is, and it is not stopping

    [[nodiscard]] bool is_of(const RunningJob& job) const;
  };

  /// What is known of a block of seats.
  struct Block {
    std::uint64_t changes = 0;  ///< Situation::running_changes
    Instant until;              ///< of the first bound that ends
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
  std::size_t elastic_ = 0;          ///< seats that are
  std::vector<Seat> seats_;          ///< by position
  std::vector<Block> blocks_;        ///< by block of positions
  std::vector<double> bounds_;       ///< by position; 0: it is not overtaken
  std::vector<std::uint32_t> held_;  ///< likewise, devices with those beside ranks
  /// The same summed over the jobs whose bounds are in a quarter of an octave.
  std::array<std::uint64_t, 256> held_by_bound_{};
  std::vector<Settled> settled_;                              ///< likewise, since the last look
  std::vector<char> is_known_;                                ///< likewise: whether it is
  std::vector<std::map<std::int32_t, std::uint32_t>> ranks_;  ///< by tenant, how many preemptible
};

}  // namespace orrery

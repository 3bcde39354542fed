// control/state/running_list.hpp - the jobs that hold devices, with change counters.
//
// Belongs to a State. Situations show the jobs and the counters, so passes can cache what they know
// of a job without a look at every job.
// Invariant: changes() counts up for every block in which a job came, left, moved or was edited; a
// counter never goes back. Cost: O(1) each.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "scheduler/situation.hpp"

namespace orrery {

class RunningList {
 public:
  [[nodiscard]] std::span<const RunningJob> jobs() const { return jobs_; }
  [[nodiscard]] std::span<const std::uint64_t> changes() const { return changes_; }
  [[nodiscard]] std::size_t size() const { return jobs_.size(); }
  [[nodiscard]] auto begin() const { return jobs_.begin(); }
  [[nodiscard]] auto end() const { return jobs_.end(); }
  [[nodiscard]] const RunningJob& operator[](std::size_t at) const { return jobs_[at]; }

  /// Valid until the next change of the list; counts as a change even if nothing is edited.
  [[nodiscard]] RunningJob& edit(std::size_t at) {
    count(at);
    return jobs_[at];
  }
  RunningJob& add() {
    jobs_.emplace_back();
    count(jobs_.size() - 1);
    return jobs_.back();
  }
  /// Removes a job; the last job takes its position.
  void remove(std::size_t at) {
    count(at);
    count(jobs_.size() - 1);
    if (at + 1 != jobs_.size()) jobs_[at] = std::move(jobs_.back());
    jobs_.pop_back();
  }

 private:
  friend class StateCodec;

  void count(std::size_t at) {
    const std::size_t block = at / kRunningBlock;
    if (block >= changes_.size()) changes_.resize(block + 1);
    ++changes_[block];
  }

  std::vector<RunningJob> jobs_;
  std::vector<std::uint64_t> changes_;  ///< by block
};

}  // namespace orrery

// control/state/job_table.hpp - the jobs of a state by id: all that were ever submitted, less those
// that were archived.
//
// Belongs to a State. Ids grow and are never given out twice; a skipped id
// (ControlSetup::lost_jobs) counts as archived. A job keeps its address until it is archived, and
// leaves 8 bytes then. Iterates in the order of ids. Cost: O(1), an iteration O(ids).
#pragma once

#include <cstddef>
#include <deque>
#include <memory>

#include "control/state/job.hpp"

namespace orrery {

class JobTable {
 public:
  struct Slot {
    std::unique_ptr<Job> job;  ///< none: archived
  };

  /// The number of ids that were given out.
  [[nodiscard]] std::size_t size() const { return slots_.size(); }
  [[nodiscard]] bool has(JobId id) const {
    return id.valid() && id.value() < slots_.size() && slots_[id.value()].job != nullptr;
  }
  /// Precondition: has(id).
  [[nodiscard]] const Job& operator[](JobId id) const { return *slots_[id.value()].job; }
  [[nodiscard]] Job& operator[](JobId id) { return *slots_[id.value()].job; }

  /// Precondition: neither `id` nor any later id was given out.
  Job& emplace(JobId id) {
    slots_.resize(id.value());
    return *slots_.emplace_back(Slot{std::make_unique<Job>()}).job;
  }
  void remove(JobId id) { slots_[id.value()].job.reset(); }

  /// Iterates over the jobs that are not archived.
  template <class SlotIterator, class Shown>
  class WalkOf {
   public:
    WalkOf(const SlotIterator& at, const SlotIterator& end) : at_(at), end_(end) { skip(); }
    Shown& operator*() const { return *at_->job; }
    WalkOf& operator++() {
      ++at_;
      skip();
      return *this;
    }
    friend bool operator==(const WalkOf& a, const WalkOf& b) { return a.at_ == b.at_; }

   private:
    void skip() {
      while (at_ != end_ && at_->job == nullptr) ++at_;
    }
    SlotIterator at_;
    SlotIterator end_;
  };
  using Walk = WalkOf<std::deque<Slot>::iterator, Job>;
  using ConstWalk = WalkOf<std::deque<Slot>::const_iterator, const Job>;
  [[nodiscard]] auto begin() { return Walk(slots_.begin(), slots_.end()); }
  [[nodiscard]] auto end() { return Walk(slots_.end(), slots_.end()); }
  [[nodiscard]] auto begin() const { return ConstWalk(slots_.begin(), slots_.end()); }
  [[nodiscard]] auto end() const { return ConstWalk(slots_.end(), slots_.end()); }

 private:
  friend class StateCodec;
  std::deque<Slot> slots_;
};

}  // namespace orrery

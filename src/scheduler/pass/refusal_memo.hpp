// scheduler/pass/refusal_memo.hpp - refusals of waiting jobs that still hold, by equivalence
// class and by placement class.
//
// Belongs to a scheduler's memory. Jobs of an equivalence class are refused alike; jobs of a
// placement class find the same places, whatever their length and tenant. A refusal holds in the
// pass that made it, and until something that it may depend on improves. Invariant: forgetting it
// changes how long a pass takes, never the result. O(1).
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/situation.hpp"

namespace orrery {

class RefusalMemo {
 public:
  /// Called at the beginning of a pass.
  void begin(const Situation& situation) {
    ++pass_;
    now_ = situation.changes;
  }
  void forget() {
    classes_.clear();
    placement_classes_.clear();
  }

  /// The refusal of an equivalence class; nullptr: none is known that still holds.
  [[nodiscard]] const Refusal* of_class(ClassId id) const {
    const Known* known = find(classes_, id);
    return known != nullptr && known->changes.links == now_.links ? &known->refusal : nullptr;
  }
  /// The refusal of a placement class. It holds whatever the links are, and says nothing about
  /// quotas.
  [[nodiscard]] const Refusal* of_placement_class(ClassId id) const {
    const Known* known = find(placement_classes_, id);
    return known != nullptr ? &known->refusal : nullptr;
  }

  void remember_class(ClassId id, const Refusal& refusal) { remember(classes_, id, refusal); }
  void remember_placement_class(ClassId id, const Refusal& refusal) {
    remember(placement_classes_, id, refusal);
  }

 private:
  struct Known {
    Refusal refusal;
    Changes changes;         ///< the situation's counters at the refusal
    std::uint32_t pass = 0;  ///< number of the pass that refused; 0: none
  };

  [[nodiscard]] const Known* find(const std::vector<Known>& list, ClassId id) const {
    if (!id.valid() || id.value() >= list.size()) return nullptr;
    const Known& known = list[id.value()];
    if (known.pass == 0) return nullptr;
    const bool holds = known.pass == pass_ ||
                       (known.changes.freed == now_.freed && known.changes.plans == now_.plans);
    return holds ? &known : nullptr;
  }
  void remember(std::vector<Known>& list, ClassId id, const Refusal& refusal) const {
    if (id.value() >= list.size()) list.resize(id.value() + 1);
    list[id.value()] = {refusal, now_, pass_};
  }

  std::vector<Known> classes_;            ///< by ClassId
  std::vector<Known> placement_classes_;  ///< by QueuedJob::placement_class
  Changes now_;                           ///< the situation's counters in this pass
  std::uint32_t pass_ = 0;
};

}  // namespace orrery

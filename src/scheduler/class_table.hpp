// scheduler/class_table.hpp - which jobs ask for the same thing.
//
// Two requests are of a class when they agree in all that placement and price rest on: options,
// spread, work and its length, data, limits, what an interruption costs. Names, tenants, priorities
// and deadlines may differ. Invariant: ids are given out in the order in which classes were first
// seen, without gaps; a class stays what it is.
#pragma once

#include <map>
#include <string>

#include "scheduler/request.hpp"

namespace orrery {

class ClassTable {
 public:
  /// A new id where no request like it was seen. O(options + log classes).
  ClassId of(const JobRequest& request);

  /// The same, but only what decides whether there is room: requests that are placed alike, however
  /// long they run and whatever they may cost. A table holds ids of one sort.
  ClassId of_room(const JobRequest& request);

  /// A request that has its class already, given out by another table.
  void take_up(const JobRequest& request);

  /// Ids below it may be in use.
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  ClassId id_of(std::string key);

  std::map<std::string, ClassId> ids_;  ///< by the bytes of what counts
  std::size_t size_ = 0;
};

}  // namespace orrery

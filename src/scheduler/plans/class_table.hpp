// scheduler/plans/class_table.hpp - groups jobs with equal requests into classes.
//
// Two requests are of one class when they agree in all that placement and price depend on: options,
// spread, work and its length, data, limits, the cost of an interruption. Names, tenants,
// priorities and deadlines may differ. Invariant: ids are given out without gaps in the order in
// which classes were first seen; the id of a class does not change.
#pragma once

#include <map>
#include <string>

#include "scheduler/request/request.hpp"

namespace orrery {

class ClassTable {
 public:
  /// Returns the id of the request's class, a new one if no equal request was seen. O(options + log
  /// classes).
  ClassId of(const JobRequest& request);

  /// Returns the id of the request's placement class: requests of one are placed alike, whatever
  /// their run times and costs. One table holds ids of one sort.
  ClassId of_placement(const JobRequest& request);

  /// Adds a request whose class was given out by another table.
  void take_up(const JobRequest& request);

  /// All ids in use are below it.
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  ClassId id_of(std::string key);

  std::map<std::string, ClassId> ids_;  ///< by the bytes of the fields that count
  std::size_t size_ = 0;
};

}  // namespace orrery

// executor/live/config_drift.hpp - where the configuration files differ from what the cluster runs
// with: nodes of the fleet's file, which are logged, and lines of any file.
//
// Owned by the controller, for an operator to see; the daemon, which reads the files, reports what
// it finds. One thread. Cost: O(nodes log nodes) a comparison.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "base/log.hpp"
#include "fleet/topology.hpp"

namespace orrery {

class ConfigDrift {
 public:
  ConfigDrift(const Env& env, const Log& log) : env_(env), log_(log) {}

  /// The most changed lines that are kept.
  static constexpr std::size_t kLinesMax = 20;

  /// Nodes that are only in the fleet's file (`unknown`), and those only in the log (`missing`).
  struct Nodes {
    std::vector<std::string> unknown;
    std::vector<std::string> missing;
  };
  /// Compares the nodes of the fleet's file with those of the fleet in use; logs a difference.
  void compare(const Topology& file, const Topology& in_use);
  /// The fleet has changed: the comparison no longer holds.
  void forget_nodes() { nodes_ = {}; }
  [[nodiscard]] const Nodes& nodes() const { return nodes_; }

  /// Notes a difference from what was last applied, for example "tenants.yaml:4: "weight: 1" is now
  /// "weight: 3"". A text is kept once, and those after the first kLinesMax are not kept.
  void note_line(std::string line);
  /// The lines since this start.
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

 private:
  Env env_;
  Log log_;
  Nodes nodes_;
  std::vector<std::string> lines_;
};

}  // namespace orrery

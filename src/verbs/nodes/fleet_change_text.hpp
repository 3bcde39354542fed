// verbs/nodes/fleet_change_text.hpp - what a new fleet changes in a running cluster, for people.
//
// Pure functions over the messages of the API; texts are escaped.
#pragma once

#include <string>

#include "base/error.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {

using NodeNames = google::protobuf::RepeatedPtrField<std::string>;

/// Returns "node-2, node-3 and 180 more": the first 20.
[[nodiscard]] std::string list_text(const NodeNames& names);

/// Returns what the file changes: nodes added, retired and busy, then lines of the file.
[[nodiscard]] std::string fleet_change_text(const v1::FleetChange& change);

/// Returns the same for a dry run, with what would happen.
[[nodiscard]] std::string fleet_dry_run_text(const v1::FleetChange& change);

/// Returns that the fleet is changed, or that it was as the file says.
[[nodiscard]] std::string applied_fleet_text(const v1::FleetChange& change);

/// The refusal where busy nodes are retired.
[[nodiscard]] Error busy_fleet_error(const v1::FleetChange& change);

/// Returns "waiting until node-3 is empty: job 7 on it. ...".
[[nodiscard]] std::string emptying_text(const v1::Node& node);

/// Where agents of added nodes find their cluster.
struct FleetPlace {
  std::string controllers;  ///< host:port of each, with commas between
  std::string directory;    ///< of the cluster
};
/// Returns the commands by which the agents of added nodes join; "": none was added.
[[nodiscard]] std::string join_text(const NodeNames& added, const FleetPlace& place);

}  // namespace orrery

// verbs/nodes/fleet_apply.hpp - a running cluster takes over a changed fleet file: nodes that are
// retired are emptied, and where it is a cluster of `orrery up` its agents follow.
//
// Functions of one call of a verb; one thread, which waits.
#pragma once

#include <cstdint>
#include <string>

#include "base/env.hpp"
#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_answer.hpp"

namespace orrery {

/// What is done with nodes that are retired and that jobs hold.
enum class BusyNodes : std::uint8_t {
  kRefuse,
  kDrain,  ///< they start no new work, and their jobs are waited for
  kEvict,  ///< their jobs restart elsewhere
};

/// A fleet as it is sent to the controller.
struct FleetText {
  std::string yaml;
  std::string file;  ///< the name that errors of the controller have
};

/// Returns the text of a fleet file ("-": standard input), with the facts of a directory, where one
/// is given, in the place of the documents that follow the fleet. Lines end with a line feed alone.
/// Errors: those of the files, which are named; a model among the facts; more than a request may
/// hold.
[[nodiscard]] Result<FleetText> read_fleet_to_apply(const std::string& file,
                                                    const std::string& facts_directory);

/// Returns the part of a text that comes before its second document. Errors: those of the text.
[[nodiscard]] Result<std::string> first_document(const std::string& text);

/// Asks what the fleet would change, and changes nothing. Errors: those of the controller.
[[nodiscard]] Result<v1::FleetChange> dry_run_fleet(LiveSession& session, const FleetText& fleet);

/// The end of a change.
struct AppliedFleet {
  v1::FleetChange change;
  bool refused = false;  ///< nodes are busy: busy_fleet_error()
};

/// What apply_fleet() needs beside the controller.
struct FleetApplication {
  const FleetText& fleet;
  const v1::FleetChange& change;  ///< of dry_run_fleet()
  BusyNodes busy = BusyNodes::kRefuse;
};

/// Changes the fleet once no job holds a retired node, and says every 10 s what it waits for.
/// Errors: those of the controller, such as another change of the fleet since the dry run.
[[nodiscard]] Result<AppliedFleet> apply_fleet(LiveSession& session,
                                               const FleetApplication& application,
                                               const LiveProgress& said);

/// Starts and ends agents where the cluster is one of `orrery up`, whose controller has written the
/// new fleet.yaml; else says how agents join. Errors: those of the files, of agents that do not
/// start.
[[nodiscard]] Result<std::string> follow_fleet(const LiveCall& call, const v1::FleetChange& change);

}  // namespace orrery

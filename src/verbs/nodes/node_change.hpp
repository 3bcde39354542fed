// verbs/nodes/node_change.hpp - nodes that are drained or come back, each by itself.
//
// Values of one call of a verb; one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_answer.hpp"

namespace orrery {

/// Returns a request to change a node, with a request id of its own.
[[nodiscard]] v1::NodeRequest node_request(LiveSession& session, const std::string& name);

/// What became of several nodes.
struct NodeChanges {
  std::vector<v1::Node> changed;  ///< in the order in which they were named
  std::optional<Error> failed;    ///< the first refusal
  std::size_t asked = 0;          ///< the number of names, each once

  /// Returns what programs get: a node where one was asked for, else a list. Precondition: one node
  /// was changed where one was asked for.
  [[nodiscard]] std::shared_ptr<const google::protobuf::Message> message() const;
  /// Error, of the kind of the first refusal: not all were changed.
  [[nodiscard]] Status status() const;
};

/// Changes one node by its name.
using NodeChange = std::function<Result<v1::NodeResponse>(const std::string& name)>;

/// Changes each node once and says what became of it; a refusal does not keep the others from it.
/// Error: the only node is refused.
[[nodiscard]] Result<NodeChanges> change_nodes(const std::vector<std::string>& names,
                                               const NodeChange& change, const LiveProgress& said);

/// How nodes are drained, as typed.
struct DrainOptions {
  std::string why;
  std::string from;  ///< start of a maintenance window; empty: there is none
  std::string to;
  bool at_once = false;
};

/// Returns the request for any node, without name and request id. Errors (kInput): an instant that
/// is none.
[[nodiscard]] Result<v1::DrainNodeRequest> drain_request(const DrainOptions& options);

/// Returns the change that drains a node. It keeps `session`.
[[nodiscard]] NodeChange drain_by(LiveSession& session, v1::DrainNodeRequest request);
/// Returns the change that brings a node back into service. It keeps `session`.
[[nodiscard]] NodeChange resume_by(LiveSession& session);

/// Returns "node-3 is draining, running 2 jobs".
[[nodiscard]] std::string changed_text(const v1::Node& node);

}  // namespace orrery

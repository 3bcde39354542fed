// verbs/watch/cluster_view.hpp - a running cluster at one moment: what `orrery top` shows.
//
// Value of one call of a verb; at most 100 nodes, and 100 jobs of each phase.
#pragma once

#include <string>

#include "base/format/field_writer.hpp"
#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_session.hpp"
#include "verbs/cluster/live_text.hpp"

namespace orrery {

struct ClusterView {
  v1::Cluster cluster;
  v1::ListJobsResponse jobs;  ///< those that hold accelerators, then those that wait
  v1::ListNodesResponse nodes;
};

/// Errors: those of the controller.
[[nodiscard]] Result<ClusterView> look_at_cluster(LiveSession& session);

/// Returns the cluster's figures, its jobs and its nodes, escaped.
[[nodiscard]] std::string cluster_view_text(const LiveText& text, const ClusterView& view);
[[nodiscard]] Json cluster_view_json(const ClusterView& view);

}  // namespace orrery

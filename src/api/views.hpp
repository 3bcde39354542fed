// api/views.hpp - control's state as the messages of the API (proto/orrery/v1/orrery.proto).
//
// Pure reads, on the controller's loop. Cost: O(what is shown). A view of one job is made for
// callers that may see the job; views that hold more than one tenant's show what their Visibility
// lets through.
#pragma once

#include "api/access/visibility.hpp"
#include "executor/controller.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {

/// kListed: a row without the reason why a queued job waits, which explain_waits() adds to a whole
/// list. kAll: also with the text of the spec.
enum class JobDetail : std::uint8_t { kListed, kRow, kAll };
[[nodiscard]] v1::Job job_view(const Controller& controller, JobId id, JobDetail detail);
/// The view of a job that has ended, with kAll, for the archive.
[[nodiscard]] v1::Job ended_job_view(const EndedJob& job);
/// Adds to the queued jobs of a list why they wait. Precondition: its ids descend.
/// O(jobs that wait, each a comparison with the list).
void explain_waits(const Controller& controller, v1::ListJobsResponse& list);
[[nodiscard]] v1::Node node_view(const Controller& controller, NodeId id, const Visibility& sees);
[[nodiscard]] v1::PowerDomain power_view(const Controller& controller, PowerDomainId id);
/// For a caller with a tenant it counts only the jobs of the state that the caller sees; then
/// O(jobs).
[[nodiscard]] v1::Cluster cluster_view(const Controller& controller, const Visibility& sees);
[[nodiscard]] v1::ListTenantsResponse tenants_view(const Controller& controller,
                                                   const Visibility& sees);
/// Returns "node-1 (drained: new disk), node-4 (lost: 5 heartbeats missed)": the nodes of types
/// that a request may run on and that take no work; empty: there are none. O(nodes).
[[nodiscard]] std::string out_of_service_text(const State& state, const JobRequest& request,
                                              const Visibility& sees);

/// Returns the version of this program.
[[nodiscard]] std::string_view program_version();

[[nodiscard]] v1::EventRow event_view(const Controller& controller, const TimedEvent& event);
[[nodiscard]] google::protobuf::Timestamp timestamp_of(Instant at);
[[nodiscard]] Instant instant_of(const google::protobuf::Timestamp& at);
/// Returns a time up to its whole second, for people: "2026-01-31T23:59:59Z".
[[nodiscard]] inline std::string second_text(Instant at) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return Instant::from_ns(at.ns() / kSecond * kSecond).text();
}

}  // namespace orrery

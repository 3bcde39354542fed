#include "verbs/services/service_start.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/count_text.hpp"
#include "base/text/terminal_text.hpp"
#include "verbs/cluster/live_lists.hpp"
#include "verbs/cluster/live_text.hpp"
#include "verbs/services/told_replicas.hpp"

namespace orrery {
namespace {

bool has_ended(const v1::ServiceReplica& replica) {
  return replica.state() == "failed" || replica.state() == "gone";
}

/// Returns "12 (chat[0])"; jobs of an array share the name in front of the bracket.
Result<v1::ListJobsResponse> jobs_named(LiveSession& session, const std::string& name) {
  v1::ListJobsRequest request;
  request.set_name(name);
  Result<v1::ListJobsResponse> jobs = list_jobs(session, request);
  const auto serves = [](const v1::Job& job) { return job.kind() == "Serve"; };
  if (!jobs || std::ranges::any_of(jobs->jobs(), serves)) return jobs;
  request.set_name(name + "[*]");
  return list_jobs(session, request);
}

/// Faults of a replica's program after which it is not waited for: as many as end an update
/// (control/services/service_updates.cpp).
constexpr std::uint32_t kFaultsAtStart = 2;

/// Returns how a replica that is not ready has failed; "": not often enough.
std::string failing_start(LiveSession& session, const v1::ServiceReplica& replica) {
  if (replica.state() == "ready" || replica.attempt() <= kFaultsAtStart) return "";
  v1::GetJobRequest request;
  request.set_id(replica.job());
  const Result<v1::Job> job = session.client().call<v1::Job>("GetJob", request);
  if (!job) return "";
  std::uint32_t faults = 0;
  std::string last;
  for (const v1::JobAttempt& attempt : job->attempts()) {
    if (!attempt.has_stopped() || !attempt.blame().starts_with("program")) continue;
    ++faults;
    last = attempt.blame();
  }
  if (faults < kFaultsAtStart) return "";
  return fmt::format("failed {} times before it was ready: {}", faults, one_line(last));
}

/// Returns how a service fails of which each replica fails at its start; "": one may start.
std::string failing_service(LiveSession& session, const v1::ServiceView& service) {
  std::string first;
  for (const v1::ServiceReplica& replica : service.replicas()) {
    if (has_ended(replica)) continue;
    const std::string failing = failing_start(session, replica);
    if (failing.empty()) return "";
    if (!first.empty()) continue;
    first = fmt::format(
        "service {0} does not start: replica {1} {2}; `orrery logs {1}` shows its log. It is "
        "started again until `orrery cancel {0}` ends it",
        service.name(), replica.job(), failing);
  }
  return first;
}

}  // namespace

Result<std::uint64_t> service_job(LiveSession& session, const std::string& service) {
  if (const Result<std::uint64_t> id = job_id(service); id) return *id;
  const Result<v1::ListJobsResponse> jobs = jobs_named(session, service);
  if (!jobs) return tl::unexpected(jobs.error());
  for (const v1::Job& job : jobs->jobs()) {
    if (job.kind() == "Serve") return job.id();
  }
  return input_error({}, fmt::format("there is no service \"{}\": expected its name, or the number "
                                     "of a replica's job, as `orrery jobs` lists them",
                                     service));
}

Result<v1::AddServiceKeyResponse> add_service_key(LiveSession& session, std::uint64_t job) {
  v1::AddServiceKeyRequest request;
  request.set_id(job);
  return session.client().call<v1::AddServiceKeyResponse>("AddServiceKey", request);
}

Result<v1::ServiceView> service_of_job(LiveSession& session, std::uint64_t job) {
  v1::GetJobRequest request;
  request.set_id(job);
  Result<v1::Job> known = session.client().call<v1::Job>("GetJob", request);
  if (!known) return forward_error(known);
  if (!known->service().model().empty()) return known->service();
  const std::string name = fmt::format("job {} ({})", job, known->name());
  if (known->has_ended()) return infeasible(fmt::format("{} {}", name, outcome(*known)));
  return infeasible(name + " has no model to serve: expected a service with revisions");
}

Result<v1::ServiceView> await_service(LiveSession& session, std::uint64_t job,
                                      const ServiceWait& wait) {
  ToldReplicas told(session, wait);
  while (true) {
    Result<v1::ServiceView> service = service_of_job(session, job);
    if (!service) return service;
    told.tell(*service);
    if (ready_replicas(*service) > 0 && !service->endpoints().empty()) return service;
    if (!service->replicas().empty() && std::ranges::all_of(service->replicas(), has_ended)) {
      return infeasible(
          fmt::format("service {} has ended: none of its replicas is left; `orrery "
                      "job {}` shows why",
                      service->name(), job));
    }
    if (const std::string failing = failing_service(session, *service); !failing.empty()) {
      return infeasible(failing);
    }
    wait.pause();
  }
}

LiveAnswer service_answer(const v1::ServiceView& service, const v1::AddServiceKeyResponse& key) {
  const std::string endpoint = service.endpoints().empty() ? "" : service.endpoints(0);
  std::string text = fmt::format(
      "service {} (job {}): {} of {} ready\n"
      "endpoint  {}\n"
      "model     {}\n"
      "key       {}   ({}, shown only this once)\n",
      service.name(), service.id(), ready_replicas(service),
      counted(static_cast<std::uint64_t>(service.replicas_size()), "replica"),
      endpoint.empty() ? "none, no gateway is connected" : endpoint, service.model(), key.key(),
      key.name());
  if (!endpoint.empty()) {
    text += fmt::format(
        "\n  curl {}/v1/completions -H 'Authorization: Bearer {}' \\\n"
        "    -H 'Content-Type: application/json' \\\n"
        "    -d '{{\"model\": \"{}\", \"prompt\": \"Hello\", \"max_tokens\": 32}}'\n",
        endpoint, key.key(), service.model());
  }
  LiveAnswer answer = live_answer(service, terminal_text(text, Newlines::kKept));
  answer.json = Json{{"id", fmt::format("{}", service.id())},
                     {"endpoint", endpoint},
                     {"model", service.model()},
                     {"api_key", key.key()}};
  return answer;
}

}  // namespace orrery

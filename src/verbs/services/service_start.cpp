#include "verbs/services/service_start.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/text/count_text.hpp"
#include "base/text/terminal_text.hpp"
#include "verbs/cluster/live_lists.hpp"
#include "verbs/cluster/live_text.hpp"

namespace orrery {
namespace {

constexpr std::uint32_t kTailLines = 15;
constexpr std::size_t kTailMax = 8'000;

bool has_ended(const v1::ServiceReplica& replica) {
  return replica.state() == "failed" || replica.state() == "gone";
}

std::int64_t ready_replicas(const v1::ServiceView& service) {
  return std::ranges::count(service.replicas(), "ready", &v1::ServiceReplica::state);
}

/// Returns the last lines that an attempt wrote, indented; why they are not known, otherwise.
std::string log_tail(LiveSession& session, std::uint64_t job, std::uint32_t attempt) {
  v1::ReadLogRequest request;
  request.set_id(job);
  request.set_attempt(attempt);
  request.set_tail(kTailLines);
  std::string bytes;
  v1::LogChunk chunk;
  const Status read = session.client().read(
      "ReadLog", [&]() -> const v1::ReadLogRequest& { return request; }, chunk,
      [&] {
        bytes += chunk.bytes();
        return bytes.size() < kTailMax;
      });
  if (bytes.empty()) {
    return fmt::format("  its log {}\n",
                       read ? "is empty" : "cannot be read: " + one_line(read.error().text()));
  }
  std::string lines;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    lines += "  " + one_line(rest.substr(0, end)) + "\n";
    rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
  }
  return lines;
}

/// The replicas as they were last told.
class ToldReplicas {
 public:
  ToldReplicas(LiveSession& session, const ServiceWait& wait) : session_(session), wait_(wait) {}

  void tell(const v1::ServiceView& service) {
    for (const v1::ServiceReplica& replica : service.replicas()) tell(replica);
    if (service.endpoints().empty() && ready_replicas(service) > 0 && !no_gateway_told_) {
      no_gateway_told_ = true;
      wait_.said("orrery: no gateway of the cluster is connected yet\n");
    }
  }

 private:
  struct Told {
    std::string state;
    std::uint32_t attempt = 0;
  };

  void tell(const v1::ServiceReplica& replica) {
    Told& told = told_[replica.job()];
    const bool again = told.attempt > 0 && replica.attempt() > told.attempt;
    const bool failed = replica.state() == "failed" && told.state != "failed";
    if (again || failed) tell_failure(replica.job(), again ? told.attempt : replica.attempt());
    if (replica.state() != told.state || again) {
      wait_.said(one_line(fmt::format("orrery: replica {} {}{}", replica.job(), replica.state(),
                                      replica.node().empty() ? "" : " on " + replica.node())) +
                 "\n");
    }
    told = {replica.state(), replica.attempt()};
  }

  void tell_failure(std::uint64_t job, std::uint32_t attempt) {
    wait_.said(
        fmt::format("orrery: attempt {1} of replica {0} failed; the end of its log (all of "
                    "it: `orrery logs {0} --attempt {1}`):\n{2}",
                    job, attempt, log_tail(session_, job, attempt)));
  }

  LiveSession& session_;
  const ServiceWait& wait_;
  std::map<std::uint64_t, Told> told_;
  bool no_gateway_told_ = false;
};

/// Returns "12 (chat[0])"; jobs of an array share the name in front of the bracket.
Result<v1::ListJobsResponse> jobs_named(LiveSession& session, const std::string& name) {
  v1::ListJobsRequest request;
  request.set_name(name);
  Result<v1::ListJobsResponse> jobs = list_jobs(session, request);
  if (!jobs || !jobs->jobs().empty()) return jobs;
  request.set_name(name + "[*]");
  return list_jobs(session, request);
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

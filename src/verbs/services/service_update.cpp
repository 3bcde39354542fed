#include "verbs/services/service_update.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/format/document.hpp"
#include "base/text/count_text.hpp"
#include "base/text/terminal_text.hpp"
#include "verbs/cluster/service_text.hpp"
#include "verbs/schedule/submit_request.hpp"
#include "workload/job_spec.hpp"

namespace orrery {
namespace {

/// Returns "r3" after "r2", and "blue-2" after "blue".
std::string id_after(const std::string& id) {
  const std::size_t digits = id.find_last_not_of("0123456789") + 1;
  std::uint32_t number = 0;
  const auto [end, failed] = std::from_chars(id.data() + digits, id.data() + id.size(), number);
  if (digits == id.size() || failed != std::errc()) return id + "-2";
  return fmt::format("{}{}", id.substr(0, digits), number + 1);
}

Result<JobSpec> spec_of(const std::string& text, const std::string& file) {
  const Result<Document> document = Document::parse(text, file);
  if (!document) return tl::unexpected(document.error());
  return read_job_spec(*document);
}

}  // namespace

Result<std::string> updated_service_spec(const PresentService& present,
                                         const ServiceUpdateOptions& options) {
  const bool terms_of_service = !options.slo.empty() || !options.scale.empty();
  const bool other = !options.artifact.empty() || options.arguments;
  const RolloutOptions& rollout = options.rollout;
  const bool terms = rollout.surge || rollout.unavailable || !rollout.canary.empty() ||
                     !rollout.bake.empty() || !rollout.gates.empty();
  if (!other && !options.replicas && !terms && !terms_of_service) {
    return input_error({},
                       "nothing to update: expected a MODEL, --replicas, --scale, --slo, or "
                       "arguments of the inference engine behind --");
  }
  Result<JobSpec> spec = spec_of(present.spec, "the service's spec");
  if (!spec) return forward_error(spec);
  if (spec->roles.size() > 1) {
    return input_error(
        {}, fmt::format("service {} has several roles: it cannot be updated", spec->name));
  }
  if (Status taken = take_rollout(options.rollout, spec->service.rollout); !taken) {
    return forward_error(taken);
  }
  if (Status taken = take_scaling(options.scale, spec->service.scaling); !taken) {
    return forward_error(taken);
  }
  spec->roles.front().replicas =
      options.replicas.value_or(replicas_within(spec->service.scaling, present.replicas));
  if (Status taken = take_slo(options.slo, spec->service.slo); !taken) return forward_error(taken);
  if (!other) return checked_job_text(*spec);
  if (spec->service.revisions.empty()) {
    return input_error({}, fmt::format("service {} has no revisions, its launch says what it runs: "
                                       "`orrery submit FILE --update` changes it",
                                       spec->name));
  }
  RevisionSpec& revision = spec->service.revisions.front();
  revision.id = options.revision.empty() ? id_after(revision.id) : options.revision;
  if (options.arguments) revision.engine.arguments = *options.arguments;
  if (!options.artifact.empty()) {
    Result<std::string> artifact = served_artifact(revision.engine.name, options.artifact);
    if (!artifact) return forward_error(artifact);
    revision.artifact = *std::move(artifact);
  }
  return checked_job_text(*spec);
}

Result<AskedUpdate> asked_by(const SubmittedSpec& spec) {
  const Result<JobSpec> read = spec_of(spec.text, spec.file);
  if (!read) return tl::unexpected(read.error());
  const std::vector<RevisionSpec>& revisions = read->service.revisions;
  return AskedUpdate{read->name, revisions.empty() ? "" : revisions.front().id};
}

Result<PresentService> present_service(LiveSession& session, std::uint64_t job) {
  v1::GetJobRequest request;
  request.set_id(job);
  Result<v1::Job> known = session.client().call<v1::Job>("GetJob", request);
  if (!known) return forward_error(known);
  const v1::ServiceView service = known->service();
  const auto stays = [](const v1::ServiceReplica& replica) {
    return replica.state() != "draining" && replica.state() != "failed" &&
           replica.state() != "gone";
  };
  const auto now = static_cast<std::uint32_t>(std::ranges::count_if(service.replicas(), stays));
  // A replica may have an older text than its revision.
  return PresentService{service.spec().empty() ? known->spec() : service.spec(),
                        service.has_update() ? service.update().replicas() : std::max(now, 1U)};
}

Result<PresentService> service_before_canary(LiveSession& session, std::uint64_t job) {
  const Result<v1::ServiceView> service = service_of_job(session, job);
  if (!service) return tl::unexpected(service.error());
  const auto former =
      std::ranges::find(service->replicas(), service->revision(), &v1::ServiceReplica::revision);
  if (!service->update().has_canary() || former == service->replicas().end()) {
    return input_error({}, fmt::format("service {} has no canary to take back", service->name()));
  }
  v1::GetJobRequest request;
  request.set_id(former->job());
  const Result<v1::Job> known = session.client().call<v1::Job>("GetJob", request);
  if (!known) return tl::unexpected(known.error());
  return PresentService{known->spec(), service->update().replicas()};
}

Result<std::uint64_t> update_service(LiveSession& session, std::uint64_t job,
                                     const SubmittedSpec& spec) {
  v1::UpdateServiceRequest request;
  request.set_request_id(session.request_id());
  request.set_id(job);
  request.set_spec(spec.text);
  request.set_file(spec.file);
  const auto updated = session.client().call<v1::UpdateServiceResponse>("UpdateService", request);
  if (!updated) return tl::unexpected(updated.error());
  return updated->id();
}

Result<v1::ServiceView> await_update(LiveSession& session, const AskedUpdate& asked,
                                     const ServiceWait& wait) {
  ToldReplicas told(session, wait);
  std::string back;
  std::uint32_t stage = 0;
  while (true) {
    const Result<std::uint64_t> job = service_job(session, asked.service);
    if (!job) return tl::unexpected(job.error());
    Result<v1::ServiceView> now = service_of_job(session, *job);
    if (!now) return now;
    told.tell(*now);
    if (now->update().back() != back && !now->update().back().empty()) {
      back = now->update().back();
      wait.said(fmt::format("orrery: going back to revision {}: {}\n", now->update().revision(),
                            one_line(back)));
    }
    if (now->update().canary().stage() > stage) {
      stage = now->update().canary().stage();
      wait.said("orrery: " + one_line(canary_text(now->update().canary())) + "\n");
    }
    if (now->has_update()) {
      wait.pause();
    } else if (now->outcome().empty() && now->revision() != asked.revision) {
      return infeasible(
          fmt::format("the update of service {} to revision {} was replaced by another "
                      "one: it runs revision {}",
                      now->name(), asked.revision, now->revision()));
    } else if (now->outcome().empty()) {
      return now;
    } else {
      return infeasible(
          fmt::format("the update of service {} did not succeed: {}; it runs "
                      "revision {}",
                      now->name(), one_line(now->outcome()), now->revision()));
    }
  }
}

LiveAnswer updated_answer(const v1::ServiceView& service) {
  if (service.has_update()) {
    const v1::ServiceUpdate& update = service.update();
    const std::string text = one_line(
        fmt::format("service {0} (job {1}) is updated to revision {2}: {3} of {4} ready; `orrery "
                    "job {0}` shows how far it is",
                    service.name(), service.id(), update.revision(), update.ready(),
                    counted(update.replicas(), "replica")));
    return live_answer(service, text + "\n");
  }
  const std::string text = one_line(
      fmt::format("service {} (job {}) runs revision {}: {} of {} ready", service.name(),
                  service.id(), service.revision(), ready_replicas(service),
                  counted(static_cast<std::uint64_t>(service.replicas_size()), "replica")));
  return live_answer(service, text + "\n");
}

}  // namespace orrery

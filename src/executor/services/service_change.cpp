#include "executor/services/service_change.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/format/document.hpp"
#include "base/format/field_writer.hpp"
#include "base/text/utf8.hpp"
#include "control/services/service_updates.hpp"
#include "executor/services/service_book.hpp"
#include "workload/job_spec.hpp"

namespace orrery {
namespace {

constexpr Seconds kBake{600};

Result<JobSpec> spec_of(const std::string& text, const std::string& file) {
  const Result<Document> document = Document::parse(text, file);
  if (!document) return tl::unexpected(document.error());
  return read_job_spec(*document);
}

/// Returns the text of a revision: what its replicas run and ask for, and the service's terms.
std::string revision_text(JobSpec spec) {
  for (RoleSpec& role : spec.roles) role.replicas = 1;
  spec.service.rollout = {};
  spec.hold = false;
  spec.after.clear();
  return write_job_spec(spec);
}

/// Returns the text of what a replica of a spec runs, with what it asks for.
std::string replica_text(JobSpec spec) {
  spec.service.slo = {};
  spec.service.tenants.clear();
  spec.service.scaling.reset();
  spec.service.quality = {};
  return revision_text(std::move(spec));
}

/// Returns how many replicas a service is to have: where it is scaled and the text asks for as many
/// as the one before, as many as its clients need now.
std::uint32_t replicas_of(const JobSpec& spec, const JobSpec& known, std::uint32_t now) {
  const std::uint32_t asked = spec.roles.front().replicas;
  const std::optional<ScalingSpec>& scaling = spec.service.scaling;
  if (!scaling || asked != known.roles.front().replicas) return asked;
  return std::clamp(now, std::max(scaling->min, 1U), scaling->max);
}

/// Returns the terms of an update. Precondition: check_service() of the spec.
RolloutTerms terms_of(const RolloutSpec& rollout) {
  RolloutTerms terms{.surge = rollout.surge,
                     .unavailable = rollout.unavailable,
                     .canary = *canary_shares(rollout.canary),
                     .bake = {}};
  if (rollout.canary.empty()) return terms;
  terms.bake = Duration::from_seconds(rollout.bake.value_or(kBake).value());
  if (rollout.gates.empty()) return terms;
  const auto has = [&rollout](RolloutGate gate) {
    return std::ranges::find(rollout.gates, gate) != rollout.gates.end();
  };
  terms.gates = {has(RolloutGate::kErrors), has(RolloutGate::kSlo), has(RolloutGate::kQuality)};
  return terms;
}

/// Checks that a spec may be of the same service as `known`, one that runs.
Status check_alike(const JobSpec& spec, const JobSpec& known) {
  if (spec.roles.size() > 1) {
    return input_error(spec.where, fmt::format("there are {} roles, expected one: a service with "
                                               "several cannot be updated",
                                               spec.roles.size()));
  }
  const std::string& role = known.roles.front().name;
  if (known.roles.size() == 1 && spec.roles.front().name != role) {
    return input_error(spec.roles.front().where,
                       fmt::format("the role is \"{}\", expected \"{}\", the service's",
                                   spec.roles.front().name, role));
  }
  const auto model = [](const JobSpec& of) {
    return of.service.revisions.empty() ? std::string() : of.service.revisions.front().model;
  };
  if (model(spec) != model(known)) {
    return input_error(spec.where,
                       fmt::format("model is \"{}\", expected \"{}\": clients of the service ask "
                                   "for it by that name",
                                   model(spec), model(known)));
  }
  return {};
}

/// Checks that no other revision has the id of one that runs.
Status check_id(const JobSpec& spec, const JobSpec& known) {
  if (spec.service.revisions.empty() || known.service.revisions.empty()) return {};
  const RevisionSpec& asked = spec.service.revisions.front();
  if (asked.id != known.service.revisions.front().id) return {};
  return input_error(asked.where, fmt::format("revision \"{}\" of the service runs already and "
                                              "differs from this one, expected another id",
                                              asked.id));
}

}  // namespace

Result<UpdateService> service_change(const State& state, JobId replica, const JobText& text,
                                     const std::vector<SubmitJob>& jobs) {
  const ReplicaMembership* member = state.services().membership(replica);
  const Service* service = member == nullptr ? nullptr : state.services().find(member->service);
  if (service == nullptr) {
    return input_error({},
                       fmt::format("job {} is no replica of a service that runs", replica.value()));
  }
  const Result<JobSpec> spec = spec_of(text.text, text.file);
  if (!spec) return tl::unexpected(spec.error());
  const JobRequest& present = service->revision.replica->request;
  const JobRequest& asked = jobs.front().submission.request;
  if (service_name(asked.name) != service_name(present.name)) {
    return input_error(spec->where,
                       fmt::format("name is \"{}\", expected \"{}\", the service's",
                                   printable(spec->name, 60), service_name(present.name)));
  }
  if (asked.tenant != present.tenant) {
    return input_error(spec->where, fmt::format("tenant is \"{}\", expected \"{}\", the service's",
                                                state.tenants().path(asked.tenant),
                                                state.tenants().path(present.tenant)));
  }
  UpdateService change{.job = replica,
                       .replica = jobs.front().submission,
                       .texts = {text.text, jobs.front().submitter, jobs.front().run_as},
                       .replicas = static_cast<std::uint32_t>(jobs.size()),
                       .terms = terms_of(spec->service.rollout)};
  std::vector<const ServiceRevision*> running{&service->revision};
  if (service->update) running.insert(running.begin(), &service->update->to);
  for (const ServiceRevision* each : running) {
    const Result<JobSpec> known = spec_of(each->texts.spec, "the service's spec");
    if (!known) return tl::unexpected(known.error());
    if (Status alike = check_alike(*spec, *known); !alike) return forward_error(alike);
    if (each == running.front()) {
      change.replicas = replicas_of(*spec, *known, wanted_replicas(state, *service));
    }
    if (replica_text(*spec) != replica_text(*known)) continue;
    change.replica = *each->replica;
    if (revision_text(*spec) == revision_text(*known)) {
      change.texts = each->texts;
    } else {
      change.revision = each->number;
    }
    return change;
  }
  for (const ServiceRevision* each : running) {
    const Result<JobSpec> known = spec_of(each->texts.spec, "the service's spec");
    if (Status id = check_id(*spec, *known); !id) return forward_error(id);
  }
  return change;
}

}  // namespace orrery

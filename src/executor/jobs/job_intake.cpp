#include "executor/jobs/job_intake.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/format/document.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/utf8.hpp"
#include "control/spec_submission.hpp"
#include "scheduler/admission.hpp"
#include "scheduler/place/pristine_fleet.hpp"
#include "scheduler/request/job_array.hpp"
#include "scheduler/request/resolve.hpp"

namespace orrery {
namespace {

/// Returns 3 for "sweep[3]", a job of the array "sweep"; none: the job is not in that array.
std::optional<std::uint32_t> place_in(std::string_view array, std::string_view name) {
  if (!name.starts_with(array)) return std::nullopt;
  name.remove_prefix(array.size());
  if (name.size() < 3 || name.front() != '[' || name.back() != ']') return std::nullopt;
  std::uint32_t place = 0;
  const char* const end = name.data() + name.size() - 1;
  const auto [at, failed] = std::from_chars(name.data() + 1, end, place);
  return failed == std::errc() && at == end ? std::optional(place) : std::nullopt;
}

/// Returns all jobs of an array, found by their names, because ended jobs do not keep their array.
/// `first` is the number of its first job, which may be archived, as any other may. Errors: a
/// condition that depends on how an archived job ended.
Result<std::vector<JobId>> jobs_of_array(const State& state, std::string_view array, JobId first,
                                         AfterCondition when) {
  std::vector<JobId> jobs;
  std::optional<JobId> archived;
  for (std::uint32_t place = 0; first.value() + place < state.jobs(); ++place) {
    const JobId next(first.value() + place);
    if (!state.has(next)) {
      if (!archived) archived = next;
      continue;
    }
    if (place_in(array, state.job(next).name) != place) break;
    jobs.push_back(next);
  }
  if (when == AfterCondition::kNotOk && jobs.size() > 1) {
    return input_error(
        {}, fmt::format("\"{0}\" is an array: expected one of its jobs, \"{0}[0]\"", array));
  }
  const bool matters = archived && !jobs.empty() && *archived < jobs.back();
  if (!matters || when == AfterCondition::kAny) return jobs;
  return input_error({},
                     fmt::format("job {0} of the array \"{1}\" has ended and is in the archive: "
                                 "`orrery job {0}` shows how; name the jobs that have not ended",
                                 archived->value(), array));
}

/// Returns the array whose first job was `archived`, according to the next of its jobs; empty:
/// none.
std::string array_begun_by(const State& state, JobId archived) {
  for (std::uint32_t at = archived.value() + 1; at < state.jobs(); ++at) {
    if (!state.has(JobId(at))) continue;
    const std::string& name = state.job(JobId(at)).name;
    const std::string array = name.substr(0, name.find('['));
    return place_in(array, name) == at - archived.value() ? array : std::string();
  }
  return {};
}

/// Returns a job or, if it is the first of an array, all jobs of the array.
Result<std::vector<JobId>> job_or_array(const State& state, JobId first, AfterCondition when) {
  constexpr std::string_view kFirst = "[0]";
  const std::string_view name = state.job(first).name;
  if (!name.ends_with(kFirst)) return std::vector{first};
  return jobs_of_array(state, name.substr(0, name.size() - kFirst.size()), first, when);
}

/// Returns the jobs that `after` names, of `tenant` and the tenants below it: for its users no
/// other jobs exist. A number means a job before it means a name, as in Slurm, and that of an
/// array's first job means the whole array. A name means the newest job or array that has it.
/// O(jobs).
Result<std::vector<JobId>> jobs_named(const State& state, const AfterSpec& after,
                                      std::string_view tenant) {
  const std::string_view name = after.job;
  const auto visible = [&](JobId id) {
    return state.has(id) && is_within(state.tenants().path(state.job(id).tenant), tenant);
  };
  std::uint32_t number = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = failed == std::errc() && end == name.data() + name.size();
  if (whole && visible(JobId(number))) return job_or_array(state, JobId(number), after.when);
  if (whole && state.setup().is_lost(JobId(number))) {
    return input_error({}, fmt::format("job {} was lost with a part of the log", number));
  }
  if (whole && number < state.jobs() && tenant.empty()) {
    const std::string array = array_begun_by(state, JobId(number));
    if (!array.empty()) return jobs_of_array(state, array, JobId(number), after.when);
    if (after.when == AfterCondition::kAny) return std::vector<JobId>();
    return input_error({}, fmt::format("job {0} has ended and is in the archive: `orrery job {0}` "
                                       "shows how, and nothing waits for it any more",
                                       number));
  }
  for (std::size_t at = state.jobs(); at-- > 0;) {
    const JobId id = JobId::at(at);
    if (!visible(id)) continue;
    if (state.job(id).name == name) return std::vector{id};
    const auto place = place_in(name, state.job(id).name);
    if (!place || *place > at) continue;
    // Later replicas of a service have numbers of their own.
    Result<std::vector<JobId>> jobs =
        jobs_of_array(state, name, JobId::at(at - *place), after.when);
    if (!jobs || !jobs->empty()) return jobs;
  }
  if (tenant.empty()) {
    return input_error({}, fmt::format("no job \"{}\" was ever submitted", name));
  }
  return input_error(
      {}, fmt::format("no job \"{}\" of tenant \"{}\", or it has ended and is in the archive", name,
                      tenant));
}

Result<JobSpec> spec_of(const JobText& text) {
  const Result<Document> document = Document::parse(text.text, text.file);
  if (!document) return tl::unexpected(document.error());
  return read_job_spec(*document);
}

/// The jobs that a spec stands for.
std::size_t count_of(const JobSpec& spec) {
  if (spec.array) return spec.array->count;
  if (spec.kind != JobKind::kServe) return 1;
  std::size_t replicas = 0;
  for (const RoleSpec& role : spec.roles) replicas += role.replicas;
  return replicas;
}

/// Checks sizes, because each job keeps its text from submission to the archive.
Status check_size(const JobText& text, const JobSpec& spec) {
  constexpr std::size_t kTextMax = std::size_t{1} << 20;
  constexpr std::size_t kTogetherMax = std::size_t{64} << 20;
  const std::size_t bytes = text.text.size();
  const std::size_t count = count_of(spec);
  if (bytes > kTextMax) {
    return input_error(spec.where, fmt::format("the spec has {} bytes, expected at most {}: put "
                                               "large data into files",
                                               bytes, kTextMax));
  }
  if (bytes * count <= kTogetherMax) return {};
  return input_error(spec.array ? spec.array->where : spec.where,
                     fmt::format("{} jobs keep {} bytes of spec each, expected at most {} "
                                 "together",
                                 count, bytes, kTogetherMax));
}

/// Refuses keys that only the twin supports: in a live cluster they would silently have no effect.
Status check_live(const JobSpec& spec) {
  if (!launch_of(spec)) {
    return input_error(spec.where,
                       fmt::format("the job has nothing to start, expected launch{}",
                                   spec.kind == JobKind::kServe ? " or revisions" : ""));
  }
  for (const RevisionSpec& revision : spec.service.revisions) {
    if (revision.artifact.starts_with('/')) continue;
    return input_error(revision.where, fmt::format("artifact is \"{}\", expected an absolute path: "
                                                   "nodes have another working directory",
                                                   printable(revision.artifact, 60)));
  }
  if (!spec.data.empty()) {
    return input_error(spec.data.front().where,
                       "data: agents copy no data between sites; keep the job at the site of its "
                       "data with residency (data is for simulations)");
  }
  if (spec.compile) {
    return input_error(spec.compile->where,
                       "compile: agents compile nothing ahead of a start; the program may compile "
                       "at its begin (compile is for simulations)");
  }
  if (spec.checkpoint.peer_copy) {
    return input_error(spec.checkpoint.where,
                       "checkpoint.peer_copy: no copy of a checkpoint is kept in other nodes' "
                       "memory (peer_copy is for simulations)");
  }
  return {};
}

/// Makes the only job of a service its first replica: later ones join its array.
void make_replica(JobRequest& request, ArrayId array) {
  if (request.kind != JobKind::kServe || request.array.valid() || !array.valid()) return;
  request.array = array;
  request.name += "[0]";
  if (keeps_distance(request)) request.class_id = ClassId();
}

/// Returns the POSIX user of a text's jobs. Error: the job's tenant has a user, and the submitter
/// is not one of the tenant's.
Result<std::string> user_of(const JobText& text, const JobSpec& spec, const std::string& lent) {
  if (!text.run_as.empty() || lent.empty()) return text.run_as;
  if (text.tenant_users == JobText::TenantUsers::kAll || !text.tenant.empty()) return lent;
  return input_error(
      spec.where,
      fmt::format(
          "tenant: \"{0}\": its jobs run as {1}, which is for users of that tenant; \"{2}\" "
          "has no tenant and no user of its own. Expected a user that an admin added with "
          "`orrery user add NAME --tenant {0}` or `--run-as USER`",
          spec.tenant, lent, text.submitter));
}

}  // namespace

Status JobIntake::take_up_work(const std::string& text) {
  Result<JobSpec> spec = spec_of({text, "a job of the log"});
  if (!spec) return forward_error(spec);
  const ResolveContext context = facts_->resolve_context(Instant());
  // A text that brought new work may have been refused for what follows it.
  static_cast<void>(register_work(*spec, context.models, context.works));
  return {};
}

void JobIntake::take_up_jobs(const State& state) {
  for (const Job& job : state.all_jobs()) {
    if (job.submission == nullptr) continue;
    facts_->classes().take_up(job.submission->request);
    if (job.submission->request.array.valid()) {
      arrays_ = std::max(arrays_, job.submission->request.array.value() + 1);
    }
  }
  for (const auto& [id, service] : state.services().all()) {
    facts_->classes().take_up(service.revision.replica->request);
    arrays_ = std::max(arrays_, service.revision.replica->request.array.value() + 1);
    if (service.update) facts_->classes().take_up(service.update->to.replica->request);
  }
}

Status JobIntake::add_dependencies(const JobSpec& spec, const State& state, std::string_view tenant,
                                   Submission& submission) {
  std::vector<JobId> named;
  for (const AfterSpec& after : spec.after) {
    const Result<std::vector<JobId>> jobs = jobs_named(state, after, tenant);
    if (!jobs) return input_error(after.where, fmt::format("after: {}", jobs.error().message));
    std::vector<JobId>& list = dependencies_of(submission, after.when);
    for (const JobId job : *jobs) {
      if (std::find(named.begin(), named.end(), job) != named.end()) {
        return input_error(after.where, fmt::format("after: \"{}\" is job {}, which is named twice",
                                                    after.job, job.value()));
      }
      named.push_back(job);
      list.push_back(job);
    }
  }
  return {};
}

ClassId JobIntake::class_of(const JobRequest& request) { return facts_->classes().of(request); }

Result<JobRequest> JobIntake::resolve(const JobSpec& spec, const State& state, Instant now) {
  const ResolveContext own = facts_->resolve_context(now);
  Result<JobRequest> request = resolve_job(spec, {.fleet = own.fleet,
                                                  .models = own.models,
                                                  .tenants = state.tenants(),
                                                  .works = own.works,
                                                  .sizes = own.sizes,
                                                  .now = now});
  if (!request) return forward_error(request);
  request->class_id = facts_->classes().of(*request);
  return request;
}

Result<Submission> JobIntake::submission_of(const JobSpec& spec, const State& state, Instant now,
                                            std::string_view tenant) {
  Result<JobRequest> request = resolve(spec, state, now);
  if (!request) return forward_error(request);
  Submission submission = orrery::submission_of(spec, *std::move(request));
  if (Status added = add_dependencies(spec, state, tenant, submission); !added) {
    return forward_error(added);
  }
  return submission;
}

Result<std::string> JobIntake::appraise(const Submission& job, const State& state,
                                        Instant now) const {
  if (!job.request.deadline && !job.request.budget) return std::string();
  constexpr std::uint32_t kNoJob = 0x7fffffff;
  Situation situation = state.situation(now);
  std::vector<WaitingJob> waiting(situation.waiting.begin(), situation.waiting.end());
  waiting.push_back({JobId(kNoJob), &job.request, now, 0, 0});
  situation.waiting = waiting;
  const PristineFleet& fleet = facts_->resolve_context(now).fleet;
  const bool waits =
      job.hold || !job.after.empty() || !job.after_any.empty() || !job.after_notok.empty();
  Admission admission = judge_admission({situation, state.policy(), fleet.tree(), fleet.view(),
                                         JobId(kNoJob), waits ? HeldBack::kYes : HeldBack::kNo});
  if (!admission.refusal.empty()) return infeasible(std::move(admission.refusal));
  return std::move(admission.note);
}

bool is_within(std::string_view tenant, std::string_view above) {
  if (above.empty() || tenant == above) return true;
  return tenant.starts_with(above) && tenant[above.size()] == '/';
}

std::size_t JobIntake::works() const { return facts_->resolve_context(Instant()).works.size(); }

Result<std::vector<SubmitJob>> JobIntake::read(const JobText& text, const State& state,
                                               Instant now) {
  Result<JobSpec> spec = spec_of(text);
  if (!spec) return forward_error(spec);
  if (Status small = check_size(text, *spec); !small) return forward_error(small);
  if (Status live = check_live(*spec); !live) return forward_error(live);
  if (!text.tenant.empty() && spec->tenant == JobSpec().tenant) spec->tenant = text.tenant;
  if (!is_within(spec->tenant, text.tenant)) {
    return input_error(spec->where,
                       fmt::format("tenant: \"{}\": expected \"{}\", the submitter's, or one below "
                                   "it",
                                   spec->tenant, text.tenant));
  }
  if (Status timely = check_at(*spec, now); !timely) return forward_error(timely);
  const ResolveContext context = facts_->resolve_context(now);
  Status registered = register_work(*spec, context.models, context.works);
  if (!registered) return forward_error(registered);
  Result<Submission> submission = submission_of(*spec, state, now, text.tenant);
  if (!submission) return forward_error(submission);
  Result<std::string> run_as =
      user_of(text, *spec, state.tenants().run_as(submission->request.tenant));
  if (!run_as) return forward_error(run_as);
  std::vector<SubmitJob> jobs;
  for (Submission& job : jobs_of(*spec, *submission, ArrayId(arrays_), facts_->classes())) {
    make_replica(job.request, ArrayId(arrays_));
    jobs.push_back({std::move(job), text.text, text.submitter, *run_as});
  }
  if (jobs.front().submission.request.array.valid()) ++arrays_;
  return jobs;
}

Result<std::vector<JobRequest>> JobIntake::resolve_again(const Job& like, const State& state,
                                                         Instant now) {
  Result<JobSpec> spec = spec_of({like.spec, "a job of the log"});
  if (!spec) return forward_error(spec);
  const JobRequest& former = like.submission->request;
  spec->tenant = state.tenants().path(like.tenant);
  spec->deadline.reset();  // a passed one is no reason to keep the job from new accelerators
  Result<JobRequest> request = resolve(*spec, state, now);
  if (!request) return forward_error(request);
  request->deadline = former.deadline;
  std::vector<JobRequest> requests = requests_of(*spec, *request, former.array, facts_->classes());
  for (JobRequest& each : requests) make_replica(each, former.array);
  return requests;
}

}  // namespace orrery

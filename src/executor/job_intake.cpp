#include "executor/job_intake.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/document.hpp"
#include "base/nearest_name.hpp"
#include "control/spec_submission.hpp"
#include "scheduler/resolve.hpp"

namespace orrery {
namespace {

/// "train" of "train[0]", as the first job of an array is called; empty: it is none.
std::string_view array_of_first(std::string_view name) {
  constexpr std::string_view kFirst = "[0]";
  return name.ends_with(kFirst) ? name.substr(0, name.size() - kFirst.size()) : "";
}

/// A job and, where it is the first of an array, all others of it, by their names: those that have
/// ended know no more of where they belong.
std::vector<JobId> job_or_array(const State& state, JobId first) {
  std::vector<JobId> jobs = {first};
  const std::string_view array = array_of_first(state.job(first).name);
  for (std::uint32_t place = 1; !array.empty(); ++place) {
    const JobId next(first.value() + place);
    if (next.value() >= state.jobs()) break;
    if (!state.has(next)) continue;  // archived
    if (state.job(next).name != fmt::format("{}[{}]", array, place)) break;
    jobs.push_back(next);
  }
  return jobs;
}

/// The jobs of `tenant` and of the tenants below it that go by a name: those of others do not exist
/// for its users. A number is a job's before it is a name, as in Slurm, and that of an array's
/// first job stands for the whole array. A name means the newest job that has it. O(jobs).
Result<std::vector<JobId>> jobs_named(const State& state, std::string_view name,
                                      std::string_view tenant) {
  const auto visible = [&](JobId id) {
    return state.has(id) && is_within(state.tenants().path(state.job(id).tenant), tenant);
  };
  std::uint32_t number = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = failed == std::errc() && end == name.data() + name.size();
  if (whole && visible(JobId(number))) return job_or_array(state, JobId(number));
  if (whole && state.setup().is_lost(JobId(number))) {
    return input_error({}, fmt::format("job {} was lost with a part of the log", number));
  }
  if (whole && number < state.jobs() && tenant.empty()) {
    return input_error({}, fmt::format("job {0} has ended and is in the archive: `orrery job {0}` "
                                       "shows how, and nothing waits for it any more",
                                       number));
  }
  for (std::size_t at = state.jobs(); at-- > 0;) {
    const JobId id = JobId::at(at);
    if (visible(id) && state.job(id).name == name) return std::vector{id};
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

/// Keys that the twin acts on and agents do not: in a live cluster they would silently have no
/// effect.
Status check_live(const JobSpec& spec) {
  if (!spec.launch) {
    return input_error(spec.where, "the job has nothing to start, expected launch");
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

/// As whom the jobs of a text run. Error: its tenant has a user, and the submitter is none of the
/// tenant's.
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
  // What could not run then brought its work all the same.
  static_cast<void>(resolve_job(*spec, facts_.resolve_context(Instant())));
  return {};
}

void JobIntake::take_up_jobs(const State& state) {
  for (const Job& job : state.all_jobs()) {
    if (job.submission == nullptr) continue;
    facts_.classes().take_up(job.submission->request);
    if (job.submission->array.valid()) {
      arrays_ = std::max(arrays_, job.submission->array.value() + 1);
    }
  }
}

Result<std::vector<JobId>> JobIntake::jobs_before(const JobSpec& spec, const State& state,
                                                  std::string_view tenant) {
  std::vector<JobId> before;
  before.reserve(spec.after.size());
  for (const std::string& name : spec.after) {
    const Result<std::vector<JobId>> jobs = jobs_named(state, name, tenant);
    if (!jobs) return input_error(spec.where, fmt::format("after: {}", jobs.error().message));
    before.insert(before.end(), jobs->begin(), jobs->end());
  }
  return before;
}

Result<Submission> JobIntake::submission_of(const JobSpec& spec, const State& state, Instant now,
                                            std::string_view tenant) {
  const ResolveContext own = facts_.resolve_context(now);
  Result<JobRequest> request = resolve_job(spec, {.fleet = own.fleet,
                                                  .models = own.models,
                                                  .tenants = state.tenants(),
                                                  .works = own.works,
                                                  .sizes = own.sizes,
                                                  .now = now});
  if (!request) return forward_error(request);
  request->class_id = facts_.classes().of(*request);
  Submission submission = orrery::submission_of(spec, *std::move(request));
  Result<std::vector<JobId>> before = jobs_before(spec, state, tenant);
  if (!before) return forward_error(before);
  submission.after = *std::move(before);
  return submission;
}

bool is_within(std::string_view tenant, std::string_view above) {
  if (above.empty() || tenant == above) return true;
  return tenant.starts_with(above) && tenant[above.size()] == '/';
}

std::size_t JobIntake::works() const { return facts_.resolve_context(Instant()).works.size(); }

Result<std::vector<SubmitJob>> JobIntake::read(const JobText& text, const State& state,
                                               Instant now) {
  Result<JobSpec> spec = spec_of(text);
  if (!spec) return forward_error(spec);
  if (Status live = check_live(*spec); !live) return forward_error(live);
  if (!text.tenant.empty() && spec->tenant == JobSpec().tenant) spec->tenant = text.tenant;
  if (!is_within(spec->tenant, text.tenant)) {
    return input_error(spec->where,
                       fmt::format("tenant: \"{}\": expected \"{}\", the submitter's, or one below "
                                   "it",
                                   spec->tenant, text.tenant));
  }
  if (Status timely = check_at(*spec, now); !timely) return forward_error(timely);
  Result<Submission> submission = submission_of(*spec, state, now, text.tenant);
  if (!submission) return forward_error(submission);
  Result<std::string> run_as =
      user_of(text, *spec, state.tenants().run_as(submission->request.tenant));
  if (!run_as) return forward_error(run_as);
  const ArrayId array(spec->array ? arrays_++ : arrays_);
  std::vector<SubmitJob> jobs;
  for (Submission& job : jobs_of(*spec, *submission, array)) {
    jobs.push_back({std::move(job), text.text, text.submitter, *run_as});
  }
  return jobs;
}

}  // namespace orrery

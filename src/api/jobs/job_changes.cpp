#include "api/jobs/job_changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/orrery_service.hpp"
#include "api/views.hpp"
#include "base/format/field_writer.hpp"

namespace orrery {
namespace {

using CallPtr = std::shared_ptr<Call>;

const MethodRule kChangesJob{Role::kUser, Effect::kChange, Scope::kJob};

/// The hold that a caller may lay on a job: an operator's is not replaced by an owner's.
JobHold hold_by(const Caller& caller, const Job& job) {
  if (caller.role >= Role::kOperator && caller.name != job.submitter) return JobHold::kOperator;
  return job.hold == JobHold::kOperator ? JobHold::kOperator : JobHold::kOwner;
}

/// Returns the seconds of a request, none for 0; `now` where it is absent.
Result<std::optional<Duration>> changed_length(std::string_view field, std::optional<double> asked,
                                               const std::optional<Duration>& now) {
  constexpr double kLongest = 100.0 * 365 * 86'400;
  if (!asked) return now;
  constexpr double kShortest = 1e-3;
  if (*asked != 0 && !(*asked >= kShortest && *asked <= kLongest)) {
    return input_error({}, fmt::format("{}: {} is not a number of seconds, expected 0 (none) to {}",
                                       field, *asked, kLongest));
  }
  if (*asked == 0) return std::optional<Duration>();
  return std::optional(Duration::from_seconds(*asked));
}

/// Returns the new values of a job; its class is not looked up yet.
Result<ChangeJob> changed_job(const v1::ChangeJobRequest& request, const Job& job) {
  constexpr std::int32_t kPriorityMost = 1000;
  const JobRequest& now = job.submission->request;
  ChangeJob change{.job = job.id, .priority = now.priority};
  if (!request.has_priority() && !request.has_time_limit_s() && !request.has_estimate_s()) {
    return input_error({}, "nothing to change: expected priority, time_limit_s or estimate_s");
  }
  if (request.has_priority()) change.priority = request.priority();
  if (change.priority < -kPriorityMost || change.priority > kPriorityMost) {
    return input_error({}, fmt::format("priority: {}, expected -1000 to 1000", change.priority));
  }
  const auto asked = [](bool has, double value) {
    return has ? std::optional(value) : std::nullopt;
  };
  Result<std::optional<Duration>> limit = changed_length(
      "time_limit_s", asked(request.has_time_limit_s(), request.time_limit_s()), now.time_limit);
  if (!limit) return forward_error(limit);
  Result<std::optional<Duration>> estimate = changed_length(
      "estimate_s", asked(request.has_estimate_s(), request.estimate_s()), now.estimate);
  if (!estimate) return forward_error(estimate);
  change.time_limit = *limit;
  change.estimate = *estimate;
  if (change.time_limit && change.estimate && *change.estimate > *change.time_limit) {
    return input_error({}, fmt::format("estimate: {} is longer than the time limit, {}",
                                       change.estimate->text(), change.time_limit->text()));
  }
  return change;
}

class JobChanges {
 public:
  explicit JobChanges(Controller& controller) : controller_(controller) {}

  void cancel(const v1::CancelJobRequest& request, const CallPtr& call) const;
  void hold(const v1::HoldJobRequest& request, const CallPtr& call) const;
  void release(const v1::ReleaseJobRequest& request, const CallPtr& call) const;
  void requeue(const v1::RequeueJobRequest& request, const CallPtr& call) const;
  void change(const v1::ChangeJobRequest& request, const CallPtr& call) const;
  void update(const v1::UpdateServiceRequest& request, const CallPtr& call) const;

 private:
  template <class Request>
  [[nodiscard]] std::optional<JobId> live_job(const Request& request, const CallPtr& call) const;
  void command_job(JobId job, InputKind what, const std::string& request_id,
                   const CallPtr& call) const;
  [[nodiscard]] const State& state() const { return controller_.state(); }

  Controller& controller_;
};

/// Returns none where there is no such job, or it has ended; the call was finished with that error.
template <class Request>
std::optional<JobId> JobChanges::live_job(const Request& request, const CallPtr& call) const {
  const std::optional<JobId> job = find_job(controller_, request.id(), *call);
  if (!job || !ended(state().job(*job).phase)) return job;
  call->finish(
      {CallCode::kFailedPrecondition, fmt::format("job {} has already ended ({})", job->value(),
                                                  word_of(state().job(*job).phase))});
  return std::nullopt;
}

void JobChanges::command_job(JobId job, InputKind what, const std::string& request_id,
                             const CallPtr& call) const {
  controller_.command(std::move(what), request_id, [this, job, call](Result<JobId> done) {
    if (!done) {
      return call->finish({CallCode::kFailedPrecondition,
                           fmt::format("job {}: {}", job.value(), done.error().text())});
    }
    call->reply(job_view(controller_, job, JobDetail::kRow));
  });
}

void JobChanges::hold(const v1::HoldJobRequest& request, const CallPtr& call) const {
  const std::optional<JobId> job = live_job(request, call);
  if (!job) return;
  const JobHold by = hold_by(call->caller(), state().job(*job));
  command_job(*job, HoldJob{*job, by}, own_request_id(request.request_id(), *call), call);
}

void JobChanges::release(const v1::ReleaseJobRequest& request, const CallPtr& call) const {
  const std::optional<JobId> job = live_job(request, call);
  if (!job) return;
  if (state().job(*job).hold == JobHold::kOperator && call->caller().role < Role::kOperator) {
    return call->finish(
        {CallCode::kPermissionDenied,
         fmt::format("job {} is held by an operator: only an operator can release it",
                     job->value())});
  }
  command_job(*job, HoldJob{*job, JobHold::kNone}, own_request_id(request.request_id(), *call),
              call);
}

void JobChanges::requeue(const v1::RequeueJobRequest& request, const CallPtr& call) const {
  const std::optional<JobId> job = live_job(request, call);
  if (!job) return;
  const Job& known = state().job(*job);
  const JobHold hold = request.hold() ? hold_by(call->caller(), known) : JobHold::kNone;
  const std::uint32_t attempt = request.attempt() == 0 ? known.attempt : request.attempt();
  command_job(*job, RequeueJob{*job, attempt, hold}, own_request_id(request.request_id(), *call),
              call);
}

void JobChanges::change(const v1::ChangeJobRequest& request, const CallPtr& call) const {
  const std::optional<JobId> job = live_job(request, call);
  if (!job) return;
  const Job& known = state().job(*job);
  Result<ChangeJob> change = changed_job(request, known);
  if (!change) return call->fail(change.error());
  const std::optional<Duration> limit = known.submission->request.time_limit;
  const bool longer = limit && (!change->time_limit || *change->time_limit > *limit);
  if (longer && holds_devices(known.phase) && call->caller().role < Role::kOperator) {
    return call->finish({CallCode::kPermissionDenied,
                         fmt::format("job {} runs: only an operator raises its time limit, {}",
                                     job->value(), limit->text())});
  }
  if (Status room = controller_.submissions().admission(call->caller().tenant); !room) {
    return call->finish({CallCode::kResourceExhausted, room.error().text()});
  }
  controller_.submissions().classify(*change);
  command_job(*job, *change, own_request_id(request.request_id(), *call), call);
}

void JobChanges::update(const v1::UpdateServiceRequest& request, const CallPtr& call) const {
  const std::optional<JobId> job = find_job(controller_, request.id(), *call);
  if (!job) return;
  if (Status room = controller_.submissions().admission(call->caller().tenant); !room) {
    return call->finish({CallCode::kResourceExhausted, room.error().text()});
  }
  controller_.submissions().update(job_text(request.spec(), request.file(), call->caller()), *job,
                                   own_request_id(request.request_id(), *call),
                                   [call](const Result<std::vector<JobId>>& of) {
                                     if (!of) return call->fail(of.error());
                                     v1::UpdateServiceResponse response;
                                     response.set_id(of->front().value());
                                     call->reply(response);
                                   });
}

void JobChanges::cancel(const v1::CancelJobRequest& request, const CallPtr& call) const {
  const std::optional<JobId> job = live_job(request, call);
  if (!job) return;
  controller_.command(CancelJob{*job}, own_request_id(request.request_id(), *call),
                      [call](Result<JobId> done) {
                        if (!done) return call->fail(done.error());
                        call->reply(v1::CancelJobResponse());
                      });
}

}  // namespace

void add_job_changes(MethodTable& table, Controller& controller) {
  const auto add = [&]<class Request>(const std::string& name,
                                      void (JobChanges::*method)(const Request&, const CallPtr&)
                                          const) {
    table.add<Request>(
        name, kChangesJob,
        [self = JobChanges(controller), method](const Request& request, const CallPtr& call) {
          (self.*method)(request, call);
        });
  };
  add("CancelJob", &JobChanges::cancel);
  add("HoldJob", &JobChanges::hold);
  add("ReleaseJob", &JobChanges::release);
  add("RequeueJob", &JobChanges::requeue);
  add("ChangeJob", &JobChanges::change);
  add("UpdateService", &JobChanges::update);
}

}  // namespace orrery

#include "executor/jobs/submissions.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "executor/services/service_change.hpp"
#include "executor/services/service_names.hpp"

namespace orrery {
namespace {

/// The most bytes submitted and not yet durable; beyond it no new work is accepted.
constexpr std::size_t kWaitingBytesMax = std::size_t{64} << 20;

/// Returns the request id of a job of a text with several jobs.
std::string id_of_job(const std::string& request_id, std::size_t index) {
  return index == 0 || request_id.empty() ? request_id : fmt::format("{}#{}", request_id, index);
}

/// Collects the answers to the jobs of one text.
struct Gathered {
  Submissions::Answered answered;
  std::vector<JobId> jobs;
  Status refused;
  std::size_t left = 0;

  void add(const Answer& answer) {
    if (answer.status) {
      jobs.push_back(answer.job);
    } else {
      refused = answer.status;
    }
    if (--left > 0) return;
    if (refused) return answered(std::move(jobs));
    answered(tl::unexpected(refused.error()));
  }
};

}  // namespace

Submissions::Submissions(const Options& options) : options_(options) { limits_changed(); }

Status Submissions::admission(const std::string& tenant) {
  if (Status running = options_.host.check_running(); !running) return running;
  if (Status room = options_.store.admission(); !room) return room;
  if (options_.store.log().waiting_bytes() > kWaitingBytesMax) {
    return environment_error("the controller's disk is too slow for what is asked");
  }
  const double jobs_max = options_.settings.jobs_max;
  if (static_cast<double>(state().jobs() - state().ended_jobs()) >= jobs_max) {
    return environment_error(fmt::format("jobs_max is reached: {:g} have not ended", jobs_max));
  }
  return limits_.admit(tenant, options_.host.now());
}

std::vector<JobId> Submissions::answered_before(const std::string& request_id) const {
  std::vector<JobId> jobs;
  if (request_id.empty()) return jobs;
  while (const std::optional<JobId> job = state().answered(id_of_job(request_id, jobs.size()))) {
    jobs.push_back(*job);
  }
  return jobs;
}

Result<std::vector<SubmitJob>> Submissions::read(const JobText& text) {
  LiveSetup& setup = options_.setup;
  const std::size_t works = setup.intake().works();
  Result<std::vector<SubmitJob>> jobs = setup.intake().read(text, state(), options_.host.now());
  if (setup.intake().works() > works) options_.store.log().put_texts(setup.work_text(text.text));
  return jobs;
}

Result<std::string> Submissions::appraise(const JobText& text, const std::string& request_id) {
  const auto names = [&](const char* key) { return text.text.find(key) != std::string::npos; };
  const bool asks = names("deadline") || names("budget");
  if (!asks || options_.host.is_halted() || !answered_before(request_id).empty()) {
    return std::string();
  }
  Result<std::vector<SubmitJob>> jobs = read(text);
  if (!jobs) return forward_error(jobs);
  return options_.setup.intake().appraise(jobs->front().submission, state(), options_.host.now());
}

void Submissions::classify(ChangeJob& change) {
  JobRequest request = state().job(change.job).submission->request;
  request.time_limit = change.time_limit;
  request.estimate = change.estimate;
  change.class_id = options_.setup.intake().class_of(request);
}

void Submissions::refuse(Error why, const Answered& answered) {
  options_.host.control().after_durable(
      [why = std::move(why), answered] { answered(tl::unexpected(why)); });
}

void Submissions::update(const JobText& text, JobId replica, const std::string& request_id,
                         Answered answered) {
  LiveHost& host = options_.host;
  if (Status running = host.check_running(); !running) return refuse(running.error(), answered);
  const Result<std::vector<SubmitJob>> jobs = read(text);
  if (!jobs) return refuse(jobs.error(), answered);
  if (Status possible = options_.agents.check_user(jobs->front().run_as); !possible) {
    return refuse(possible.error(), answered);
  }
  const double left =
      options_.settings.jobs_max - static_cast<double>(state().jobs() - state().ended_jobs());
  if (static_cast<double>(jobs->size()) > left) {
    return refuse(
        {ErrorKind::kInfeasible,
         fmt::format("{} replicas are asked for, and jobs_max leaves room for {:.0f} jobs",
                     jobs->size(), left),
         {}},
        answered);
  }
  Result<UpdateService> change = service_change(state(), replica, text, *jobs);
  if (!change) return refuse(change.error(), answered);
  host.handle(*std::move(change), request_id, [answered](const Answer& answer) {
    if (!answer.status) return answered(tl::unexpected(answer.status.error()));
    answered(std::vector{answer.job});
  });
  host.changed();
}

void Submissions::submit(const JobText& text, const std::string& request_id, Answered answered) {
  LiveHost& host = options_.host;
  if (Status running = host.check_running(); !running) return refuse(running.error(), answered);
  if (std::vector<JobId> known = answered_before(request_id); !known.empty()) {
    return host.control().after_durable(
        [known = std::move(known), answered = std::move(answered)] { answered(known); });
  }
  Result<std::vector<SubmitJob>> jobs = read(text);
  if (!jobs) return refuse(jobs.error(), answered);
  Status possible = options_.agents.check_user(jobs->front().run_as);
  if (possible) possible = check_service_names(state(), text, jobs->front().submission.request);
  if (!possible) return refuse(possible.error(), answered);
  auto all = std::make_shared<Gathered>(Gathered{std::move(answered), {}, {}, jobs->size()});
  // The jobs of one text become durable together.
  LiveLog& log = options_.store.log();
  log.hold();
  for (std::size_t i = 0; i < jobs->size(); ++i) {
    host.handle(std::move((*jobs)[i]), id_of_job(request_id, i),
                [all](const Answer& answer) { all->add(answer); });
  }
  log.release();
  host.changed();
}

}  // namespace orrery

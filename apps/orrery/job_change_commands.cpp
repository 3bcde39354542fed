// orrery cancel, hold, release, requeue, change
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <utility>

#include "apps/orrery/command.hpp"
#include "apps/orrery/job_options.hpp"
#include "apps/orrery/output.hpp"
#include "base/format/field_writer.hpp"
#include "base/text/count_text.hpp"
#include "base/text/text_table.hpp"
#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/job_selection.hpp"
#include "verbs/option_text.hpp"

namespace orrery {
namespace {

/// One change of one job; the controller has made it durable.
using JobChange = std::function<Status(LiveSession&, std::uint64_t)>;

struct ChangeOptions {
  JobSelection selection;
  bool dry_run = false;
  bool hold = false;
  std::optional<std::int32_t> priority;
  std::string time_limit;
  std::string estimate;
};

/// A verb: "cancel", "cancelled", what it does, and lines of examples.
struct ChangeWords {
  std::string_view verb;
  std::string_view done;
  const char* what = "";
  const char* examples = "";
};

template <class Request, class Response = v1::Job>
Status call_for(LiveSession& session, const char* method, Request request, std::uint64_t id) {
  request.set_request_id(session.request_id());
  request.set_id(id);
  const auto done = session.client().call<Response>(method, request);
  return done ? Status() : tl::unexpected(done.error());
}

Result<v1::Job> get_job(LiveSession& session, std::uint64_t id) {
  v1::GetJobRequest asked;
  asked.set_id(id);
  return session.client().call<v1::Job>("GetJob", asked);
}

/// Requeues a job once: an attempt that has ended meanwhile is not ended again by a repeated call.
Status requeue(LiveSession& session, std::uint64_t id, const ChangeOptions& options) {
  const Result<v1::Job> job = get_job(session, id);
  if (!job) return tl::unexpected(job.error());
  v1::RequeueJobRequest request;
  request.set_hold(options.hold);
  request.set_attempt(job->attempt());
  return call_for(session, "RequeueJob", request, id);
}

/// Errors: the job waits for something else than a release, or runs.
Status check_held(const v1::Job& job) {
  if (!job.hold().empty() || job.has_ended()) return {};
  return infeasible(fmt::format("job {} is not held: {}", job.id(),
                                job.waiting().empty() ? "it is " + job.phase() : job.waiting()));
}

Status release(LiveSession& session, std::uint64_t id) {
  const Result<v1::Job> job = get_job(session, id);
  if (!job) return tl::unexpected(job.error());
  if (Status held = check_held(*job); !held) return held;
  return call_for(session, "ReleaseJob", v1::ReleaseJobRequest(), id);
}

/// Seconds of an option; "none" is 0.
Result<double> length_option(std::string_view option, const std::string& text) {
  if (text == "none") return 0.0;
  Result<Seconds> length = quantity_option<Seconds>(option, text);
  if (!length) return forward_error(length);
  return length->value();
}

Result<v1::ChangeJobRequest> change_request(const ChangeOptions& asked) {
  v1::ChangeJobRequest request;
  if (!asked.priority && asked.time_limit.empty() && asked.estimate.empty()) {
    return input_error({}, "nothing to change: expected --priority, --time-limit or --estimate");
  }
  if (asked.priority) request.set_priority(*asked.priority);
  if (!asked.time_limit.empty()) {
    Result<double> limit = length_option("time-limit", asked.time_limit);
    if (!limit) return forward_error(limit);
    request.set_time_limit_s(*limit);
  }
  if (!asked.estimate.empty()) {
    Result<double> estimate = length_option("estimate", asked.estimate);
    if (!estimate) return forward_error(estimate);
    request.set_estimate_s(*estimate);
  }
  return request;
}

/// Collects the results for the jobs of a verb; with --dry-run, the expected ones.
class ChangeReport {
 public:
  ChangeReport(const CommandOptions& options, const ChangeOptions& asked, const ChangeWords& words)
      : shows_text_(options.output == OutputFormat::kText),
        dry_run_(asked.dry_run),
        words_(words) {}

  void add_done(const SelectedJob& job) {
    done_.push_back(fmt::format("{}", job.id));
    if (dry_run_) {
      table_.add({fmt::format("{}", job.id), job.name, job.phase});
    } else if (shows_text_) {
      print_text(fmt::format("{} {}\n", job.text(), words_.done));
    }
  }

  void add_failed(const SelectedJob& job, const Error& error) {
    failed_.push_back({{"id", fmt::format("{}", job.id)}, {"why", error.text()}});
    // The controller names the job by its number.
    const std::string name = job.name.empty() ? "" : one_line(job.name) + ": ";
    print_message(fmt::format("orrery: {}{}\n", name, error.text()));
  }

  void add_unknown(const UnknownJob& job) {
    failed_.push_back({{"name", job.name}, {"why", job.error.text()}});
    print_message(fmt::format("orrery: {}\n", one_line(job.error.text())));
  }

  /// Prints the rest. Errors: one or more could not be changed.
  [[nodiscard]] Status finish() const {
    const std::size_t all = done_.size() + failed_.size();
    if (!shows_text_) {
      const std::string key =
          dry_run_ ? fmt::format("would_{}", words_.verb) : std::string(words_.done);
      print_json({{key, done_}, {"failed", failed_}});
    } else if (dry_run_) {
      print_shown(table_.text());
      print_text(fmt::format("{} would be {}\n", counted(done_.size(), "job"), words_.done));
    } else if (all == 0) {
      print_text("no job matches\n");
    }
    if (failed_.empty()) return {};
    return infeasible(
        fmt::format("{} of {} could not be {}", failed_.size(), counted(all, "job"), words_.done));
  }

 private:
  const bool shows_text_;
  const bool dry_run_;
  const ChangeWords& words_;
  TextTable table_{{{"ID", Align::kRight}, {"NAME"}, {"STATE"}}};
  Json done_ = Json::array();
  Json failed_ = Json::array();
};

/// Fills in what is not known of a job that was named by its number. Errors: the verb would refuse
/// it.
Status look_up(LiveSession& session, const ChangeWords& words, SelectedJob& job) {
  const Result<v1::Job> found = get_job(session, job.id);
  if (!found) return tl::unexpected(found.error());
  if (found->has_ended()) {
    return infeasible(fmt::format("job {} has already ended ({})", job.id, found->phase()));
  }
  job.name = found->name();
  job.phase = found->phase();
  return words.verb == "release" ? check_held(*found) : Status();
}

/// Changes each job and reports it. Errors: one or more could not be changed.
Status change_all(const CommandOptions& options, const ChangeOptions& asked,
                  const ChangeWords& words, const JobChange& change) {
  if (Status good = check(asked.selection, words.verb); !good) return good;
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  Result<SelectedJobs> selected = selected_jobs(**session, asked.selection);
  if (!selected) return forward_error(selected);
  if (selected->jobs.empty() && selected->unknown.size() == 1) {
    return tl::unexpected(selected->unknown.front().error);
  }
  ChangeReport report(options, asked, words);
  for (const UnknownJob& job : selected->unknown) report.add_unknown(job);
  for (SelectedJob& job : selected->jobs) {
    const Status changed =
        asked.dry_run ? look_up(**session, words, job) : change(**session, job.id);
    if (changed) {
      report.add_done(job);
    } else {
      report.add_failed(job, changed.error());
    }
  }
  return report.finish();
}

/// The change that the options ask for. Errors: an option that makes no sense.
using ChangeMaker = std::function<Result<JobChange>(const ChangeOptions&)>;

class ChangeVerbs {
 public:
  ChangeVerbs(CLI::App& app, CommandOptions& options, Verb& chosen)
      : app_(app), options_(options), chosen_(chosen) {}

  struct Added {
    CLI::App& verb;
    ChangeOptions& asked;
  };
  /// Adds a verb that makes one change for each selected job.
  Added add(const ChangeWords& words, const ChangeMaker& make) {
    auto asked = std::make_shared<ChangeOptions>();
    CLI::App& verb = *app_.add_subcommand(std::string(words.verb), words.what);
    add_job_selection(verb, asked->selection);
    verb.add_flag("--dry-run", asked->dry_run, "only list the jobs that would be affected");
    verb.footer(
        fmt::format("The result for each job is printed; the exit status is 1 if any job could not "
                    "be {}.\nExamples:\n{}",
                    words.done, words.examples));
    verb.callback([&options = options_, &chosen = chosen_, asked, words, make] {
      chosen = [&options, asked, words, make]() -> Status {
        const Result<JobChange> change = make(*asked);
        if (!change) return tl::unexpected(change.error());
        return change_all(options, *asked, words, *change);
      };
    });
    return {verb, *asked};
  }

 private:
  CLI::App& app_;
  CommandOptions& options_;
  Verb& chosen_;
};

/// Makes a change without further options.
template <class Request, class Response = v1::Job>
ChangeMaker plain(const char* method) {
  return [method](const ChangeOptions&) -> Result<JobChange> {
    return [method](LiveSession& session, std::uint64_t id) {
      return call_for<Request, Response>(session, method, {}, id);
    };
  };
}

Result<JobChange> make_release(const ChangeOptions&) { return release; }

Result<JobChange> make_requeue(const ChangeOptions& asked) {
  return [asked](LiveSession& session, std::uint64_t id) { return requeue(session, id, asked); };
}

Result<JobChange> make_change(const ChangeOptions& asked) {
  Result<v1::ChangeJobRequest> request = change_request(asked);
  if (!request) return forward_error(request);
  return [request = *request](LiveSession& session, std::uint64_t id) {
    return call_for(session, "ChangeJob", request, id);
  };
}

constexpr ChangeWords kCancel{"cancel", "cancelled", "cancel jobs",
                              "  orrery cancel 7 8\n  orrery cancel sweep 'sweep[3]'\n"
                              "  orrery cancel --tenant lab --state queued --dry-run"};
constexpr ChangeWords kHold{"hold", "held",
                            "prevent jobs from starting until they are released; a running job "
                            "continues, and is held when it is next queued",
                            "  orrery hold 7\n  orrery hold --user ada --state queued"};
constexpr ChangeWords kRelease{"release", "released", "release held jobs, so that they may start",
                               "  orrery release 7\n  orrery release --user ada"};
constexpr ChangeWords kRequeue{
    "requeue", "requeued",
    "stop the running attempt of jobs, with time for a checkpoint, and queue the jobs again",
    "  orrery requeue 7\n  orrery requeue 7 --hold"};
constexpr ChangeWords kChange{
    "change", "changed", "change the priority, time limit or estimate of jobs that have not ended",
    "  orrery change 7 --priority 50\n  orrery change sweep --time-limit '2 h'\n"
    "  orrery change 7 --estimate none"};

}  // namespace

void add_job_change_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  ChangeVerbs verbs(app, options, chosen);
  verbs.add(kCancel, plain<v1::CancelJobRequest, v1::CancelJobResponse>("CancelJob"));
  verbs.add(kHold, plain<v1::HoldJobRequest>("HoldJob"));
  verbs.add(kRelease, make_release);
  const auto again = verbs.add(kRequeue, make_requeue);
  again.verb.add_flag("--hold", again.asked.hold, "hold the requeued jobs");
  const auto change = verbs.add(kChange, make_change);
  change.verb
      .add_option("--priority", change.asked.priority, "priority of the job, from -1000 to 1000")
      ->type_name("N");
  change.verb
      .add_option("--time-limit", change.asked.time_limit,
                  "time limit of each attempt, such as \"90 min\", or none; only an operator can "
                  "raise the limit of a running job")
      ->type_name("TIME");
  change.verb
      .add_option("--estimate", change.asked.estimate,
                  "estimate of the run time, such as \"90 min\", or none")
      ->type_name("TIME");
}

}  // namespace orrery

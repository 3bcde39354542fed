// orrery cancel, hold, release, requeue, change
#include <fmt/format.h>

#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/job_options.hpp"
#include "apps/orrery/output.hpp"
#include "verbs/jobs/job_change.hpp"

namespace orrery {
namespace {

/// Changes each job and reports it. Errors: one or more could not be changed.
Status change_all(const CommandOptions& options, const JobChange& asked) {
  if (Status good = check(asked); !good) return good;
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  const Result<JobChangeReport> report = change_jobs(**session, asked, live_progress(options));
  if (!report) return tl::unexpected(report.error());
  print_answer(options, report->rest());
  return report->status();
}

/// What --help says of a verb: what it does, and lines of examples.
struct ChangeHelp {
  const char* what = "";
  const char* examples = "";
};

class ChangeVerbs {
 public:
  ChangeVerbs(CLI::App& app, CommandOptions& options, Verb& chosen)
      : app_(app), options_(options), chosen_(chosen) {}

  struct Added {
    CLI::App& verb;
    JobChange& asked;
  };
  /// Adds a verb that makes one change for each selected job.
  Added add(JobChangeKind kind, const ChangeHelp& help) {
    auto asked = std::make_shared<JobChange>();
    asked->kind = kind;
    const JobChangeWords words = words_of(kind);
    CLI::App& verb = *app_.add_subcommand(std::string(words.verb), help.what);
    add_job_selection(verb, asked->selection);
    verb.add_flag("--dry-run", asked->dry_run, "only list the jobs that would be affected");
    verb.footer(
        fmt::format("The result for each job is printed; the exit status is 1 if any job could not "
                    "be {}.\nExamples:\n{}",
                    words.done, help.examples));
    verb.callback([&options = options_, &chosen = chosen_, asked] {
      chosen = [&options, asked] { return change_all(options, *asked); };
    });
    return {verb, *asked};
  }

 private:
  CLI::App& app_;
  CommandOptions& options_;
  Verb& chosen_;
};

constexpr ChangeHelp kCancel{"cancel jobs",
                             "  orrery cancel 7 8\n  orrery cancel sweep 'sweep[3]'\n"
                             "  orrery cancel --tenant lab --state queued --dry-run"};
constexpr ChangeHelp kHold{
    "prevent jobs from starting until they are released; a running job "
    "continues, and is held when it is next queued",
    "  orrery hold 7\n  orrery hold --user ada --state queued"};
constexpr ChangeHelp kRelease{"release held jobs, so that they may start",
                              "  orrery release 7\n  orrery release --user ada"};
constexpr ChangeHelp kRequeue{
    "stop the running attempt of jobs, with time for a checkpoint, and queue the jobs again",
    "  orrery requeue 7\n  orrery requeue 7 --hold"};
constexpr ChangeHelp kChange{
    "change the priority, time limit or estimate of jobs that have not ended",
    "  orrery change 7 --priority 50\n  orrery change sweep --time-limit '2 h'\n"
    "  orrery change 7 --estimate none"};

}  // namespace

void add_job_change_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  ChangeVerbs verbs(app, options, chosen);
  verbs.add(JobChangeKind::kCancel, kCancel);
  verbs.add(JobChangeKind::kHold, kHold);
  verbs.add(JobChangeKind::kRelease, kRelease);
  const auto again = verbs.add(JobChangeKind::kRequeue, kRequeue);
  again.verb.add_flag("--hold", again.asked.hold, "hold the requeued jobs");
  const auto change = verbs.add(JobChangeKind::kChange, kChange);
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

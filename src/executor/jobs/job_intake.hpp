// executor/jobs/job_intake.hpp - turns the text of a job into control's input: one submission, or
// one for each job of an array.
//
// One for a controller's life. A log keeps ids of request classes and of kinds of work; their
// meaning follows from the texts of jobs, so the intake registers those that a log uses before it
// gives out new ones. One thread. Cost of a text: parsing and resolving, some 0.1 ms.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/control_facts.hpp"
#include "control/input.hpp"
#include "control/state/state.hpp"

namespace orrery {

/// A job as a user submits it.
struct JobText {
  std::string text;  ///< YAML or JSON
  std::string file;  ///< its name, for errors
  /// The submitter's tenant: if the text names only the default it is the job's, and any tenant
  /// that is not this one or below it is refused. Empty: as the text says.
  std::string tenant = {};
  std::string submitter = {};  ///< name of the submitter's user
  /// POSIX user that the submitter's jobs run as; empty: the one of the job's tenant, if any.
  std::string run_as = {};
  /// Which tenants give their `run_as` to a submitter that has none: those that `tenant` covers,
  /// or, for an admin, all. A tenant's user is for its members, not for everyone that may name the
  /// tenant.
  enum class TenantUsers : std::uint8_t { kOwn, kAll } tenant_users = TenantUsers::kOwn;
};

/// Whether a tenant path is `above`, or one below it; every path is below "".
[[nodiscard]] bool is_within(std::string_view tenant, std::string_view above);

class JobIntake {
 public:
  /// `facts` outlives it.
  explicit JobIntake(ControlFacts& facts) : facts_(&facts) {}
  /// Resolves jobs against other facts from now on: those of a changed fleet.
  void use(ControlFacts& facts) { facts_ = &facts; }

  /// Registers a text that once brought new work; called in the original order, before read().
  /// Errors: this program cannot read the text any more.
  [[nodiscard]] Status take_up_work(const std::string& text);
  /// Registers the classes and arrays of the jobs that a log has.
  void take_up_jobs(const State& state);

  /// Returns the submissions of a text in order; those of an array have a unique `array`. Errors:
  /// of the text, with position; kInfeasible: this fleet could never run the job.
  [[nodiscard]] Result<std::vector<SubmitJob>> read(const JobText& text, const State& state,
                                                    Instant now);
  /// Returns how the deadline and the budget of a job submitted now are kept, or that they are
  /// likely to be missed; empty: it has neither, or its length is unknown. Error (kInfeasible): not
  /// even an idle fleet could keep them.
  [[nodiscard]] Result<std::string> appraise(const Submission& job, const State& state,
                                             Instant now) const;
  /// The number of kinds of work known so far. A text that brings a new kind, even if refused, must
  /// be in the log's texts, after the earlier ones, before any later job is in the log.
  [[nodiscard]] std::size_t works() const;

  /// Returns the requests of a text's jobs on the present fleet, in their order. `like` is one of
  /// them; its tenant, deadline and array are theirs. Errors: of the text; kInfeasible: this fleet
  /// could never run them.
  [[nodiscard]] Result<std::vector<JobRequest>> resolve_again(const Job& like, const State& state,
                                                              Instant now);

  /// Returns the class of a request: a new one if no equal request was seen.
  [[nodiscard]] ClassId class_of(const JobRequest& request);

 private:
  /// Returns the request of a spec on the present fleet, with its class.
  [[nodiscard]] Result<JobRequest> resolve(const JobSpec& spec, const State& state, Instant now);
  /// `tenant` is the submitter's: its jobs wait only for jobs that the submitter may see.
  [[nodiscard]] Result<Submission> submission_of(const JobSpec& spec, const State& state,
                                                 Instant now, std::string_view tenant);
  [[nodiscard]] static Status add_dependencies(const JobSpec& spec, const State& state,
                                               std::string_view tenant, Submission& submission);

  ControlFacts* facts_;
  std::uint32_t arrays_ = 0;
};

}  // namespace orrery

// executor/job_intake.hpp - from the text of a job to what control takes: one submission, or one
// for each job of an array.
//
// One for a controller's life. A log keeps ids of classes of requests and of kinds of work; what
// they stand for follows from the texts of jobs, so it takes up what a log uses before it gives out
// new ones. One thread. Cost of a text: parsing and resolving, some 0.1 ms.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/control_facts.hpp"
#include "control/input.hpp"
#include "control/state.hpp"

namespace orrery {

/// A job as a person hands it in.
struct JobText {
  std::string text;  ///< YAML or JSON
  std::string file;  ///< its name, for errors
  /// The submitter's: where the text names none but the default it is the job's, and any other but
  /// one below it is refused. Empty: as the text says.
  std::string tenant = {};
  std::string submitter = {};  ///< its user's name
  /// POSIX user that the submitter's jobs run as; empty: the one of the job's tenant, if any.
  std::string run_as = {};
  /// Which tenants lend a submitter without a `run_as` their own: those that `tenant` covers, or,
  /// for an admin, each. A tenant's user is its members', and not everyone's who may name it.
  enum class TenantUsers : std::uint8_t { kOwn, kAll } tenant_users = TenantUsers::kOwn;
};

/// Whether a tenant is `above`, by paths, or one below it; everything is below "".
[[nodiscard]] bool is_within(std::string_view tenant, std::string_view above);

class JobIntake {
 public:
  /// `facts` outlives it.
  explicit JobIntake(ControlFacts& facts) : facts_(facts) {}

  /// A text that once brought new work. In the order in which they did, before anything is read.
  /// Errors: this program cannot read it any more.
  [[nodiscard]] Status take_up_work(const std::string& text);
  /// The classes and arrays of the jobs that a log has.
  void take_up_jobs(const State& state);

  /// In the order in which they are to be submitted; those of an array have an `array` that no
  /// other has. Errors of the user's, with position; kInfeasible: nothing of this fleet could ever
  /// run it.
  [[nodiscard]] Result<std::vector<SubmitJob>> read(const JobText& text, const State& state,
                                                    Instant now);
  /// By what the deadline and the budget of a job that is handed in now are kept, or that they are
  /// likely not to be; empty: it has neither, or nothing is known of its length. Error
  /// (kInfeasible): not even a fleet where nothing runs could keep them.
  [[nodiscard]] Result<std::string> appraise(const Submission& job, const State& state,
                                             Instant now) const;
  /// Kinds of work known so far. A text that brings one, be it refused or not, has to be in the
  /// log's texts, after those of its like, before any job that came later is.
  [[nodiscard]] std::size_t works() const;

  /// The class of a request: a new one where none like it was seen.
  [[nodiscard]] ClassId class_of(const JobRequest& request);

 private:
  /// `tenant` is the submitter's: its jobs wait only for jobs that it may see.
  [[nodiscard]] Result<Submission> submission_of(const JobSpec& spec, const State& state,
                                                 Instant now, std::string_view tenant);
  [[nodiscard]] static Status add_dependencies(const JobSpec& spec, const State& state,
                                               std::string_view tenant, Submission& submission);

  ControlFacts& facts_;
  std::uint32_t arrays_ = 0;
};

}  // namespace orrery

// executor/jobs/submissions.hpp - takes the jobs of users into a running controller: checks that
// there is room for them, reads their texts, and hands them to the host.
//
// Owned by the controller, on its loop. A request id makes a repeated call safe: it returns the
// jobs that the first one gave. Invariant: the jobs of one text become durable together, after the
// text if it brought new work. Cost: that of reading the text, some 0.1 ms.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "executor/agents/agent_book.hpp"
#include "executor/controller_settings.hpp"
#include "executor/jobs/job_intake.hpp"
#include "executor/jobs/submit_limits.hpp"
#include "executor/live/live_host.hpp"
#include "executor/live/live_setup.hpp"
#include "executor/log/live_store.hpp"

namespace orrery {

class Submissions {
 public:
  struct Options {
    LiveHost& host;
    LiveSetup& setup;
    LiveStore& store;
    const AgentBook& agents;
    const ControllerSettings& settings;  ///< outlives it; see limits_changed()
  };
  explicit Submissions(const Options& options);

  using Answered = std::function<void(Result<std::vector<JobId>>)>;
  /// Submits the jobs of a text. A repeated call with the same request id returns the same jobs.
  /// `answered` is called once the answer, or what a refusal rests on, is durable.
  void submit(const JobText& text, const std::string& request_id, Answered answered);
  /// Returns JobIntake::appraise() of the jobs of a text that was not submitted yet. A text that
  /// names neither a deadline nor a budget is not read. Errors: those of submit().
  [[nodiscard]] Result<std::string> appraise(const JobText& text, const std::string& request_id);
  /// Updates the service of a replica's job to what a text asks for. `answered` is called with the
  /// job of the service's first replica.
  void update(const JobText& text, JobId replica, const std::string& request_id, Answered answered);
  /// Sets the class that a job has with the new values. Precondition: it has not ended.
  void classify(ChangeJob& change);

  /// Whether there is room for more work, and for one more submission of `tenant` (may be empty);
  /// the error says what is missing.
  [[nodiscard]] Status admission(const std::string& tenant);
  /// The limits in the settings have changed.
  void limits_changed() { limits_.set(options_.settings); }

 private:
  /// Answers with an error that rests on the present state.
  void refuse(Error why, const Answered& answered);
  [[nodiscard]] Result<std::vector<SubmitJob>> read(const JobText& text);
  [[nodiscard]] std::vector<JobId> answered_before(const std::string& request_id) const;
  [[nodiscard]] const State& state() const { return options_.host.state(); }

  Options options_;
  SubmitLimits limits_;
};

}  // namespace orrery

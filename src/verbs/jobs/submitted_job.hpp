// verbs/jobs/submitted_job.hpp - a job on its way from options and files to a running cluster.
//
// Values and functions of one call of a verb.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_answer.hpp"
#include "verbs/schedule/submit_request.hpp"

namespace orrery {

/// The text of a spec, and what to say of it.
struct SubmittedSpec {
  std::string text;
  std::string file;      ///< for errors
  std::string messages;  ///< lines for standard error, for people; empty: nothing
};

/// Makes a spec of a file, a script, or the command behind "--" (`options.command`). Errors
/// (kInput): nothing to submit; a file and a command; arguments behind a file that is no script;
/// those of the file and of the options.
[[nodiscard]] Result<SubmittedSpec> read_submitted_spec(const CommandOptions& options,
                                                        const SubmitOptions& asked);

/// Checks a spec without submitting it. Returns a message on whether deadline and budget can be
/// kept, by the cluster where there is one; "": there is nothing to say. Errors: those of the spec,
/// with lines of its file; the controller refuses the job.
[[nodiscard]] Result<std::string> checked_without_submitting(const CommandOptions& options,
                                                             const SubmittedSpec& spec);

/// Submits the job. Errors: those of the controller, with lines of the spec's file.
[[nodiscard]] Result<v1::SubmitJobResponse> submit_job(LiveSession& session,
                                                       const SubmittedSpec& spec);

/// Returns "job 7 (train) accepted", or the numbers of an array, and the controller's note.
[[nodiscard]] LiveAnswer submitted_answer(const v1::SubmitJobResponse& job);
/// Returns how to get a key for a service with a model; "": the job is none.
[[nodiscard]] std::string key_note(const SubmittedSpec& spec, const v1::SubmitJobResponse& job);
/// Returns the number of the job, or those of an array.
[[nodiscard]] std::vector<std::uint64_t> submitted_numbers(const v1::SubmitJobResponse& job);

}  // namespace orrery

// verbs/cluster/live_words.hpp - jobs and nodes of a running cluster as words that complete a
// command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/v1/orrery.pb.h"
#include "verbs/command_options.hpp"

namespace orrery {

struct CompletionWord {
  std::string word;
  std::string what;  ///< a one-line description; may be empty

  friend bool operator==(const CompletionWord&, const CompletionWord&) = default;
};

enum class LiveWords : std::uint8_t { kJobs, kLiveJobs, kNodes };  ///< kLiveJobs: not ended

/// Returns the numbers of jobs, each with its name and phase.
[[nodiscard]] std::vector<CompletionWord> job_words(const v1::ListJobsResponse& jobs);
/// Returns the names of nodes, each with its health.
[[nodiscard]] std::vector<CompletionWord> node_words(const v1::ListNodesResponse& nodes);

/// Asks the cluster, which is given 2 s for each answer, for words that begin with `begun`. Returns
/// none where it does not answer.
[[nodiscard]] std::vector<CompletionWord> live_words(const CommandOptions& options, LiveWords kind,
                                                     const std::string& begun);

}  // namespace orrery

#include "control/submission.hpp"

#include <algorithm>

namespace orrery {

Dependency dependency_after(const Submission& job, JobId before, JobEnding ending) {
  const auto names = [before](const std::vector<JobId>& list) {
    return std::find(list.begin(), list.end(), before) != list.end();
  };
  if (names(job.after_any)) return Dependency::kMet;
  return names(job.after_notok) == (ending == JobEnding::kOther) ? Dependency::kMet
                                                                 : Dependency::kNever;
}

}  // namespace orrery

// verbs/plan/planned_job.hpp - a job that runs orrery-train, with the fastest layout on machines
// like this one.
//
// Made by `orrery submit --calibration` for one call.
#pragma once

#include <string>

#include "verbs/command_options.hpp"

namespace orrery {

struct JobFile {
  std::string text;
  std::string name;  ///< for errors
};

struct PlannedJob {
  std::string text;  ///< spec of the job, with the layout of its role
  std::string why;   ///< the layouts that were compared, for people
};

/// Plans for the most ranks that the role may have. Values that the training's spec states stay as
/// they are. Errors: a job that is not one role of orrery-train with a spec and a number of
/// accelerators; a layout that is stated already; no layout that can run and fits.
[[nodiscard]] Result<PlannedJob> plan_job(const CommandOptions& options, const JobFile& job,
                                          const std::string& calibration);

}  // namespace orrery

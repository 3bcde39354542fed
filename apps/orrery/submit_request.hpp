// apps/orrery/submit_request.hpp - the job that `orrery submit -- CMD...` means, as the text of a
// spec.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace orrery {

/// The options, as typed.
struct SubmitOptions {
  std::string file;  ///< of a spec; empty: the job is made of the rest
  std::string name;  ///< empty: of the program
  std::uint32_t accelerators = 1;
  std::vector<std::string> types;  ///< empty: any
  std::string tenant = "default";
  std::int32_t priority = 0;
  std::string time_limit;
  std::string framework;
  std::vector<std::string> environment;  ///< NAME=VALUE
  std::string per = "accelerator";
  std::string directory;  ///< empty: the current one
  std::optional<std::uint32_t> restarts;
  std::vector<std::string> after;
  bool wait = false;
  bool dry_run = false;
};

/// A Batch job of one role. Errors (kInput) name the option; what else is wrong with the job is
/// said as of a file.
[[nodiscard]] Result<std::string> command_job_spec(const SubmitOptions& options,
                                                   const std::vector<std::string>& command);

}  // namespace orrery

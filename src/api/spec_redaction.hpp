// api/spec_redaction.hpp - the text of a job's spec for those who may not read its secrets.
//
// Pure; any thread. Cost: parsing and writing one spec, some 0.1 ms.
#pragma once

#include <string>

#include "base/error.hpp"

namespace orrery {

/// The spec with "***" in the place of every value of `launch.environment`. A spec without such
/// values is returned as it was written, any other as this program writes specs. A text that this
/// program cannot read as a spec is not shown: the answer is a comment that says so.
[[nodiscard]] std::string without_environment(const std::string& spec);

/// The refusal of a submission for those who may not read the spec: of an error in it the place
/// alone, "job:6:3: the spec is not accepted", since the rest may quote a secret.
[[nodiscard]] std::string shown_refusal(const Error& error);

/// The same as without_environment() for many who are shown one spec after the other, such as all
/// watchers of an event, or one who is shown all jobs of an array: the newest result is kept. One
/// thread.
class SpecRedaction {
 public:
  [[nodiscard]] const std::string& of(const std::string& spec);

 private:
  std::string spec_;
  std::string redacted_;
};

}  // namespace orrery

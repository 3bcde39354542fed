// api/access/spec_redaction.hpp - the text of a job's spec for callers that may not read its
// secrets.
//
// Pure; any thread. Cost: parsing and writing one spec, some 0.1 ms.
#pragma once

#include <string>

#include "base/error.hpp"

namespace orrery {

/// Returns the spec with "***" in the place of every value of `launch.environment`. A spec without
/// such values is returned as it was written, any other as this program writes specs. A text that
/// this program cannot read as a spec is replaced by a comment that says so.
[[nodiscard]] std::string without_environment(const std::string& spec);

/// Returns the refusal of a submission for callers that may not read the spec: only the place of an
/// error in it, "job:6:3: the spec is not accepted", since the rest may quote a secret.
[[nodiscard]] std::string shown_refusal(const Error& error);

/// Caches the newest result of without_environment(), for many readers of one spec in a row, such
/// as all watchers of an event, or one reader of all jobs of an array. One thread.
class SpecRedaction {
 public:
  [[nodiscard]] const std::string& of(const std::string& spec);

 private:
  std::string spec_;
  std::string redacted_;
};

}  // namespace orrery

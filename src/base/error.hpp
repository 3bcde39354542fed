// base/error.hpp - how an expected failure travels: Result<T> holds a T or an Error.
//
// An Error is for a person that can correct it: it names the thing, the value and what was
// expected, and, for input, the file, line and column. A bug is an ORRERY_ASSERT, a refusal a
// Rejection.
#pragma once

#include <fmt/format.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace orrery {

/// A place in a user's file. Lines and columns count from 1; 0 means unknown.
struct SourcePosition {
  std::string file;
  int line = 0;
  int column = 0;

  /// "file:line:column", "file" when the line is unknown, "" when the file is.
  [[nodiscard]] std::string text() const;

  friend bool operator==(const SourcePosition&, const SourcePosition&) = default;
};

/// The kind of failure; it decides the exit code of the command line.
enum class ErrorKind {
  kInput,        ///< the user's file or argument is wrong: exit 2
  kInfeasible,   ///< the request is well formed but cannot be met: exit 1
  kEnvironment,  ///< a file, socket or other resource failed: exit 1
};

struct Error {
  ErrorKind kind = ErrorKind::kInput;
  std::string message;
  SourcePosition where;

  /// "file:line:column: message", or the message alone.
  [[nodiscard]] std::string text() const;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

[[nodiscard]] tl::unexpected<Error> input_error(SourcePosition where, std::string message);
[[nodiscard]] tl::unexpected<Error> infeasible(std::string message);
[[nodiscard]] tl::unexpected<Error> environment_error(std::string message);

/// Passes an Error of one Result on as the Error of another.
template <class T>
[[nodiscard]] tl::unexpected<Error> forward_error(Result<T>& result) {
  return tl::unexpected<Error>(std::move(result.error()));
}

}  // namespace orrery

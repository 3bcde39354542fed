#include "base/error.hpp"

namespace orrery {

std::string SourcePosition::text() const {
  if (file.empty() || line == 0) return file;
  return fmt::format("{}:{}:{}", file, line, column);
}

std::string Error::text() const {
  const std::string position = where.text();
  return position.empty() ? message : fmt::format("{}: {}", position, message);
}

tl::unexpected<Error> input_error(SourcePosition where, std::string message) {
  return tl::unexpected<Error>(Error{ErrorKind::kInput, std::move(message), std::move(where)});
}

tl::unexpected<Error> infeasible(std::string message) {
  return tl::unexpected<Error>(Error{ErrorKind::kInfeasible, std::move(message), {}});
}

tl::unexpected<Error> environment_error(std::string message) {
  return tl::unexpected<Error>(Error{ErrorKind::kEnvironment, std::move(message), {}});
}

}  // namespace orrery

#include "api/call.hpp"

namespace orrery {

CallStatus status_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kInput:
      return {CallCode::kInvalidArgument, error.text()};
    case ErrorKind::kInfeasible:
      return {CallCode::kFailedPrecondition, error.text()};
    case ErrorKind::kEnvironment:
      return {CallCode::kInternal, error.text()};
  }
  return {CallCode::kInternal, error.text()};
}

}  // namespace orrery

#include "api/grpc/call.hpp"

#include <fmt/format.h>

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

CallStatus too_slow(std::size_t waiting_bytes) {
  return {CallCode::kResourceExhausted,
          fmt::format("the reader is too slow: {} MiB wait for it, and what comes after them is "
                      "left out; read faster, or begin again",
                      waiting_bytes >> 20)};
}

}  // namespace orrery

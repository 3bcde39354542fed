// verbs/service_simulation/request_option.hpp - the requests that an option names: FILE[:FORMAT],
// and which half of them.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "verbs/spec_files.hpp"
#include "workload/requests/request_trace.hpp"

namespace orrery {

struct RequestOption {
  std::string requests;  ///< FILE[:FORMAT]
  std::string half;      ///< "first" or "second"; empty: all
  std::uint64_t seed = 1;
  SpecFiles files = {};  ///< where files are, and the texts of those that are given
};

/// Errors: those of load_requests(); an unknown format or half, naming the option; a half without a
/// request.
[[nodiscard]] Result<RequestTrace> load_request_option(const RequestOption& asked);

}  // namespace orrery

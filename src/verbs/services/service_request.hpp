// verbs/services/service_request.hpp - the service of `orrery serve MODEL`, as the text of a spec.
//
// Functions of one call of a verb; they look at files of this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace orrery {

/// The options, as typed.
struct ServiceOptions {
  std::string artifact;  ///< directory of checkpoints of orrery-train
  std::string name;      ///< empty: that of the directory
  std::string model;     ///< the name that clients ask for; empty: that of the service
  std::string engine = "orrery";
  std::uint32_t replicas = 1;
  std::uint32_t accelerators = 1;  ///< of each replica
  std::vector<std::string> types;  ///< acceptable accelerators; empty: any
  std::string tenant = "default";
};

/// Returns the spec of a service; `arguments` are passed on to its inference engine. Errors
/// (kInput): a model that cannot be served, with what can; those of the options.
[[nodiscard]] Result<std::string> service_spec(const ServiceOptions& options,
                                               const std::vector<std::string>& arguments);

}  // namespace orrery

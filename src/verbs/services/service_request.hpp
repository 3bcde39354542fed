// verbs/services/service_request.hpp - the service of `orrery serve MODEL`, as the text of a spec.
//
// Functions of one call of a verb; they look at files of this machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "workload/revision_spec.hpp"
#include "workload/service_spec.hpp"

namespace orrery {

/// How replicas are replaced, as typed; what is not given stays as it is.
struct RolloutOptions {
  std::optional<std::uint32_t> surge;
  std::optional<std::uint32_t> unavailable;
  std::vector<std::string> canary;  ///< "1%", "10%", "50%"; "none": no canary
  std::string bake;                 ///< "10 min"; empty: not given
  std::vector<std::string> gates;
};

/// Takes over what is given. Error (kInput): a bake that is no time, an unknown gate.
[[nodiscard]] Status take_rollout(const RolloutOptions& options, RolloutSpec& rollout);

/// Takes over latencies as typed: "ttft_p99=800ms". Error (kInput): an unknown key, or no time.
[[nodiscard]] Status take_slo(const std::vector<std::string>& typed, SloSpec& slo);

/// Takes over limits of the number of replicas as typed: "1..8"; "none": it stays. Error (kInput):
/// another form.
[[nodiscard]] Status take_scaling(const std::string& typed, std::optional<ScalingSpec>& scaling);

/// Returns the number of replicas that `wanted` is within the limits.
[[nodiscard]] std::uint32_t replicas_within(const std::optional<ScalingSpec>& scaling,
                                            std::uint32_t wanted);

/// The options, as typed.
struct ServiceOptions {
  std::string artifact;  ///< directory of checkpoints of orrery-train
  std::string name;      ///< empty: that of the directory
  std::string model;     ///< the name that clients ask for; empty: that of the service
  std::string engine = "orrery";
  std::optional<std::uint32_t> replicas;  ///< none: one, or as few as `scale` allows
  std::uint32_t accelerators = 1;         ///< of each replica
  std::vector<std::string> types;         ///< acceptable accelerators; empty: any
  std::string tenant = "default";
  RolloutOptions rollout;
  std::vector<std::string> slo;  ///< as take_slo() reads them
  std::string scale;             ///< as take_scaling() reads it; empty: the number stays
};

/// Returns the absolute path of a model that the engine can serve. Error (kInput): what is wrong
/// with it.
[[nodiscard]] Result<std::string> served_artifact(EngineName engine, const std::string& typed);

/// Returns the spec of a service; `arguments` are passed on to its inference engine. Errors
/// (kInput): a model that cannot be served, with what can; those of the options.
[[nodiscard]] Result<std::string> service_spec(const ServiceOptions& options,
                                               const std::vector<std::string>& arguments);

}  // namespace orrery

// verbs/service_simulation/service_options.hpp - the options of `simulate --serve`, as typed.
//
// Plain values; empty: not given.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/format/field_reader.hpp"
#include "verbs/spec_files.hpp"

namespace orrery {

struct ServiceSimulationOptions {
  struct Arriving {
    std::string file;  ///< FILE[:FORMAT]
    std::string half;  ///< "first" or "second"
    double speed = 1;  ///< at which they arrive
  };
  struct Pace {
    std::string file;          ///< that pace_file.hpp reads
    std::string accelerators;  ///< "h100:16": the type, and how many there are
    std::string model;         ///< of the catalog; empty: that of the spec's work
  };

  struct Trouble {
    std::vector<std::string> crashes;  ///< times at which a replica crashes: "10 min"
    std::string cold_start = "60 s";   ///< of a replica that was ordered or crashed
  };

  std::string serve;  ///< a Serve file
  Arriving requests;
  Pace pace;
  Trouble trouble;
  std::uint32_t replicas = 0;
  std::uint32_t gateways = 1;
  std::string scale;            ///< "1..8" or "none", in place of the spec's; empty: the spec's
  std::uint32_t kv_tokens = 0;  ///< that a replica's cache holds; 0: as its machine or engine has
  std::string policies;  ///< of the router, separated by commas, or "all"; empty: its default
  std::uint64_t seed = 1;
  std::string out;  ///< directory of requests.jsonl, requests-POLICY.csv and summary.json
  SpecFiles files;
};

/// The options that decide a run, under the names of the command line, for the cells of a study.
template <class Visitor, SameStruct<ServiceSimulationOptions> Self>
void describe(Visitor& visitor, Self& o) {
  visitor.required("serve", o.serve);
  visitor.required("requests", o.requests.file);
  visitor.optional("half", o.requests.half);
  visitor.optional("speed", o.requests.speed);
  visitor.optional("pace", o.pace.file);
  visitor.optional("accelerators", o.pace.accelerators);
  visitor.optional("model", o.pace.model);
  visitor.optional("replicas", o.replicas);
  visitor.optional("gateways", o.gateways);
  visitor.optional("scale", o.scale);
  visitor.optional("kv_tokens", o.kv_tokens);
  visitor.optional("crash", o.trouble.crashes);
  visitor.optional("cold_start", o.trouble.cold_start);
  visitor.optional("policy", o.policies);
  visitor.optional("seed", o.seed);
}

}  // namespace orrery

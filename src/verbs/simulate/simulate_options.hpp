// verbs/simulate/simulate_options.hpp - the options of the verb `simulate`, grouped by what they
// belong to.
//
// The setup of a record and the cells of a study have them under the names of the command line.
// Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/format/field_reader.hpp"
#include "verbs/spec_files.hpp"

namespace orrery {

/// The options as typed; empty: not given.
struct SimulateOptions {
  enum class Flag : std::uint8_t { kNo, kYes };

  struct Machines {
    std::string fleet;
    std::string accelerators;
    std::string price;  ///< how the machines of `accelerators` are paid
  };
  struct RecordedTrace {
    std::string file;
    std::string format;
    std::vector<std::string> rows;  ///< "column=value": only these
    std::string from;
    std::string to;
    Flag bad_rows = Flag::kNo;  ///< yes: counted and left out
    Flag map = Flag::kNo;       ///< yes: models, kinds and ranges by the committed mapping
    std::string throughputs;
  };
  struct GeneratedTrace {
    std::string style;
    std::uint32_t jobs = 0;  ///< 0: as many as `span` has
    std::string span;
    double load = 0.8;  ///< accelerator-seconds it asks for over those there are
  };
  struct Scheduling {
    std::string tenants;
    std::string policies = "hardware-aware";
    /// The version of a built-in policy where `policies` states none: that of the replayed record;
    /// 0: the newest version.
    std::uint32_t policy_version = 0;
    std::string rules = "orrery";
    std::string information = "oracle";
  };
  struct World {
    std::uint64_t seed = 1;
    std::string failures = "none";
    std::string arrivals;
    std::string events;  ///< a file of events at stated times
    std::uint32_t spares = 0;
    std::string prices;
    std::string carbon;
    std::string until;
  };
  struct Restarts {
    std::string restart;
    std::string policy = "at-once";
    std::string fencing;
    std::string warm;
    std::string checkpoint_cost;
    std::string checkpoint_interval;
  };
  struct Results {
    std::string measure;  ///< "FROM..TO": figures are of the jobs submitted in this window
    std::string out;
    std::string record;
    std::string explain;
  };

  Machines machines;
  RecordedTrace trace;
  GeneratedTrace generated;
  Scheduling scheduling;
  World world;
  Restarts restarts;
  Results results;
  SpecFiles files;
};

inline std::array<EnumWord<SimulateOptions::Flag>, 2> enum_words(SimulateOptions::Flag) {
  return {{{"false", SimulateOptions::Flag::kNo}, {"true", SimulateOptions::Flag::kYes}}};
}

/// The options that decide a run, under the names of the command line: the setup of a record, and
/// of a study's cells.
template <class Visitor, SameStruct<SimulateOptions> Self>
void describe(Visitor& visitor, Self& o) {
  visitor.optional("fleet", o.machines.fleet);
  visitor.optional("accelerators", o.machines.accelerators);
  visitor.optional("price", o.machines.price);
  visitor.optional("trace", o.trace.file);
  visitor.optional("format", o.trace.format);
  visitor.optional("where", o.trace.rows);
  visitor.optional("from", o.trace.from);
  visitor.optional("to", o.trace.to);
  visitor.optional("skip_bad", o.trace.bad_rows);
  visitor.optional("map", o.trace.map);
  visitor.optional("throughputs", o.trace.throughputs);
  visitor.optional("generate", o.generated.style);
  visitor.optional("jobs", o.generated.jobs);
  visitor.optional("span", o.generated.span);
  visitor.optional("load", o.generated.load);
  visitor.optional("tenants", o.scheduling.tenants);
  visitor.optional("policy", o.scheduling.policies);
  visitor.optional("rules", o.scheduling.rules);
  visitor.optional("information", o.scheduling.information);
  visitor.optional("seed", o.world.seed);
  visitor.optional("failures", o.world.failures);
  visitor.optional("arrivals", o.world.arrivals);
  visitor.optional("events", o.world.events);
  visitor.optional("spares", o.world.spares);
  visitor.optional("restart", o.restarts.restart);
  visitor.optional("restart_policy", o.restarts.policy);
  visitor.optional("fencing", o.restarts.fencing);
  visitor.optional("warm_restart", o.restarts.warm);
  visitor.optional("checkpoint_cost", o.restarts.checkpoint_cost);
  visitor.optional("checkpoint_interval", o.restarts.checkpoint_interval);
  visitor.optional("prices", o.world.prices);
  visitor.optional("carbon", o.world.carbon);
  visitor.optional("until", o.world.until);
  visitor.optional("measure", o.results.measure);
}

/// Returns how the machines of --accelerators are paid: as given; else on demand, or owned where
/// prices of electricity are given. Empty: the fleet file decides.
[[nodiscard]] std::string price_of_accelerators(const SimulateOptions& asked);

}  // namespace orrery

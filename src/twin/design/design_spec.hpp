// twin/design/design_spec.hpp - a wanted fleet (kind: Design): the site's power and money, the work
// it is to do, what it may be built of.
//
// Read from YAML by read_design_spec, answered by twin/design/design.hpp. Every struct records its
// position in the file. docs/designs.md describes the keys.
// Invariant of a spec that was read: power, years and shares are positive, names are unique;
// training work states the size of a job, serving work the tokens of a request.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"
#include "workload/job_spec.hpp"

namespace orrery {

/// What the design maximizes.
enum class DesignObjective : std::uint8_t {
  kWork,           ///< work a second, within the limits
  kWorkPerDollar,  ///< over the purchase and the electricity of the years
  kWorkPerJoule,
};

inline std::array<EnumWord<DesignObjective>, 3> enum_words(DesignObjective) {
  return {{{"work", DesignObjective::kWork},
           {"work-per-dollar", DesignObjective::kWorkPerDollar},
           {"work-per-joule", DesignObjective::kWorkPerJoule}}};
}

struct DesignSite {
  Watts power;                    ///< at the meter
  std::optional<Dollars> budget;  ///< of the purchase; none: money is no limit
  double years = 4;               ///< over which the purchase is spread
  std::optional<std::string> region;
  std::optional<DollarsPerJoule> electricity;
  std::optional<double> pue;
  SourcePosition where;
};

template <class Visitor, SameStruct<DesignSite> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.required("power", s.power);
  visitor.optional("budget", s.budget);
  visitor.optional("years", s.years);
  visitor.optional("region", s.region);
  visitor.optional("electricity", s.electricity);
  visitor.optional("pue", s.pue);
}

/// One kind of work of the mix.
struct DesignWork {
  std::string name;
  JobKind kind = JobKind::kTrain;
  /// Share of the accelerators' time, on the first candidate that does all of the work.
  double share = 1;
  std::optional<std::uint32_t> accelerators;  ///< of one job; of a service the least instance
  std::optional<Seconds> duration;            ///< of one job; none: it outlasts the rehearsal
  double bytes_per_token = 4;                 ///< of training data
  WorkSpec work;                              ///< its keys stand beside the others
  SourcePosition where;

  [[nodiscard]] bool serves() const { return kind == JobKind::kServe; }
};

template <class Visitor, SameStruct<DesignWork> Self>
void describe(Visitor& visitor, Self& w) {
  visitor.required("name", w.name);
  visitor.required("kind", w.kind);
  visitor.optional("share", w.share);
  visitor.optional("accelerators", w.accelerators);
  visitor.optional("duration", w.duration);
  visitor.optional("bytes_per_token", w.bytes_per_token);
  describe(visitor, w.work);
}

/// A row of the catalog by id or alias.
struct DesignPart {
  std::string type;
  SourcePosition where;
};

template <class Visitor, SameStruct<DesignPart> Self>
void describe(Visitor& visitor, Self& p) {
  visitor.sole("type", p.type);
}

struct DesignSpec {
  std::string api_version = "orrery/v1";
  std::string kind = "Design";
  std::string name;
  std::string description;
  DesignSite site;
  std::vector<DesignWork> workload;
  std::vector<DesignPart> candidates;  ///< accelerators; empty: all with the figures it takes
  std::vector<DesignPart> exclude;
  DesignObjective objective = DesignObjective::kWork;
  std::optional<DesignPart> failures;  ///< a failure model; none: llama3
  std::optional<DesignPart> storage;   ///< a storage system; none: that of the least power
  std::optional<Bytes> capacity;       ///< of the storage, beside checkpoints and tokens
  SourcePosition where;
};

template <class Visitor, SameStruct<DesignSpec> Self>
void describe(Visitor& visitor, Self& d) {
  visitor.required("apiVersion", d.api_version);
  visitor.required("kind", d.kind);
  visitor.required("name", d.name);
  visitor.optional("description", d.description);
  visitor.required("site", d.site);
  visitor.required("workload", d.workload);
  visitor.optional("candidates", d.candidates);
  visitor.optional("exclude", d.exclude);
  visitor.optional("objective", d.objective);
  visitor.optional("failures", d.failures);
  visitor.optional("storage", d.storage);
  visitor.optional("capacity", d.capacity);
}

/// Normalizes the shares to sum to 1. Errors with file:line:column. Names of the catalog are
/// checked by its users.
[[nodiscard]] Result<DesignSpec> read_design_spec(const Document& document);
[[nodiscard]] Result<DesignSpec> load_design_spec(const std::string& path);

}  // namespace orrery

// executor/controller_settings.hpp - the wait times and limits of a controller: an operator's
// choice, read from DIR/controller.yaml.
//
// Read by orreryd at its start and passed to the Controller; when they are read again, only limits
// take effect at once, waits at the next start. The log does not depend on them. Invariant of
// settings that were read: no value is negative. Cost: that of parsing a short YAML text.
#pragma once

#include <string>

#include "base/format/document.hpp"
#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"

namespace orrery {

struct ControllerSettings {
  std::string api_version;
  std::string kind;
  Seconds grace{30};    ///< for ranks that must end, before they are killed
  Seconds backoff{10};  ///< before a restart after a program fault; doubles with each
  /// After the controller's start, before a node not heard since may be lost.
  Seconds node_grace{30};
  /// Submissions a second of one tenant's users, an array counting once; 0: unlimited.
  double submit_rate = 0;
  double submit_burst = 0;  ///< submissions at once before the rate applies; 0: ten seconds' worth
  double jobs_max = 1'000'000;  ///< jobs that have not ended
  Seconds retain{7 * 86'400};   ///< how long ended jobs stay before they go to the archive
  /// Bytes of log after which it is compacted: a snapshot is written, and the log that the previous
  /// snapshot covers is dropped and its space freed.
  Bytes snapshot_every{std::uint64_t{32} << 20};
  /// How long after it began its last write to a shared log a controller may act on the log, see
  /// StoreTraits.
  Seconds speaks_for{1.2};
  Seconds claims_after{2.2};  ///< silence of the leader after which it is replaced
};

template <class Visitor, SameStruct<ControllerSettings> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.required("apiVersion", s.api_version);
  visitor.required("kind", s.kind);
  visitor.optional("grace", s.grace);
  visitor.optional("backoff", s.backoff);
  visitor.optional("node_grace", s.node_grace);
  visitor.optional("submit_rate", s.submit_rate);
  visitor.optional("submit_burst", s.submit_burst);
  visitor.optional("jobs_max", s.jobs_max);
  visitor.optional("retain", s.retain);
  visitor.optional("snapshot_every", s.snapshot_every);
  visitor.optional("speaks_for", s.speaks_for);
  visitor.optional("claims_after", s.claims_after);
}

/// Errors: file:line:column, of the form; another kind; a wait that is negative or above a day; a
/// negative limit; less than a second between speaks_for and claims_after. O(length).
[[nodiscard]] Result<ControllerSettings> read_controller_settings(const Document& document);

}  // namespace orrery

// executor/controller_settings.hpp - how long a controller waits for what and how much it takes on:
// an operator's choice, read from DIR/controller.yaml.
//
// Read by orreryd at its start and handed to the Controller; read again, only limits take effect at
// once, waits with the next start. Nothing in the log rests on it. Invariant of settings that were
// read: nothing is negative. Cost: that of parsing a short YAML text.
#pragma once

#include <string>

#include "base/document.hpp"
#include "base/field_reader.hpp"
#include "base/quantity.hpp"

namespace orrery {

struct ControllerSettings {
  std::string api_version;
  std::string kind;
  Seconds grace{30};    ///< of ranks that are to end, before they are killed
  Seconds backoff{10};  ///< before a start after a fault of the program; doubles with each
  /// After the controller's start, before a node may be lost that was not heard since.
  Seconds node_grace{30};
  /// Submissions a second of one tenant's users, an array counting once; 0: as many as they like.
  double submit_rate = 0;
  double submit_burst = 0;      ///< that may come at once before the rate binds; 0: of ten seconds
  double jobs_max = 1'000'000;  ///< that have not ended
  Seconds retain{7 * 86'400};   ///< jobs that have ended, before they go to the archive
  /// Bytes of log after which it is compacted: a snapshot is put, and what the one before covers is
  /// dropped and its room given back.
  Bytes snapshot_every{std::uint64_t{32} << 20};
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
}

/// Errors: file:line:column, of its form, of another kind, of a wait that is negative or above a
/// day, of a limit that is negative. O(length).
[[nodiscard]] Result<ControllerSettings> read_controller_settings(const Document& document);

}  // namespace orrery

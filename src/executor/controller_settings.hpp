// executor/controller_settings.hpp - how long a controller waits for what: an operator's choice,
// read from DIR/controller.yaml.
//
// Read once by orreryd at its start, and handed to the Controller; another choice holds from the
// next start on. Nothing in the log rests on it. Invariant of settings that were read: no wait is
// negative. Cost: that of parsing a short YAML text.
#pragma once

#include <string>

#include "base/document.hpp"
#include "base/field_reader.hpp"
#include "base/quantity.hpp"

namespace orrery {

struct ControllerSettings {
  std::string api_version;
  std::string kind;
  Seconds grace{30};       ///< of ranks that are to end, before they are killed
  Seconds backoff{10};     ///< before a start after a fault of the program; doubles with each
  Seconds node_grace{30};  ///< after the controller's start, before a node may be lost
};

template <class Visitor, SameStruct<ControllerSettings> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.required("apiVersion", s.api_version);
  visitor.required("kind", s.kind);
  visitor.optional("grace", s.grace);
  visitor.optional("backoff", s.backoff);
  visitor.optional("node_grace", s.node_grace);
}

/// Errors: file:line:column, of its form, of another kind, of a wait that is negative or above a
/// day. O(length).
[[nodiscard]] Result<ControllerSettings> read_controller_settings(const Document& document);

}  // namespace orrery

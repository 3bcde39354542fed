// node/machine/machine_check.hpp - what the facts of a machine mean for Orrery, each with advice.
//
// Pure functions over node/machine/machine_facts.hpp. Findings of a whole fleet have the same form.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/format/field_reader.hpp"
#include "node/machine/machine_facts.hpp"

namespace orrery {

enum class CheckVerdict : std::uint8_t {
  kOk,
  kWarning,  ///< works, but not as well or not everywhere
  kProblem,  ///< something of Orrery does not work
};

inline std::array<EnumWord<CheckVerdict>, 3> enum_words(CheckVerdict) {
  return {{{"ok", CheckVerdict::kOk},
           {"warning", CheckVerdict::kWarning},
           {"problem", CheckVerdict::kProblem}}};
}

/// The result of one check.
struct CheckFinding {
  std::string check;  ///< one word
  CheckVerdict verdict = CheckVerdict::kOk;
  std::string found;
  std::string advice;              ///< its meaning and what to do; empty: nothing
  std::vector<std::string> nodes;  ///< nodes of a fleet that it is about
};

template <class Visitor, SameStruct<CheckFinding> Self>
void describe(Visitor& visitor, Self& finding) {
  visitor.required("check", finding.check);
  visitor.required("verdict", finding.verdict);
  visitor.required("found", finding.found);
  visitor.required("advice", finding.advice);
  visitor.optional("nodes", finding.nodes);
}

/// Findings are in reading order: the machine, what Orrery needs, what programs need.
[[nodiscard]] std::vector<CheckFinding> check_machine(const MachineFacts& facts);

}  // namespace orrery

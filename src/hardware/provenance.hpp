// hardware/provenance.hpp - where a fact comes from and how far to trust it.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/format/field_reader.hpp"

namespace orrery {

enum class Confidence {
  kDatasheet,  ///< a vendor's document or own repository
  kPaper,      ///< a published paper
  kPress,      ///< a third party's page
  kRecalled,   ///< from memory: verify before relying on it
  kAssumed,    ///< a modelling choice, with its reason in `source`
};

inline std::array<EnumWord<Confidence>, 5> enum_words(Confidence) {
  return {{{"datasheet", Confidence::kDatasheet},
           {"paper", Confidence::kPaper},
           {"press", Confidence::kPress},
           {"recalled", Confidence::kRecalled},
           {"assumed", Confidence::kAssumed}}};
}

struct Provenance {
  std::string source;
  Confidence confidence = Confidence::kAssumed;
  std::vector<std::string> recalled_fields;  ///< fields of a better-sourced row not verified
  std::string note;
  std::string checked_against;
};

/// Read and written inside the row itself, not as a nested mapping.
template <class Visitor, SameStruct<Provenance> Self>
void describe_inline(Visitor& visitor, Self& provenance) {
  visitor.optional("source", provenance.source);
  visitor.required("confidence", provenance.confidence);
  visitor.optional("recalled_fields", provenance.recalled_fields);
  visitor.optional("note", provenance.note);
  visitor.optional("checked_against", provenance.checked_against);
}

}  // namespace orrery

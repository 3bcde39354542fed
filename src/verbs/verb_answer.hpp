// verbs/verb_answer.hpp - what a verb shows, in the forms that its reader may ask for.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "base/format/field_writer.hpp"

namespace orrery {

/// How a text is printed.
enum class TextKind : std::uint8_t {
  kLines,  ///< for people: control characters in it are escaped when it is printed
  kShown,  ///< for people: its parts are escaped already, and it may have colours
  kBytes,  ///< for another program, such as a spec: as it is
};

/// The answer to one question: text, and the same as one JSON document for programs.
struct VerbAnswer {
  std::string text;
  Json json;
  TextKind kind = TextKind::kLines;
};

/// An answer that is shown even where the verb then fails: a check that finds damage shows what it
/// found, and fails.
struct JudgedAnswer {
  VerbAnswer shown;
  Status verdict = {};
};

}  // namespace orrery

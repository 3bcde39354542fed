// report/verb_answer.hpp - what a verb shows, in the forms that its reader may ask for.
#pragma once

#include <string>

#include "base/format/field_writer.hpp"

namespace orrery {

/// The answer to one question: lines for people, and the same as one JSON document for programs.
/// Neither is escaped for a terminal yet; who prints it does that.
struct VerbAnswer {
  std::string text;
  Json json;
};

}  // namespace orrery

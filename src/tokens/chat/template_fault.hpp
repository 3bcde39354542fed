// tokens/chat/template_fault.hpp - why a template cannot be read or rendered; thrown within
// tokens/chat and turned into an Error by ChatTemplate.
#pragma once

#include <string>
#include <utility>

namespace orrery {

struct TemplateFault {
  std::string message;
  int line = 0;  ///< from 1; 0 if unknown
};

[[noreturn]] inline void template_fault(std::string message) {
  throw TemplateFault{std::move(message), 0};
}

}  // namespace orrery

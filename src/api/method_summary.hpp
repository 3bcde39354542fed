// api/method_summary.hpp - what each method does, in a line, for the OpenAPI document.
//
// One constant table. A method that is served by HTTP has its line there; a test says which has
// not.
#pragma once

#include <string_view>

namespace orrery {

struct MethodSummary {
  std::string_view method;
  std::string_view tag;  ///< the group of methods it belongs to
  std::string_view text;
};

/// nullptr: the method has none.
[[nodiscard]] const MethodSummary* method_summary(std::string_view method);

}  // namespace orrery

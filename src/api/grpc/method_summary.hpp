// api/grpc/method_summary.hpp - a one-line summary of each method, for the OpenAPI document.
//
// One constant table. Each method that is served by HTTP has its line there; a test finds those
// that lack one.
#pragma once

#include <string_view>

namespace orrery {

struct MethodSummary {
  std::string_view method;
  std::string_view tag;  ///< the group of methods it belongs to
  std::string_view text;
};

/// Returns nullptr where the method has none.
[[nodiscard]] const MethodSummary* method_summary(std::string_view method);

}  // namespace orrery

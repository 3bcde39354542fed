// tokens/chat/template_names.hpp - the filters and tests that templates may name.
#pragma once

#include <string_view>

namespace orrery {

[[nodiscard]] bool is_template_filter(std::string_view name);
[[nodiscard]] bool is_template_test(std::string_view name);

}  // namespace orrery

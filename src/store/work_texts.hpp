// store/work_texts.hpp - names of texts of a store (store/store.hpp) that jobs brought: those of
// jobs with work that no job before them had, which a log's ids of work refer to.
#pragma once

#include <string_view>

namespace orrery {

/// Before their number, of six digits, in the order in which they came.
inline constexpr std::string_view kWorkText = "work.";

}  // namespace orrery

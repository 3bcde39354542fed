// tokens/bpe/text_frame.hpp - the post-processor of a tokenizer.json: the tokens it puts before and
// behind a text.
//
// Made while a tokenizer is loaded; immutable, safe from every thread.
#pragma once

#include <cstdint>
#include <vector>

#include "tokens/bpe/json_part.hpp"

namespace orrery {

struct TextFrame {
  std::vector<std::int32_t> before;
  std::vector<std::int32_t> behind;
};

/// Reads "post_processor", which may be absent or null. Throws LoadFault.
[[nodiscard]] TextFrame read_text_frame(const JsonPart& file);

}  // namespace orrery

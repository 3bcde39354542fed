#include "tokens/bpe/text_frame.hpp"

#include <fmt/format.h>

#include "base/text/utf8.hpp"

namespace orrery {
namespace {

constexpr int kDepthMax = 16;

std::vector<std::int32_t> special_ids(const JsonPart& owner, const std::string& name) {
  std::vector<std::int32_t> ids;
  for (const JsonPart& id : owner.part("special_tokens").part(name).items("ids")) {
    if (!id.value().is_number_integer() || id.value() < 0 || id.value() > (1 << 30)) {
      id.refuse("expected a token");
    }
    ids.push_back(id.value().get<std::int32_t>());
  }
  return ids;
}

void read_template(const JsonPart& part, TextFrame& frame) {
  TextFrame added;
  bool passed = false;
  for (const JsonPart& piece : part.items("single")) {
    if (piece.has("Sequence")) {
      if (passed || piece.part("Sequence").text("id") != "A") {
        piece.refuse("expected the sequence A once");
      }
      passed = true;
    } else {
      const auto ids = special_ids(part, piece.part("SpecialToken").text("id"));
      std::vector<std::int32_t>& side = passed ? added.behind : added.before;
      side.insert(side.end(), ids.begin(), ids.end());
    }
  }
  if (!passed) part.part("single").refuse("expected the sequence A");
  frame.before.insert(frame.before.begin(), added.before.begin(), added.before.end());
  frame.behind.insert(frame.behind.end(), added.behind.begin(), added.behind.end());
}

void read_processor(const JsonPart& part, int depth, TextFrame& frame) {
  if (depth > kDepthMax) part.refuse("too deep");
  const std::string type = part.type();
  if (type == "Sequence") {
    for (const JsonPart& item : part.items("processors")) read_processor(item, depth + 1, frame);
  } else if (type == "TemplateProcessing") {
    read_template(part, frame);
  } else if (type != "ByteLevel") {
    part.refuse(
        fmt::format("the post-processor \"{}\" is not supported, expected "
                    "TemplateProcessing, ByteLevel or Sequence",
                    printable(type, 60)));
  }
}

}  // namespace

TextFrame read_text_frame(const JsonPart& file) {
  TextFrame frame;
  if (file.has("post_processor")) read_processor(file.part("post_processor"), 0, frame);
  return frame;
}

}  // namespace orrery

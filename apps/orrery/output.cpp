#include "apps/orrery/output.hpp"

#include <cstdio>

#include "base/format/field_writer.hpp"
#include "base/text/terminal_text.hpp"

namespace orrery {

void print_bytes(std::string_view bytes) {
  // Not fmt::print, which throws when the disk is full; run() looks at ferror.
  static_cast<void>(std::fwrite(bytes.data(), 1, bytes.size(), stdout));
}

void print_shown(const std::string& text) { print_bytes(text); }

void print_text(const std::string& text) { print_bytes(terminal_text(text, Newlines::kKept)); }

void print_message(const std::string& text) {
  const std::string shown = terminal_text(text, Newlines::kKept);
  static_cast<void>(std::fwrite(shown.data(), 1, shown.size(), stderr));
}

void print_progress(const std::string& text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
}

void print_json(const Json& json) { print_bytes(terminal_json(json.dump(2)) + "\n"); }

void print_answer(const CommandOptions& options, const VerbAnswer& answer) {
  if (options.output == OutputFormat::kJson) {
    print_json(answer.json);
  } else if (answer.kind == TextKind::kLines) {
    print_text(answer.text);
  } else {
    print_bytes(answer.text);
  }
}

Status print_answer(const CommandOptions& options, const Result<VerbAnswer>& answer) {
  if (!answer) return tl::unexpected(answer.error());
  print_answer(options, *answer);
  return {};
}

Status print_answer(const CommandOptions& options, const Result<JudgedAnswer>& answer) {
  if (!answer) return tl::unexpected(answer.error());
  print_answer(options, answer->shown);
  return answer->verdict;
}

LiveCall live_call(const CommandOptions& options, LiveSession& session) {
  return {.session = session, .text = LiveText::of(options), .options = options};
}

Status print_live(const CommandOptions& options, const Result<LiveAnswer>& answer) {
  if (!answer) return tl::unexpected(answer.error());
  if (options.output == OutputFormat::kJson) {
    answer->json ? print_json(*answer->json) : print_answer(*answer->message);
    return {};
  }
  if (!answer->before.empty()) print_message(answer->before);
  print_shown(answer->text);
  if (!answer->after.empty()) print_message(answer->after);
  return {};
}

LiveProgress live_progress(const CommandOptions& options) {
  const bool text = options.output == OutputFormat::kText;
  return {.text = text ? print_text : [](const std::string&) {}, .message = print_message};
}

void print_answer(const google::protobuf::Message& answer) {
  print_bytes(answer_text(answer, AnswerLayout::kIndented));
}

void print_answer_line(const google::protobuf::Message& answer) {
  print_bytes(answer_text(answer, AnswerLayout::kLine) + "\n");
  (void)std::fflush(stdout);
}

}  // namespace orrery

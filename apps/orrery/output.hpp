// apps/orrery/output.hpp - what `orrery` prints: text for people, JSON for programs, messages.
#pragma once

#include <string>
#include <string_view>

#include "base/text/terminal_text.hpp"
#include "verbs/cluster/live_answer.hpp"
#include "verbs/command_options.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

/// Prints lines for people to standard output; control characters are escaped, since names and
/// causes come from users. A failed write is noticed once, at the end: main() then exits with 1.
void print_text(const std::string& text);
/// Prints text whose parts were escaped, such as a TextTable with its colours.
void print_shown(const std::string& text);
/// Prints bytes unchanged: logs, specs, files.
void print_bytes(std::string_view bytes);

/// Prints to standard error, escaped as print_text does; text that cannot be written is lost.
void print_message(const std::string& text);

/// Prints to a terminal on standard error, with the controls that redraw a line of progress.
/// Precondition: names in it are escaped.
void print_progress(const std::string& text);

/// Prints one JSON document to standard output.
void print_json(const Json& json);
/// Prints the answer in the format of --output.
void print_answer(const CommandOptions& options, const VerbAnswer& answer);
/// Prints the answer, or passes its error on.
[[nodiscard]] Status print_answer(const CommandOptions& options, const Result<VerbAnswer>& answer);
/// Prints the answer and returns its verdict, or passes its error on.
[[nodiscard]] Status print_answer(const CommandOptions& options,
                                  const Result<JudgedAnswer>& answer);

/// Returns the call of a verb: its controller, and the present state of terminal and clock.
[[nodiscard]] LiveCall live_call(const CommandOptions& options, LiveSession& session);
/// Prints the answer of a running cluster in the format of --output, or passes its error on.
[[nodiscard]] Status print_live(const CommandOptions& options, const Result<LiveAnswer>& answer);
/// Prints what a verb says while it works; lines for standard output only where that is text.
[[nodiscard]] LiveProgress live_progress(const CommandOptions& options);

/// Prints the answer of a controller as one JSON document.
void print_answer(const google::protobuf::Message& answer);
/// Prints the answer as JSON on one line of a stream, which is flushed.
void print_answer_line(const google::protobuf::Message& answer);

}  // namespace orrery

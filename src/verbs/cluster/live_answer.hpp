// verbs/cluster/live_answer.hpp - a question to a running cluster, and what its answer shows.
//
// Values of one call of a verb; one thread.
#pragma once

#include <google/protobuf/message.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/format/field_writer.hpp"
#include "verbs/cluster/live_session.hpp"
#include "verbs/cluster/live_text.hpp"

namespace orrery {

/// What a question is asked with: the controller, how text is shown, and the options of the verb.
struct LiveCall {
  LiveSession& session;
  LiveText text;
  const CommandOptions& options;
};

/// What a verb shows of one answer. Texts are escaped: each may go to a terminal as it is.
struct LiveAnswer {
  std::string text;    ///< for standard output
  std::string before;  ///< for standard error ahead of the text, where the text is shown
  std::string after;   ///< for standard error behind the text, where the text is shown
  std::shared_ptr<const google::protobuf::Message> message;  ///< what programs get; never null
  std::optional<Json> json;  ///< what programs get in place of the message
};

/// Makes an answer of a message and its text.
template <class Message>
[[nodiscard]] LiveAnswer live_answer(Message message, std::string text) {
  LiveAnswer answer;
  answer.text = std::move(text);
  answer.message = std::make_shared<const Message>(std::move(message));
  return answer;
}

/// Where a verb that changes several things says what became of each, as soon as it is known.
struct LiveProgress {
  std::function<void(const std::string&)> text;     ///< lines for standard output
  std::function<void(const std::string&)> message;  ///< lines for standard error
};

}  // namespace orrery

// tokens/chat_template.hpp - the template that writes a conversation as the text of a prompt: a
// subset of Jinja 3.1, as transformers runs it (immutable sandbox, trim_blocks, lstrip_blocks, loop
// controls, generation blocks).
//
// Made by main() or from a model's files; movable, immutable, safe to use from every thread.
// Invariant: what renders here renders to the same text there; what is not supported is refused by
// name. Cost: bounded in steps, depth and text, whatever the template is.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace orrery {

struct TemplateNode;

class ChatTemplate {
 public:
  /// Reads the text of a template; `name` stands for its file. The input error names the line.
  [[nodiscard]] static Result<ChatTemplate> of(std::string_view text, const std::string& name);
  /// Reads "chat_template" of a tokenizer_config.json: a text, or a list of {name, template}, of
  /// which `wanted` or else "default" is taken. Errors: there is none, or it cannot be read.
  [[nodiscard]] static Result<ChatTemplate> of_config(std::string_view json,
                                                      const std::string& name,
                                                      std::string_view wanted);
  ChatTemplate(ChatTemplate&& other) noexcept;
  ChatTemplate& operator=(ChatTemplate&& other) noexcept;
  ~ChatTemplate();

  struct Limits {
    std::int64_t steps = 2'000'000;
    std::int64_t bytes = std::int64_t{1} << 28;  ///< of all texts made on the way
  };
  struct Rendering {
    /// An object: messages, tools, add_generation_prompt, bos_token .., in the order of its keys.
    nlohmann::ordered_json variables;
    /// The time of strftime_now: seconds since 1970 as the clock of the place shows them.
    std::int64_t now = 0;
    Limits limits;
  };
  /// Renders a prompt. The input error is what the template raises, or why it cannot be rendered.
  [[nodiscard]] Result<std::string> render(const Rendering& rendering) const;

 private:
  ChatTemplate(std::string name, std::unique_ptr<const TemplateNode> tree);

  std::string name_;
  std::unique_ptr<const TemplateNode> tree_;
};

}  // namespace orrery

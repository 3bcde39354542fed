// tests/tokens/template_lines.cpp - renders chat templates on standard input, for
// compare_templates.py.
//
// Each line is {"template": text, "variables": object}; the answer is {"text": text} or {"error":
// text}, a line each. The clock of the templates stands at 2024-07-26 09:05:03.
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "tokens/chat_template.hpp"

int main() {
  using namespace orrery;
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto request = nlohmann::ordered_json::parse(line);
    nlohmann::json answer;
    const auto made = ChatTemplate::of(request["template"].get<std::string>(), "t");
    if (!made) {
      answer["error"] = made.error().text();
    } else {
      const auto text = made->render({.variables = request["variables"], .now = 1'721'984'703});
      answer[text ? "text" : "error"] = text ? *text : text.error().text();
    }
    const std::string shown = answer.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    std::puts(shown.c_str());
  }
  return 0;
}

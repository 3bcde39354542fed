#include "tokens/chat_template.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace orrery {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kNow = 1'721'984'703;  ///< 2024-07-26 09:05:03

std::string rendered(std::string_view text, const ordered_json& variables) {
  const auto made = ChatTemplate::of(text, "t");
  if (!made) return "error: " + made.error().text();
  const auto prompt = made->render({.variables = variables, .now = kNow});
  return prompt ? *prompt : "error: " + prompt.error().text();
}

TEST(ChatTemplateTest, RendersWhatJinjaRenders) {
  const auto path =
      std::filesystem::path(ORRERY_SOURCE_DIR) / "tests/tokens/fixtures/templates.json";
  std::ifstream file(path);
  const auto fixed = ordered_json::parse(file);
  std::size_t texts = 0;
  for (const auto& group : fixed["groups"]) {
    for (const auto& each : group["cases"]) {
      const auto text = fixed["templates"][each[0].get<std::size_t>()].get<std::string>();
      const std::string got = rendered(text, group["variables"]);
      if (each[1].is_null()) {
        EXPECT_TRUE(got.starts_with("error: ")) << text << "\n" << got;
      } else if (got.find("not supported") == std::string::npos) {
        EXPECT_EQ(got, each[1].get<std::string>()) << text;
        ++texts;
      }
    }
  }
  EXPECT_GT(texts, 500u);
}

TEST(ChatTemplateTest, RaisesTheMessageOfTheTemplateWithItsLine) {
  EXPECT_EQ(
      rendered("a\n{{ raise_exception('roles must ' ~ 'alternate') }}", ordered_json::object()),
      "error: t:2:1: roles must alternate");
  EXPECT_EQ(rendered("{{ a.b }}", ordered_json::object()), "error: t:1:1: 'a' is undefined");
  EXPECT_EQ(rendered("x\n{% if %}", ordered_json::object()),
            "error: t:2:1: expected an expression, got \"%}\"");
}

TEST(ChatTemplateTest, BoundsStepsTextAndDepth) {
  const auto none = ordered_json::object();
  const auto fails = [&](const std::string& text, std::string_view why) {
    EXPECT_NE(rendered(text, none).find(why), std::string::npos) << rendered(text, none);
  };
  fails("{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}",
        "too many steps");
  fails(
      "{% set n = namespace(s='aaaaaaaaaaaaaaaa') %}{% for i in range(99) %}"
      "{% set n.s = n.s + n.s %}{% endfor %}",
      "too much text");
  fails("{% set n = namespace(s=[]) %}{% for i in range(999) %}{% set n.s = [n.s] %}{% endfor %}",
        "nested too deep");
  fails("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "too deep");
  fails("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}", "too deep");
  fails(
      "{{ 1" +
          [] {
            std::string sum;
            for (int i = 0; i < 5000; ++i) sum += " + 1";
            return sum;
          }() +
          " }}",
      "too deep");
  fails("{{ range(1000000) }}", "a range of more than");
}

TEST(ChatTemplateTest, TakesTheTemplateOfAConfigFile) {
  const auto one = ChatTemplate::of_config(R"({"chat_template":"a{{ x }}"})", "c", "");
  ASSERT_TRUE(one);
  EXPECT_EQ(*one->render({.variables = {{"x", 1}}}), "a1");
  const std::string several =
      R"({"chat_template":[{"name":"default","template":"d"},{"name":"tool_use","template":"t"}]})";
  EXPECT_EQ(*ChatTemplate::of_config(several, "c", "tool_use")
                 ->render({.variables = ordered_json::object()}),
            "t");
  EXPECT_EQ(
      *ChatTemplate::of_config(several, "c", "rag")->render({.variables = ordered_json::object()}),
      "d");
  EXPECT_EQ(ChatTemplate::of_config("{}", "c", "").error().text(),
            "chat template \"c\": expected an object with \"chat_template\"");
}

TEST(ChatTemplateTest, NamesWhatIsNotSupported) {
  EXPECT_EQ(rendered("{{ 1 | pprint }}", ordered_json::object()),
            "error: t:1:1: the filter 'pprint' is not supported");
  EXPECT_EQ(rendered("{% include 'x' %}", ordered_json::object()),
            "error: t:1:1: the statement \"include\" is not supported here");
}

}  // namespace
}  // namespace orrery

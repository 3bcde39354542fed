// tests/fuzz/fuzz_chat_template.cpp - any text as a chat template; what is read is rendered, within
// small limits.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/assert.hpp"
#include "tokens/chat_template.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  static const nlohmann::ordered_json variables = nlohmann::ordered_json::parse(
      R"({"messages":[{"role":"system","content":"be"},{"role":"user","content":" hi\n"},
          {"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f",
           "arguments":{"a":[1,2.5,true]}}}]}],
          "tools":[{"type":"function"}],"add_generation_prompt":true,"x":7,"s":"text"})");
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<ChatTemplate> made = ChatTemplate::of(text, "template");
  if (!made) {
    ORRERY_ASSERT(!made.error().message.empty(), "a refusal says why");
    return 0;
  }
  const Result<std::string> prompt = made->render(
      {.variables = variables, .now = 0, .limits = {.steps = 20'000, .bytes = 1 << 20}});
  ORRERY_ASSERT(!prompt || prompt->size() <= (1 << 20), "the limit of text holds");
  return 0;
}

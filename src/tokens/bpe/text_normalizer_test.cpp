#include "tokens/bpe/text_normalizer.hpp"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "base/numbers/rng.hpp"
#include "tokens/text/unicode_class.hpp"

namespace orrery {
namespace {

struct FormCase {
  const char* name;
  int options;
};

/// The form of a text by the library alone.
std::string formed(const FormCase& form, const std::string& text) {
  utf8proc_uint8_t* made = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &made,
                                 static_cast<utf8proc_option_t>(UTF8PROC_STABLE | form.options));
  EXPECT_GE(size, 0);
  std::string result(reinterpret_cast<const char*>(made), static_cast<std::size_t>(size));
  std::free(made);
  return result;
}

class FormTest : public testing::TestWithParam<FormCase> {
 public:
  [[nodiscard]] std::string of(const std::string& text) const {
    std::string buffer;
    return std::string(normalizer_.apply(text, buffer));
  }

 private:
  nlohmann::json file_ = {{"normalizer", {{"type", GetParam().name}}}};
  TextNormalizer normalizer_{JsonPart(file_, "")};
};

/// Whether the forms of the reference, which are those of Unicode 9, and of the library agree on a
/// character: it is a letter or mark of the first scripts, a sign, Han or Hangul.
bool is_common(char32_t value) {
  return value < 0x7C0 || (value >= 0x900 && value < 0x9FE) ||
         (value >= 0x1E00 && value < 0x32FF) || (value >= 0x3400 && value < 0xA000) ||
         (value >= 0xAC00 && value < 0xD800) || (value >= 0xF900 && value < 0xFF70);
}

TEST_P(FormTest, EveryCharacterIsFormedBehindALetterAndBehindItself) {
  for (char32_t value = 0x80; value < 0xFF70; ++value) {
    if (!is_common(value)) continue;
    std::string text = "e";
    append_code_point(value, text);
    append_code_point(value, text);
    ASSERT_EQ(of(text), formed(GetParam(), text)) << std::hex << +value;
  }
}

TEST_P(FormTest, CharactersAreFormedWithWhateverStandsBeforeThem) {
  Rng rng(1);
  const auto draw = [&] {
    for (;;) {
      const std::uint64_t kind = rng.below(4);
      const std::uint64_t value = kind == 0   ? 0x300 + rng.below(0x70)
                                  : kind == 1 ? 0x1100 + rng.below(0x100)
                                  : kind == 2 ? rng.below(0x700)
                                              : rng.below(0xFF70);
      const auto character = static_cast<char32_t>(value);
      if (value > 0 && (is_common(character) || kind == 1)) return character;
    }
  };
  for (int round = 0; round < 50'000; ++round) {
    std::string text;
    for (std::uint64_t left = 1 + rng.below(5); left > 0; --left) append_code_point(draw(), text);
    ASSERT_EQ(of(text), formed(GetParam(), text)) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, FormTest,
                         testing::Values(FormCase{"NFC", UTF8PROC_COMPOSE},
                                         FormCase{"NFKC", UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
                                         FormCase{"NFD", UTF8PROC_DECOMPOSE},
                                         FormCase{"NFKD", UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT}),
                         [](const testing::TestParamInfo<FormCase>& form) {
                           return std::string(form.param.name);
                         });

}  // namespace
}  // namespace orrery

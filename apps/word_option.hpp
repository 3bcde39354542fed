// apps/word_option.hpp - an option whose value is one of the words of an enumeration.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/format/field_writer.hpp"

namespace orrery {

/// Adds the option; other words are refused with a list of those that there are. `value` outlives
/// the app and has the default.
template <class Enum>
void add_word_option(CLI::App& app, const std::string& name, Enum& value, const std::string& help) {
  std::vector<std::string> words;
  for (const auto& each : enum_words(Enum{})) words.emplace_back(each.word);
  app.add_option_function<std::string>(
         name,
         [&value](const std::string& word) {
           for (const auto& each : enum_words(Enum{})) {
             if (each.word == word) value = each.value;
           }
         },
         help)
      ->default_str(std::string(word_of(value)))
      ->check(CLI::IsMember(words));
}

}  // namespace orrery

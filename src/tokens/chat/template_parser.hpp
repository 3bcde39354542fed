// tokens/chat/template_parser.hpp - a cursor over the words of a template, and the grammar of
// expressions (Jinja 3.1).
//
// Used by parse_template alone; one thread. Invariant: every node is made by `make`, which bounds
// the depth of the tree. Cost: O(words).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tokens/chat/template_lexer.hpp"
#include "tokens/chat/template_node.hpp"

namespace orrery {

class WordCursor {
 public:
  using Kind = TemplateWord::Kind;

  explicit WordCursor(std::vector<TemplateWord> words) : words_(std::move(words)) {}

  [[nodiscard]] const TemplateWord& word() const { return words_[at_]; }
  [[nodiscard]] bool is(Kind kind) const { return word().kind == kind; }
  [[nodiscard]] bool is_sign(std::string_view sign) const {
    return is(Kind::kSign) && word().text == sign;
  }
  [[nodiscard]] bool is_name(std::string_view name) const {
    return is(Kind::kName) && word().text == name;
  }
  [[nodiscard]] const TemplateWord& next_word() const {
    return words_[at_ + 1 < words_.size() ? at_ + 1 : at_];
  }
  /// Returns the word and goes on.
  TemplateWord take();
  bool take_sign(std::string_view sign);
  bool take_name(std::string_view name);
  void expect_sign(std::string_view sign);
  void expect_name(std::string_view name);
  std::string expect_any_name();
  void expect(Kind kind, std::string_view shown);
  [[noreturn]] void fail(std::string_view expected) const;

 private:
  std::vector<TemplateWord> words_;
  std::size_t at_ = 0;
};

/// Makes a node; throws if the tree becomes too deep.
[[nodiscard]] TemplateNode::Child make_node(TemplateNode node);

class ExpressionParser {
 public:
  using Child = TemplateNode::Child;

  explicit ExpressionParser(WordCursor& words) : words_(words) {}

  enum class Condition : std::uint8_t { kAllowed, kLeftOut };
  /// An expression, or several with commas as a tuple.
  [[nodiscard]] Child tuple(Condition condition);
  [[nodiscard]] Child expression();
  /// What a value is assigned to: a name, names with commas, or "name.attribute".
  [[nodiscard]] Child target();
  /// "filter(arguments)|..." behind an input, which may be null.
  [[nodiscard]] Child filters(Child input);
  [[nodiscard]] Child postfix(Child object);
  [[nodiscard]] Child primary();
  /// Reads "(arguments)" into a node.
  void arguments(TemplateNode& to);

 private:
  enum class Filters : std::uint8_t { kAllowed, kLeftOut };

  Child condition();
  Child any();
  Child all();
  Child negation();
  Child comparison();
  Child sum();
  Child concatenation();
  Child product();
  Child power();
  Child unary(Filters filters);
  Child filters_and_tests(Child input);
  Child test(Child input);
  Child subscript(Child object);
  Child bracketed_list();
  Child mapping();
  Child name();
  Child binary(const TemplateWord& sign, Child left, Child right);
  [[nodiscard]] bool is_comparison() const;
  std::string take_comparison();

  WordCursor& words_;
  int nested_ = 0;

  friend class NestingGuard;
};

}  // namespace orrery

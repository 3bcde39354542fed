#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "base/text/utf8.hpp"
#include "tokens/chat/template_names.hpp"
#include "tokens/chat/template_parser.hpp"

namespace orrery {

using Child = TemplateNode::Child;
using TreeKind = TemplateNode::Kind;

/// Counts how deep the parser has called itself.
class NestingGuard {
 public:
  explicit NestingGuard(ExpressionParser& parser) : parser_(parser) {
    if (++parser_.nested_ > TemplateNode::kDepthMax / 2) template_fault("nested too deep");
  }
  NestingGuard(const NestingGuard&) = delete;
  NestingGuard& operator=(const NestingGuard&) = delete;
  ~NestingGuard() { --parser_.nested_; }

 private:
  ExpressionParser& parser_;
};

TemplateWord WordCursor::take() {
  TemplateWord word = words_[at_];
  if (at_ + 1 < words_.size()) ++at_;
  return word;
}

bool WordCursor::take_sign(std::string_view sign) {
  if (!is_sign(sign)) return false;
  take();
  return true;
}

bool WordCursor::take_name(std::string_view name) {
  if (!is_name(name)) return false;
  take();
  return true;
}

void WordCursor::expect_sign(std::string_view sign) {
  if (!take_sign(sign)) fail(fmt::format("\"{}\"", sign));
}

void WordCursor::expect_name(std::string_view name) {
  if (!take_name(name)) fail(fmt::format("\"{}\"", name));
}

std::string WordCursor::expect_any_name() {
  if (!is(Kind::kName)) fail("a name");
  return take().text;
}

void WordCursor::expect(Kind kind, std::string_view shown) {
  if (!is(kind)) fail(fmt::format("\"{}\"", shown));
  take();
}

void WordCursor::fail(std::string_view expected) const {
  const std::string got =
      is(Kind::kEnd) ? "the end" : fmt::format("\"{}\"", printable(word().text, 40));
  throw TemplateFault{fmt::format("expected {}, got {}", expected, got), word().line};
}

Child make_node(TemplateNode node) {
  for (const Child& child : node.children) {
    if (child) node.depth = std::max(node.depth, child->depth + 1);
  }
  if (node.depth > TemplateNode::kDepthMax) {
    throw TemplateFault{"the template is nested too deep", node.line};
  }
  return std::make_unique<const TemplateNode>(std::move(node));
}

namespace {

TemplateNode begun(TreeKind kind, int line) {
  TemplateNode node;
  node.kind = kind;
  node.line = line;
  return node;
}

template <class... Children>
Child with(TemplateNode node, Children... children) {
  (node.children.push_back(std::move(children)), ...);
  return make_node(std::move(node));
}

Child constant(TemplateValue value, int line) {
  TemplateNode node = begun(TreeKind::kConstant, line);
  node.value = std::move(value);
  return make_node(std::move(node));
}

Child integer(const TemplateWord& word) {
  std::int64_t value = 0;
  const char* end = word.text.data() + word.text.size();
  const auto [at, failed] = std::from_chars(word.text.data(), end, value);
  if (failed != std::errc() || at != end) {
    throw TemplateFault{fmt::format("the number {} is too large", printable(word.text, 40)),
                        word.line};
  }
  return constant(TemplateValue(value), word.line);
}

}  // namespace

Child ExpressionParser::tuple(Condition allowed) {
  const int line = words_.word().line;
  const auto one = [&] { return allowed == Condition::kAllowed ? expression() : any(); };
  TemplateNode node = begun(TreeKind::kTuple, line);
  node.children.push_back(one());
  if (!words_.is_sign(",")) return std::move(node.children.front());
  while (words_.take_sign(",")) {
    const bool ends = words_.is(WordCursor::Kind::kBlockEnd) || words_.is_sign(")") ||
                      words_.is(WordCursor::Kind::kPrintEnd) || words_.is_name("in");
    if (ends) break;
    node.children.push_back(one());
  }
  return make_node(std::move(node));
}

Child ExpressionParser::expression() {
  const NestingGuard guard(*this);
  return condition();
}

Child ExpressionParser::condition() {
  Child then = any();
  while (words_.is_name("if")) {
    const int line = words_.take().line;
    Child test = any();
    Child otherwise;
    if (words_.take_name("else")) {
      const NestingGuard guard(*this);
      otherwise = condition();
    }
    then = with(begun(TreeKind::kCondition, line), std::move(then), std::move(test),
                std::move(otherwise));
  }
  return then;
}

Child ExpressionParser::any() {
  Child left = all();
  while (words_.is_name("or")) {
    const int line = words_.take().line;
    left = with(begun(TreeKind::kOr, line), std::move(left), all());
  }
  return left;
}

Child ExpressionParser::all() {
  Child left = negation();
  while (words_.is_name("and")) {
    const int line = words_.take().line;
    left = with(begun(TreeKind::kAnd, line), std::move(left), negation());
  }
  return left;
}

Child ExpressionParser::negation() {
  if (!words_.is_name("not")) return comparison();
  const NestingGuard guard(*this);
  const int line = words_.take().line;
  return with(begun(TreeKind::kNot, line), negation());
}

bool ExpressionParser::is_comparison() const {
  constexpr std::array<std::string_view, 6> kSigns = {"==", "!=", "<", "<=", ">", ">="};
  const TemplateWord& word = words_.word();
  if (word.kind == WordCursor::Kind::kSign)
    return std::ranges::find(kSigns, word.text) != kSigns.end();
  const bool not_in = words_.is_name("not") && words_.next_word().text == "in";
  return words_.is_name("in") || not_in;
}

std::string ExpressionParser::take_comparison() {
  std::string sign = words_.take().text;
  if (sign == "not") sign += " " + words_.take().text;
  return sign;
}

Child ExpressionParser::comparison() {
  Child first = sum();
  if (!is_comparison()) return first;
  TemplateNode node = begun(TreeKind::kCompare, words_.word().line);
  node.children.push_back(std::move(first));
  while (is_comparison()) {
    node.names.push_back(take_comparison());
    node.children.push_back(sum());
  }
  return make_node(std::move(node));
}

Child ExpressionParser::binary(const TemplateWord& sign, Child left, Child right) {
  TemplateNode node = begun(TreeKind::kBinary, sign.line);
  node.text = sign.text;
  return with(std::move(node), std::move(left), std::move(right));
}

Child ExpressionParser::sum() {
  Child left = concatenation();
  while (words_.is_sign("+") || words_.is_sign("-")) {
    const TemplateWord sign = words_.take();
    left = binary(sign, std::move(left), concatenation());
  }
  return left;
}

Child ExpressionParser::concatenation() {
  Child left = product();
  while (words_.is_sign("~")) {
    const TemplateWord sign = words_.take();
    left = binary(sign, std::move(left), product());
  }
  return left;
}

Child ExpressionParser::product() {
  Child left = power();
  while (words_.is_sign("*") || words_.is_sign("/") || words_.is_sign("//") ||
         words_.is_sign("%")) {
    const TemplateWord sign = words_.take();
    left = binary(sign, std::move(left), power());
  }
  return left;
}

Child ExpressionParser::power() {
  Child left = unary(Filters::kAllowed);
  while (words_.is_sign("**")) {
    const TemplateWord sign = words_.take();
    left = binary(sign, std::move(left), unary(Filters::kAllowed));
  }
  return left;
}

Child ExpressionParser::unary(Filters allowed) {
  Child made;
  if (words_.is_sign("-") || words_.is_sign("+")) {
    const NestingGuard guard(*this);
    TemplateNode node = begun(TreeKind::kUnary, words_.word().line);
    node.text = words_.take().text;
    made = with(std::move(node), unary(Filters::kLeftOut));
  } else {
    made = primary();
  }
  made = postfix(std::move(made));
  return allowed == Filters::kAllowed ? filters_and_tests(std::move(made)) : std::move(made);
}

Child ExpressionParser::primary() {
  using Kind = WordCursor::Kind;
  const NestingGuard guard(*this);
  const int line = words_.word().line;
  if (words_.is(Kind::kName)) return name();
  if (words_.is(Kind::kInteger)) return integer(words_.take());
  if (words_.is(Kind::kFloat)) {
    return constant(TemplateValue(std::strtod(words_.take().text.c_str(), nullptr)), line);
  }
  if (words_.is(Kind::kString)) {
    std::string text;
    while (words_.is(Kind::kString)) text += words_.take().text;
    return constant(TemplateValue::text(std::move(text)), line);
  }
  if (words_.is_sign("[")) return bracketed_list();
  if (words_.is_sign("{")) return mapping();
  if (!words_.take_sign("(")) words_.fail("an expression");
  if (words_.take_sign(")")) return make_node(begun(TreeKind::kTuple, line));
  Child inner = tuple(Condition::kAllowed);
  words_.expect_sign(")");
  return inner;
}

Child ExpressionParser::name() {
  const TemplateWord word = words_.take();
  if (word.text == "true" || word.text == "True") return constant(TemplateValue(true), word.line);
  if (word.text == "false" || word.text == "False") {
    return constant(TemplateValue(false), word.line);
  }
  if (word.text == "none" || word.text == "None") return constant({}, word.line);
  TemplateNode node = begun(TreeKind::kName, word.line);
  node.text = word.text;
  return make_node(std::move(node));
}

Child ExpressionParser::bracketed_list() {
  TemplateNode node = begun(TreeKind::kList, words_.take().line);
  while (!words_.is_sign("]")) {
    if (!node.children.empty()) words_.expect_sign(",");
    if (words_.is_sign("]")) break;
    node.children.push_back(expression());
  }
  words_.expect_sign("]");
  return make_node(std::move(node));
}

Child ExpressionParser::mapping() {
  TemplateNode node = begun(TreeKind::kMapping, words_.take().line);
  while (!words_.is_sign("}")) {
    if (!node.children.empty()) words_.expect_sign(",");
    if (words_.is_sign("}")) break;
    node.children.push_back(expression());
    words_.expect_sign(":");
    node.children.push_back(expression());
  }
  words_.expect_sign("}");
  return make_node(std::move(node));
}

Child ExpressionParser::postfix(Child object) {
  while (true) {
    if (words_.is_sign(".")) {
      TemplateNode node = begun(TreeKind::kAttribute, words_.take().line);
      if (words_.is(WordCursor::Kind::kInteger)) {
        node.kind = TreeKind::kItem;
        Child index = integer(words_.take());
        object = with(std::move(node), std::move(object), std::move(index));
        continue;
      }
      node.text = words_.expect_any_name();
      object = with(std::move(node), std::move(object));
    } else if (words_.is_sign("[")) {
      object = subscript(std::move(object));
    } else if (words_.is_sign("(")) {
      TemplateNode node = begun(TreeKind::kCall, words_.word().line);
      node.children.push_back(std::move(object));
      node.names.emplace_back();
      arguments(node);
      object = make_node(std::move(node));
    } else {
      return object;
    }
  }
}

Child ExpressionParser::subscript(Child object) {
  const int line = words_.take().line;
  Child start;
  if (!words_.is_sign(":")) start = expression();
  if (words_.take_sign("]")) {
    return with(begun(TreeKind::kItem, line), std::move(object), std::move(start));
  }
  std::array<Child, 2> rest;
  words_.expect_sign(":");
  for (Child& each : rest) {
    if (!words_.is_sign(":") && !words_.is_sign("]")) each = expression();
    if (!words_.take_sign(":")) break;
  }
  words_.expect_sign("]");
  return with(begun(TreeKind::kSlice, line), std::move(object), std::move(start),
              std::move(rest[0]), std::move(rest[1]));
}

void ExpressionParser::arguments(TemplateNode& to) {
  words_.expect_sign("(");
  bool first = true;
  bool keywords = false;
  while (!words_.is_sign(")")) {
    if (!std::exchange(first, false)) words_.expect_sign(",");
    if (words_.is_sign(")")) break;
    if (words_.is_sign("*") || words_.is_sign("**")) words_.fail("an argument");
    std::string keyword;
    if (words_.is(WordCursor::Kind::kName) && words_.next_word().kind == WordCursor::Kind::kSign &&
        words_.next_word().text == "=") {
      keyword = words_.take().text;
      words_.take();
      keywords = true;
    } else if (keywords) {
      words_.fail("a keyword argument");
    }
    to.children.push_back(expression());
    to.names.push_back(std::move(keyword));
  }
  words_.expect_sign(")");
}

Child ExpressionParser::filters(Child input) {
  bool first = input == nullptr;
  while (words_.is_sign("|") || first) {
    if (!std::exchange(first, false)) words_.take();
    TemplateNode node = begun(TreeKind::kFilter, words_.word().line);
    node.text = words_.expect_any_name();
    if (!is_template_filter(node.text)) {
      throw TemplateFault{fmt::format("the filter '{}' is not supported", node.text), node.line};
    }
    node.children.push_back(std::move(input));
    node.names.emplace_back();
    if (words_.is_sign("(")) arguments(node);
    input = make_node(std::move(node));
  }
  return input;
}

Child ExpressionParser::filters_and_tests(Child input) {
  while (true) {
    if (words_.is_sign("|")) {
      input = filters(std::move(input));
    } else if (words_.is_name("is")) {
      input = test(std::move(input));
    } else if (words_.is_sign("(")) {
      input = postfix(std::move(input));
    } else {
      return input;
    }
  }
}

Child ExpressionParser::test(Child input) {
  using Kind = WordCursor::Kind;
  TemplateNode node = begun(TreeKind::kTest, words_.take().line);
  const bool negated = words_.take_name("not");
  node.text = words_.expect_any_name();
  if (!is_template_test(node.text)) {
    throw TemplateFault{fmt::format("the test '{}' is not supported", node.text), node.line};
  }
  node.children.push_back(std::move(input));
  node.names.emplace_back();
  const bool opens = words_.is(Kind::kName) || words_.is(Kind::kString) ||
                     words_.is(Kind::kInteger) || words_.is(Kind::kFloat) || words_.is_sign("[") ||
                     words_.is_sign("{");
  const bool ends = words_.is_name("else") || words_.is_name("or") || words_.is_name("and");
  if (words_.is_sign("(")) {
    arguments(node);
  } else if (opens && !ends) {
    if (words_.is_name("is")) words_.fail("no second test");
    node.children.push_back(postfix(primary()));
    node.names.emplace_back();
  }
  const int line = node.line;
  Child made = make_node(std::move(node));
  return negated ? with(begun(TreeKind::kNot, line), std::move(made)) : std::move(made);
}

Child ExpressionParser::target() {
  TemplateNode node = begun(TreeKind::kTuple, words_.word().line);
  const bool bracketed = words_.take_sign("(");
  bool several = false;
  do {
    if (!node.children.empty()) several = true;
    if (words_.is_name("in") || words_.is_sign("=") || words_.is_sign(")")) break;
    TemplateNode one = begun(TreeKind::kName, words_.word().line);
    one.text = words_.expect_any_name();
    constexpr std::array<std::string_view, 6> kTaken = {"true", "false", "none",
                                                        "True", "False", "None"};
    if (std::ranges::find(kTaken, one.text) != kTaken.end()) words_.fail("a name to assign to");
    Child made = make_node(std::move(one));
    if (words_.take_sign(".")) {
      TemplateNode attribute = begun(TreeKind::kAttribute, made->line);
      attribute.text = words_.expect_any_name();
      made = with(std::move(attribute), std::move(made));
    }
    node.children.push_back(std::move(made));
  } while (words_.take_sign(","));
  if (bracketed) words_.expect_sign(")");
  if (node.children.empty()) words_.fail("a name to assign to");
  return several ? make_node(std::move(node)) : std::move(node.children.front());
}

}  // namespace orrery

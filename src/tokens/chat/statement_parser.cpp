#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "base/text/utf8.hpp"
#include "tokens/chat/template_node.hpp"
#include "tokens/chat/template_parser.hpp"

namespace orrery {
namespace {

using Child = TemplateNode::Child;
using TreeKind = TemplateNode::Kind;
using WordKind = TemplateWord::Kind;

TemplateNode node_of(TreeKind kind, int line) {
  TemplateNode node;
  node.kind = kind;
  node.line = line;
  return node;
}

class StatementParser {
 public:
  explicit StatementParser(std::vector<TemplateWord> words)
      : words_(std::move(words)), expressions_(words_) {}

  Child read() {
    Child all = block({});
    if (!words_.is(WordKind::kEnd)) words_.fail("a statement");
    return all;
  }

 private:
  using Names = std::initializer_list<std::string_view>;

  /// Reads up to a tag with one of the names, which is left; the end if there are no names.
  Child block(Names ends);
  /// Reads a block and its end tag.
  Child closed_block(std::string_view end);
  Child statement();
  Child read_if(int line);
  Child read_for(int line);
  Child read_set(int line);
  Child read_macro(int line);
  Child read_call(int line);
  Child read_filter(int line);
  Child read_with(int line);
  Child read_generation(int line);
  Child jump(TreeKind kind, int line);
  void parameters(TemplateNode& macro);
  void end_tag() { words_.expect(WordKind::kBlockEnd, "%}"); }

  WordCursor words_;
  ExpressionParser expressions_;
  int nested_ = 0;
  int loops_ = 0;
};

Child StatementParser::block(Names ends) {
  if (++nested_ > TemplateNode::kDepthMax / 4) template_fault("blocks are nested too deep");
  TemplateNode node = node_of(TreeKind::kBlock, words_.word().line);
  while (!words_.is(WordKind::kEnd)) {
    if (words_.is(WordKind::kText)) {
      TemplateNode text = node_of(TreeKind::kText, words_.word().line);
      text.text = words_.take().text;
      node.children.push_back(make_node(std::move(text)));
    } else if (words_.is(WordKind::kPrintBegin)) {
      TemplateNode print = node_of(TreeKind::kPrint, words_.take().line);
      print.children.push_back(expressions_.tuple(ExpressionParser::Condition::kAllowed));
      words_.expect(WordKind::kPrintEnd, "}}");
      node.children.push_back(make_node(std::move(print)));
    } else {
      const bool found = std::ranges::find(ends, words_.next_word().text) != ends.end();
      if (found) break;
      words_.take();
      node.children.push_back(statement());
    }
  }
  --nested_;
  return make_node(std::move(node));
}

Child StatementParser::closed_block(std::string_view end) {
  Child made = block({end});
  words_.expect(WordKind::kBlockBegin, "{%");
  words_.expect_name(end);
  return made;
}

Child StatementParser::statement() {
  const int line = words_.word().line;
  const std::string name = words_.expect_any_name();
  if (name == "if") return read_if(line);
  if (name == "for") return read_for(line);
  if (name == "set") return read_set(line);
  if (name == "macro") return read_macro(line);
  if (name == "call") return read_call(line);
  if (name == "filter") return read_filter(line);
  if (name == "with") return read_with(line);
  if (name == "generation") return read_generation(line);
  if (name == "break") return jump(TreeKind::kBreak, line);
  if (name == "continue") return jump(TreeKind::kContinue, line);
  throw TemplateFault{
      fmt::format("the statement \"{}\" is not supported here", printable(name, 40)), line};
}

Child StatementParser::jump(TreeKind kind, int line) {
  if (loops_ == 0) throw TemplateFault{"expected a loop around break and continue", line};
  end_tag();
  return make_node(node_of(kind, line));
}

Child StatementParser::read_if(int line) {
  TemplateNode node = node_of(TreeKind::kIf, line);
  while (true) {
    node.children.push_back(expressions_.tuple(ExpressionParser::Condition::kLeftOut));
    end_tag();
    node.children.push_back(block({"elif", "else", "endif"}));
    words_.expect(WordKind::kBlockBegin, "{%");
    if (words_.take_name("elif")) continue;
    if (words_.take_name("else")) {
      end_tag();
      node.children.push_back(closed_block("endif"));
    } else {
      words_.expect_name("endif");
    }
    end_tag();
    return make_node(std::move(node));
  }
}

Child StatementParser::read_for(int line) {
  TemplateNode node = node_of(TreeKind::kFor, line);
  node.children.push_back(expressions_.target());
  words_.expect_name("in");
  node.children.push_back(expressions_.tuple(ExpressionParser::Condition::kLeftOut));
  node.children.push_back(words_.take_name("if") ? expressions_.expression() : nullptr);
  if (words_.is_name("recursive")) words_.fail("a loop that is not recursive");
  end_tag();
  ++loops_;
  node.children.push_back(block({"else", "endfor"}));
  --loops_;
  words_.expect(WordKind::kBlockBegin, "{%");
  Child otherwise;
  if (words_.take_name("else")) {
    end_tag();
    otherwise = closed_block("endfor");
  } else {
    words_.expect_name("endfor");
  }
  end_tag();
  node.children.push_back(std::move(otherwise));
  return make_node(std::move(node));
}

Child StatementParser::read_set(int line) {
  TemplateNode node = node_of(TreeKind::kSet, line);
  node.children.push_back(expressions_.target());
  if (words_.take_sign("=")) {
    node.children.push_back(expressions_.tuple(ExpressionParser::Condition::kAllowed));
    end_tag();
    return make_node(std::move(node));
  }
  node.kind = TreeKind::kSetBlock;
  Child filter;
  if (words_.take_sign("|")) filter = expressions_.filters(nullptr);
  end_tag();
  node.children.push_back(closed_block("endset"));
  end_tag();
  node.children.push_back(std::move(filter));
  return make_node(std::move(node));
}

void StatementParser::parameters(TemplateNode& macro) {
  words_.expect_sign("(");
  bool defaults = false;
  while (!words_.is_sign(")")) {
    if (!macro.names.empty()) words_.expect_sign(",");
    if (words_.is_sign(")")) break;
    macro.names.push_back(words_.expect_any_name());
    if (words_.take_sign("=")) {
      defaults = true;
      macro.children.push_back(expressions_.expression());
    } else {
      if (defaults) words_.fail("a default value");
      macro.children.push_back(nullptr);
    }
  }
  words_.expect_sign(")");
}

Child StatementParser::read_macro(int line) {
  TemplateNode node = node_of(TreeKind::kMacro, line);
  node.text = words_.expect_any_name();
  parameters(node);
  end_tag();
  const int loops = std::exchange(loops_, 0);
  node.children.push_back(closed_block("endmacro"));
  loops_ = loops;
  end_tag();
  return make_node(std::move(node));
}

Child StatementParser::read_call(int line) {
  TemplateNode caller = node_of(TreeKind::kMacro, line);
  caller.text = "caller";
  if (words_.is_sign("(")) parameters(caller);
  TemplateNode node = node_of(TreeKind::kCallBlock, line);
  node.children.push_back(expressions_.expression());
  if (node.children.front()->kind != TreeKind::kCall) words_.fail("a call");
  end_tag();
  const int loops = std::exchange(loops_, 0);
  caller.children.push_back(closed_block("endcall"));
  loops_ = loops;
  end_tag();
  node.children.push_back(make_node(std::move(caller)));
  return make_node(std::move(node));
}

Child StatementParser::read_filter(int line) {
  TemplateNode node = node_of(TreeKind::kFilterBlock, line);
  node.children.push_back(expressions_.filters(nullptr));
  end_tag();
  node.children.push_back(closed_block("endfilter"));
  end_tag();
  return make_node(std::move(node));
}

Child StatementParser::read_with(int line) {
  TemplateNode node = node_of(TreeKind::kWith, line);
  while (!words_.is(WordKind::kBlockEnd)) {
    if (!node.children.empty()) words_.expect_sign(",");
    TemplateNode name = node_of(TreeKind::kName, words_.word().line);
    name.text = words_.expect_any_name();
    words_.expect_sign("=");
    node.children.push_back(make_node(std::move(name)));
    node.children.push_back(expressions_.expression());
  }
  end_tag();
  node.children.push_back(closed_block("endwith"));
  end_tag();
  return make_node(std::move(node));
}

Child StatementParser::read_generation(int line) {
  TemplateNode node = node_of(TreeKind::kScoped, line);
  end_tag();
  const int loops = std::exchange(loops_, 0);
  node.children.push_back(closed_block("endgeneration"));
  loops_ = loops;
  end_tag();
  return make_node(std::move(node));
}

}  // namespace

Child parse_template(std::string_view text) { return StatementParser(template_words(text)).read(); }

}  // namespace orrery

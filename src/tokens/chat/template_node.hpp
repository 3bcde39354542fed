// tokens/chat/template_node.hpp - the tree of a template.
//
// Made by parse_template, then immutable: safe from every thread. Invariant: the tree is at most
// kDepthMax deep, so that what walks it may recurse.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokens/chat/template_value.hpp"

namespace orrery {

struct TemplateNode {
  /// Children in brackets; [x] may be null.
  enum class Kind : std::uint8_t {
    // expressions
    kConstant,   ///< value
    kName,       ///< text
    kList,       ///< [items...]
    kTuple,      ///< [items...]
    kMapping,    ///< [key, value, ...]
    kAttribute,  ///< text; [object]
    kItem,       ///< [object, key]
    kSlice,      ///< [object, start, stop, step]
    kCall,       ///< [callee, arguments...]; names of keyword arguments, "" for the others
    kFilter,     ///< text; [input, arguments...]; names as kCall; input null in a block
    kTest,       ///< text; [input, arguments...]; names as kCall
    kUnary,      ///< text; [operand]
    kBinary,     ///< text; [left, right]
    kCompare,    ///< [first, others...]; names: operators
    kAnd,
    kOr,
    kNot,
    kCondition,  ///< [then, test, else]
    // statements
    kBlock,      ///< [statements...]
    kText,       ///< text
    kPrint,      ///< [expression]
    kIf,         ///< [test, block, test, block, ..., else]
    kFor,        ///< [target, iterable, filter, body, else]
    kSet,        ///< [target, expression]
    kSetBlock,   ///< [target, body, filter]
    kMacro,      ///< text; [defaults..., body]; names: parameters; defaults null if there are none
    kCallBlock,  ///< [call, macro]
    kFilterBlock,  ///< [filter, body]
    kWith,         ///< [target, value, ..., body]
    kScoped,       ///< [body]
    kBreak,
    kContinue,
  };
  using Child = std::unique_ptr<const TemplateNode>;
  static constexpr int kDepthMax = 200;

  Kind kind = Kind::kBlock;
  int line = 0;
  int depth = 1;
  std::string text;
  std::vector<Child> children;
  std::vector<std::string> names;
  TemplateValue value;
};

/// Reads a template. Throws TemplateFault.
[[nodiscard]] TemplateNode::Child parse_template(std::string_view text);

}  // namespace orrery

// base/format/document.hpp - a YAML or JSON file as an immutable tree whose every node knows its
// place.
//
// Built by Document::parse from text (libyaml does the scanning), read through DocumentNode
// handles, which stay valid as long as their Document is not moved. Error-prone features of YAML
// are refused with a position: anchors and aliases, tags, duplicate keys, keys that are not
// scalars, nesting deeper than 64, invalid UTF-8, and several documents in a file, but for
// parse_all. JSON is a subset and needs no switch. Cost: O(bytes) time; about 32 bytes a node
// beside the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace orrery {

class Document;

enum class NodeKind : std::uint8_t { kNull, kScalar, kSequence, kMapping };

/// One node of a Document: null, a scalar, a sequence, or a mapping (keys in file order).
class DocumentNode {
 public:
  [[nodiscard]] NodeKind kind() const;
  /// Describes the node for a message: "a mapping", "\"text\"", ...
  [[nodiscard]] std::string shown() const;
  /// The scalar's text, unquoted and unescaped; "" for other kinds.
  [[nodiscard]] std::string_view text() const;
  /// A quoted scalar is a string, whatever it looks like.
  [[nodiscard]] bool quoted() const;
  [[nodiscard]] SourcePosition position() const;

  /// Items of a sequence, or entries of a mapping.
  [[nodiscard]] std::size_t size() const;
  /// Items of a sequence; empty for other kinds. O(size).
  [[nodiscard]] std::vector<DocumentNode> items() const;

  struct Entry;
  /// Entries of a mapping; empty for other kinds. O(size).
  [[nodiscard]] std::vector<Entry> entries() const;

 private:
  friend class Document;
  friend class DocumentBuilder;
  DocumentNode(const Document& document, std::uint32_t record)
      : document_(&document), record_(record) {}
  const Document* document_;
  std::uint32_t record_;
};

struct DocumentNode::Entry {
  DocumentNode key;
  DocumentNode value;
};

class Document {
 public:
  static constexpr std::size_t kSizeMax = 8u << 20;
  static constexpr std::size_t kDepthMax = 64;
  static constexpr std::size_t kDocumentsMax = 1'000;

  /// `file` names the text in messages. Errors: ErrorKind::kInput with line and column.
  [[nodiscard]] static Result<Document> parse(std::string_view text, std::string file);

  /// Returns the documents of a text, which lines of "---" separate; empty ones are left out, and
  /// there is at least one. Errors: as parse; more than kDocumentsMax.
  [[nodiscard]] static Result<std::vector<Document>> parse_all(std::string_view text,
                                                               const std::string& file);

  /// Reads and parses a file of at most kSizeMax bytes; "-" is standard input.
  [[nodiscard]] static Result<Document> load(const std::string& path);

  [[nodiscard]] const std::string& file() const { return file_; }
  /// The line of a text at which the document begins, from 1: that of its "---" if it has one.
  [[nodiscard]] int line() const { return line_; }
  [[nodiscard]] DocumentNode root() const { return DocumentNode(*this, 0); }

 private:
  friend class DocumentNode;
  friend class DocumentBuilder;

  struct Record {
    NodeKind kind = NodeKind::kNull;
    bool quoted = false;
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    std::uint32_t text_begin = 0;
    std::uint32_t text_size = 0;
    std::uint32_t first_child = 0;
    std::uint32_t next = 0;  ///< next sibling; 0: none (the root is no sibling)
    std::uint32_t children = 0;
  };

  std::string file_;
  int line_ = 1;
  std::string text_;
  std::vector<Record> records_;
};

/// Reads a file of at most `size_max` bytes; "-" is standard input. Errors name the file.
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::size_t size_max);

}  // namespace orrery

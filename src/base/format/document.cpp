#include "base/format/document.hpp"

#include <fmt/format.h>
#include <yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>

#include "base/text/utf8.hpp"

namespace orrery {

NodeKind DocumentNode::kind() const { return document_->records_[record_].kind; }

std::string_view DocumentNode::text() const {
  const Document::Record& record = document_->records_[record_];
  return std::string_view(document_->text_).substr(record.text_begin, record.text_size);
}

bool DocumentNode::quoted() const { return document_->records_[record_].quoted; }

std::string DocumentNode::shown() const {
  switch (kind()) {
    case NodeKind::kNull:
      return "nothing";
    case NodeKind::kScalar:
      return fmt::format("\"{}\"", printable(text(), 60));
    case NodeKind::kSequence:
      return "a list";
    case NodeKind::kMapping:
      return "a mapping";
  }
  return "";
}

SourcePosition DocumentNode::position() const {
  const Document::Record& record = document_->records_[record_];
  return {document_->file_, static_cast<int>(record.line), static_cast<int>(record.column)};
}

std::size_t DocumentNode::size() const {
  const Document::Record& record = document_->records_[record_];
  return record.kind == NodeKind::kMapping ? record.children / 2 : record.children;
}

std::vector<DocumentNode> DocumentNode::items() const {
  std::vector<DocumentNode> items;
  if (kind() != NodeKind::kSequence) return items;
  items.reserve(size());
  for (std::uint32_t at = document_->records_[record_].first_child; at != 0;
       at = document_->records_[at].next) {
    items.push_back(DocumentNode(*document_, at));
  }
  return items;
}

std::vector<DocumentNode::Entry> DocumentNode::entries() const {
  std::vector<Entry> entries;
  if (kind() != NodeKind::kMapping) return entries;
  entries.reserve(size());
  std::uint32_t at = document_->records_[record_].first_child;
  while (at != 0) {
    const std::uint32_t value = document_->records_[at].next;
    entries.push_back({DocumentNode(*document_, at), DocumentNode(*document_, value)});
    at = document_->records_[value].next;
  }
  return entries;
}

// Turns libyaml's events into records; one per text.
class DocumentBuilder {
 public:
  DocumentBuilder(std::string file, std::string_view text, std::size_t most)
      : file_(std::move(file)), text_(text), most_(most) {
    yaml_parser_initialize(&parser_);
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  DocumentBuilder(const DocumentBuilder&) = delete;
  DocumentBuilder& operator=(const DocumentBuilder&) = delete;
  ~DocumentBuilder() { yaml_parser_delete(&parser_); }

  Result<std::vector<Document>> build() {
    for (bool more = true; more;) {
      yaml_event_t event;
      if (yaml_parser_parse(&parser_, &event) == 0) return scan_error();
      const std::unique_ptr<yaml_event_t, void (*)(yaml_event_t*)> owner(&event, yaml_event_delete);
      if (Status status = take(event); !status) return forward_error(status);
      more = event.type != YAML_STREAM_END_EVENT;
    }
    if (documents_.empty()) return input_error({file_, 1, 1}, "the file is empty");
    return std::move(documents_);
  }

 private:
  struct Open {
    std::uint32_t record;
    std::uint32_t last_child;
  };

  SourcePosition position(const yaml_mark_t& mark) const {
    return {file_, static_cast<int>(mark.line) + 1, static_cast<int>(mark.column) + 1};
  }

  tl::unexpected<Error> scan_error() const {
    const char* problem = parser_.problem != nullptr ? parser_.problem : "not readable as YAML";
    SourcePosition where = position(parser_.problem_mark);
    if (parser_.error == YAML_READER_ERROR) {  // it knows the byte, not the line
      const TextPlace place = place_of(text_, parser_.problem_offset);
      where.line = place.line;
      where.column = place.column;
    }
    return input_error(std::move(where), fmt::format("not valid YAML or JSON: {}", problem));
  }

  Status take(const yaml_event_t& event) {
    switch (event.type) {
      case YAML_DOCUMENT_START_EVENT:
        return begin_document(event);
      case YAML_ALIAS_EVENT:
        return input_error(position(event.start_mark), "aliases (*name) are not supported");
      case YAML_SCALAR_EVENT:
        return take_scalar(event);
      case YAML_SEQUENCE_START_EVENT:
        return open(event, NodeKind::kSequence, event.data.sequence_start.anchor,
                    event.data.sequence_start.tag);
      case YAML_MAPPING_START_EVENT:
        return open(event, NodeKind::kMapping, event.data.mapping_start.anchor,
                    event.data.mapping_start.tag);
      case YAML_SEQUENCE_END_EVENT:
        open_.pop_back();
        return {};
      case YAML_MAPPING_END_EVENT: {
        const std::uint32_t record = open_.back().record;
        open_.pop_back();
        return check_keys(record);
      }
      case YAML_DOCUMENT_END_EVENT:
        // The text after the last "---" may hold nothing but comments.
        if (most_ > 1 && document().root().kind() == NodeKind::kNull) documents_.pop_back();
        return {};
      case YAML_NO_EVENT:
      case YAML_STREAM_START_EVENT:
      case YAML_STREAM_END_EVENT:
        return {};
    }
    return {};
  }

  Status begin_document(const yaml_event_t& event) {
    if (documents_.size() == most_) {
      return input_error(position(event.start_mark),
                         most_ == 1
                             ? std::string("a second document; expected one a file")
                             : fmt::format("more than {} documents", Document::kDocumentsMax));
    }
    Document& document = documents_.emplace_back();
    document.file_ = file_;
    document.line_ = static_cast<int>(event.start_mark.line) + 1;
    return {};
  }

  Status take_scalar(const yaml_event_t& event) {
    const auto& scalar = event.data.scalar;
    if (Status plain = refuse_decoration(event, scalar.anchor, scalar.tag); !plain) return plain;
    Result<std::uint32_t> added = add(event, NodeKind::kScalar);
    if (!added) return forward_error(added);
    Document::Record& record = document().records_[*added];
    record.quoted = scalar.style != YAML_PLAIN_SCALAR_STYLE;
    const std::string_view text(reinterpret_cast<const char*>(scalar.value), scalar.length);
    const bool null = text.empty() || text == "~" || text == "null" || text == "Null";
    if (null && !record.quoted && !is_key(*added)) record.kind = NodeKind::kNull;
    record.text_begin = static_cast<std::uint32_t>(document().text_.size());
    record.text_size = static_cast<std::uint32_t>(text.size());
    document().text_.append(text);
    return {};
  }

  Status open(const yaml_event_t& event, NodeKind kind, const unsigned char* anchor,
              const unsigned char* tag) {
    if (Status plain = refuse_decoration(event, anchor, tag); !plain) return plain;
    if (open_.size() >= Document::kDepthMax) {
      return input_error(position(event.start_mark),
                         fmt::format("nested deeper than {} levels", Document::kDepthMax));
    }
    Result<std::uint32_t> added = add(event, kind);
    if (!added) return forward_error(added);
    if (is_key(*added)) {
      return input_error(position(event.start_mark), "a key that is a list or a mapping");
    }
    open_.push_back({*added, 0});
    return {};
  }

  Status refuse_decoration(const yaml_event_t& event, const unsigned char* anchor,
                           const unsigned char* tag) const {
    if (anchor != nullptr) {
      return input_error(position(event.start_mark), "anchors (&name) are not supported");
    }
    if (tag != nullptr) {
      return input_error(position(event.start_mark), "tags (!name) are not supported");
    }
    return {};
  }

  Result<std::uint32_t> add(const yaml_event_t& event, NodeKind kind) {
    constexpr std::size_t kRecordsMax = 2'000'000;
    if (document().records_.size() >= kRecordsMax) {
      return input_error(position(event.start_mark),
                         fmt::format("more than {} values", kRecordsMax));
    }
    const auto record = static_cast<std::uint32_t>(document().records_.size());
    Document::Record made;
    made.kind = kind;
    made.line = static_cast<std::uint32_t>(event.start_mark.line) + 1;
    made.column = static_cast<std::uint32_t>(event.start_mark.column) + 1;
    document().records_.push_back(made);
    if (!open_.empty()) append_child(record);
    return record;
  }

  void append_child(std::uint32_t record) {
    Open& parent = open_.back();
    if (parent.last_child == 0) {
      document().records_[parent.record].first_child = record;
    } else {
      document().records_[parent.last_child].next = record;
    }
    parent.last_child = record;
    ++document().records_[parent.record].children;
  }

  // The child just added to a mapping is a key when it makes the number of children odd.
  bool is_key(std::uint32_t record) const {
    if (open_.empty() || open_.back().record == record) return false;
    const Document::Record& parent = document().records_[open_.back().record];
    return parent.kind == NodeKind::kMapping && parent.children % 2 == 1;
  }

  Status check_keys(std::uint32_t record) const {
    std::vector<DocumentNode> keys;
    for (const auto& entry : DocumentNode(document(), record).entries()) keys.push_back(entry.key);
    std::sort(keys.begin(), keys.end(), [](const DocumentNode& a, const DocumentNode& b) {
      return a.text() != b.text() ? a.text() < b.text() : a.record_ < b.record_;
    });
    const auto twice = std::adjacent_find(
        keys.begin(), keys.end(),
        [](const DocumentNode& a, const DocumentNode& b) { return a.text() == b.text(); });
    if (twice == keys.end()) return {};
    return input_error(std::next(twice)->position(),
                       fmt::format("the key {} stands twice, first in line {}", twice->shown(),
                                   twice->position().line));
  }

  Document& document() { return documents_.back(); }
  const Document& document() const { return documents_.back(); }

  std::string file_;
  std::string_view text_;
  std::size_t most_;  ///< number of documents that are accepted
  yaml_parser_t parser_{};
  std::vector<Open> open_;
  std::vector<Document> documents_;
};

namespace {

Result<std::vector<Document>> built_from(std::string_view text, std::string file,
                                         std::size_t most) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark says nothing
  if (text.empty()) return input_error({std::move(file), 1, 1}, "the file is empty");
  if (text.size() > Document::kSizeMax) {
    return input_error({std::move(file), 1, 1},
                       fmt::format("{} bytes are more than the {} MiB a file may have", text.size(),
                                   Document::kSizeMax >> 20));
  }
  if (const std::size_t bad = first_invalid_utf8(text); bad != std::string_view::npos) {
    const TextPlace place = place_of(text, bad);
    return input_error({std::move(file), place.line, place.column},
                       fmt::format("byte 0x{:02x} is not valid UTF-8 text",
                                   static_cast<unsigned char>(text[bad])));
  }
  return DocumentBuilder(std::move(file), text, most).build();
}

}  // namespace

Result<Document> Document::parse(std::string_view text, std::string file) {
  Result<std::vector<Document>> built = built_from(text, std::move(file), 1);
  if (!built) return forward_error(built);
  return std::move(built->front());
}

Result<std::vector<Document>> Document::parse_all(std::string_view text, const std::string& file) {
  return built_from(text, file, kDocumentsMax);
}

Result<Document> Document::load(const std::string& path) {
  Result<std::string> text = read_file(path, kSizeMax);
  if (!text) return forward_error(text);
  return parse(*text, path == "-" ? "<stdin>" : path);
}

Result<std::string> read_file(const std::string& path, std::size_t size_max) {
  const bool standard_input = path == "-";
  const std::string shown = standard_input ? "<stdin>" : path;
  std::FILE* file = standard_input ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) return input_error({}, fmt::format("{}: {}", shown, std::strerror(errno)));
  std::string content;
  std::string chunk(1 << 16, '\0');
  while (content.size() <= size_max && std::feof(file) == 0 && std::ferror(file) == 0) {
    const std::size_t got = std::fread(chunk.data(), 1, chunk.size(), file);
    content.append(chunk, 0, got);
  }
  const bool failed = std::ferror(file) != 0;
  const int cause = errno;
  if (!standard_input) std::fclose(file);
  if (failed) return input_error({}, fmt::format("{}: {}", shown, std::strerror(cause)));
  if (content.size() > size_max) {
    return input_error({shown, 0, 0},
                       fmt::format("larger than the {} MiB a file may have", size_max >> 20));
  }
  return content;
}

}  // namespace orrery

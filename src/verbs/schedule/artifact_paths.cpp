#include "verbs/schedule/artifact_paths.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/format/document.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

/// The value of a key; none: a mapping without it, or another kind of node.
std::vector<DocumentNode> values_of(const DocumentNode& node, std::string_view key) {
  std::vector<DocumentNode> values;
  for (const DocumentNode::Entry& entry : node.entries()) {
    if (entry.key.text() == key) values.push_back(entry.value);
  }
  return values;
}

std::vector<DocumentNode> artifacts_of(const Document& document) {
  std::vector<DocumentNode> artifacts;
  for (const DocumentNode& revisions : values_of(document.root(), "revisions")) {
    for (const DocumentNode& revision : revisions.items()) {
      for (const DocumentNode& artifact : values_of(revision, "artifact")) {
        const bool relative = !artifact.text().empty() && !artifact.text().starts_with('/');
        if (relative) artifacts.push_back(artifact);
      }
    }
  }
  return artifacts;
}

/// Returns where in the text a line begins. Precondition: it has that line; lines count from 1.
std::size_t begin_of_line(std::string_view text, int line) {
  std::size_t at = 0;
  for (int passed = 1; passed < line; ++passed) at = text.find('\n', at) + 1;
  return at;
}

/// A path as a YAML scalar in double quotes.
std::string quoted(const std::string& path) {
  std::string text = "\"";
  for (const char c : path) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"";
}

/// Puts `path` in the place of a scalar. Error: the scalar is not written as one plain word.
Status replace(std::string& text, const DocumentNode& scalar, const std::string& path) {
  const SourcePosition where = scalar.position();
  const std::size_t line = begin_of_line(text, where.line);
  const std::size_t at = text.find(scalar.text(), line);
  const std::size_t end = std::min(text.find('\n', line), text.size());
  if (at == std::string::npos || at + scalar.text().size() > end) {
    return input_error(where, fmt::format("artifact is \"{}\", expected it on the line of its key, "
                                          "without escapes, or an absolute path",
                                          printable(scalar.text(), 60)));
  }
  const std::size_t marks = scalar.quoted() ? 1 : 0;
  text.replace(at - marks, scalar.text().size() + 2 * marks, quoted(path));
  return {};
}

}  // namespace

std::string quickstart_hint(const std::string& path) {
  return path.find("build/quickstart/") == std::string::npos ? ""
                                                             : "; run scripts/quickstart first";
}

Result<std::string> with_absolute_artifacts(std::string text, const std::string& file,
                                            const std::string& current) {
  const Result<Document> document = Document::parse(text, file);
  if (!document) return text;
  const std::vector<DocumentNode> artifacts = artifacts_of(*document);
  // From the last one on, so that the positions of those before it stay.
  for (auto each = artifacts.rbegin(); each != artifacts.rend(); ++each) {
    const std::string path =
        (std::filesystem::path(current) / each->text()).lexically_normal().string();
    std::error_code failed;
    // llama.cpp reads a file.
    const bool model = std::filesystem::is_directory(path, failed) ||
                       (path.ends_with(".gguf") && std::filesystem::exists(path, failed));
    if (!model) {
      return input_error(each->position(),
                         fmt::format("artifact: {} is not a directory{}", printable(path, 200),
                                     quickstart_hint(path)));
    }
    if (Status replaced = replace(text, *each, path); !replaced) return forward_error(replaced);
  }
  return text;
}

}  // namespace orrery

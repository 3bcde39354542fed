#include "twin/study/study_patch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

namespace orrery {
namespace {

using Patches = std::vector<const DocumentPatch*>;

std::string quoted_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Writes a scalar so that it is read back as it was: a number stays a number, anything else needs
/// quotes among commas.
std::string scalar_text(const DocumentNode& node) {
  const std::string_view text = node.text();
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, number);
  const bool plain = (failed == std::errc() && stop == end) || text == "true" || text == "True" ||
                     text == "false" || text == "False";
  return plain && !node.quoted() ? std::string(text) : quoted_text(text);
}

std::optional<std::size_t> item_of(const std::string& part) {
  std::size_t item = 0;
  const char* end = part.data() + part.size();
  const auto [stop, failed] = std::from_chars(part.data(), end, item);
  if (failed != std::errc() || stop != end) return std::nullopt;
  return item;
}

std::string shown_path(const DocumentPatch& patch, std::size_t parts) {
  return fmt::format("{}", fmt::join(patch.path.begin(),
                                     patch.path.begin() + static_cast<std::ptrdiff_t>(parts), "."));
}

/// Writes a tree; the first `depth` parts of every path are done.
class PatchWriter {
 public:
  Status write(DocumentNode node, Patches patches, std::size_t depth) {
    for (std::size_t i = patches.size(); i > 0; --i) {
      if (patches[i - 1]->path.size() != depth) continue;
      node = patches[i - 1]->value;
      patches.erase(patches.begin(), patches.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
    switch (node.kind()) {
      case NodeKind::kMapping:
        return write_mapping(node, patches, depth);
      case NodeKind::kSequence:
        return write_sequence(node, patches, depth);
      case NodeKind::kNull:
      case NodeKind::kScalar:
        break;
    }
    if (!patches.empty()) {
      const DocumentPatch& patch = *patches.front();
      return input_error(patch.where, fmt::format("\"{}\" is {}: expected a mapping or a list",
                                                  shown_path(patch, depth), node.shown()));
    }
    put(node.kind() == NodeKind::kNull ? "null" : scalar_text(node), node.position());
    return {};
  }

  PatchedText take() { return std::move(out_); }

 private:
  void put(std::string_view token, const SourcePosition& where) {
    out_.text.append(token).push_back('\n');
    out_.lines.push_back(where);
  }

  void put_key(std::string_view key, const SourcePosition& where) {
    put(quoted_text(key) + ":", where);
  }

  Status write_mapping(const DocumentNode& node, Patches patches, std::size_t depth) {
    put("{", node.position());
    for (const auto& [key, value] : node.entries()) {
      Patches inside;
      for (const DocumentPatch* patch : patches) {
        if (patch->path[depth] == key.text()) inside.push_back(patch);
      }
      std::erase_if(patches, [&](const DocumentPatch* p) { return p->path[depth] == key.text(); });
      put_key(key.text(), key.position());
      if (Status status = write(value, std::move(inside), depth + 1); !status) return status;
      put(",", node.position());
    }
    if (Status status = write_added(std::move(patches), depth); !status) return status;
    put("}", node.position());
    return {};
  }

  /// Writes the keys that the document did not have.
  Status write_added(Patches patches, std::size_t depth) {
    while (!patches.empty()) {
      const std::string key = patches.front()->path[depth];
      const SourcePosition where = patches.front()->where;
      Patches inside;
      bool whole = false;
      for (const DocumentPatch* patch : patches) {
        if (patch->path[depth] != key) continue;
        inside.push_back(patch);
        whole = whole || patch->path.size() == depth + 1;
      }
      std::erase_if(patches, [&](const DocumentPatch* p) { return p->path[depth] == key; });
      put_key(key, where);
      if (whole) {
        const DocumentNode any = inside.front()->value;
        if (Status status = write(any, std::move(inside), depth + 1); !status) return status;
      } else {
        put("{", where);
        if (Status status = write_added(std::move(inside), depth + 1); !status) return status;
        put("}", where);
      }
      put(",", where);
    }
    return {};
  }

  Status write_sequence(const DocumentNode& node, const Patches& patches, std::size_t depth) {
    const std::vector<DocumentNode> items = node.items();
    for (const DocumentPatch* patch : patches) {
      const std::optional<std::size_t> item = item_of(patch->path[depth]);
      if (patch->path[depth] == "*" || (item && *item < items.size())) continue;
      return input_error(
          patch->where,
          fmt::format("\"{}\" is a list of {}: expected a position from 0, or *, found \"{}\"",
                      shown_path(*patch, depth), items.size(), patch->path[depth]));
    }
    put("[", node.position());
    for (std::size_t i = 0; i < items.size(); ++i) {
      Patches inside;
      for (const DocumentPatch* patch : patches) {
        if (patch->path[depth] == "*" || item_of(patch->path[depth]) == i) inside.push_back(patch);
      }
      if (Status status = write(items[i], std::move(inside), depth + 1); !status) return status;
      put(",", node.position());
    }
    put("]", node.position());
    return {};
  }

  PatchedText out_;
};

}  // namespace

std::vector<std::string> patch_path(std::string_view text) {
  std::vector<std::string> path;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('.', begin), text.size());
    path.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return path;
}

Error PatchedText::located(Error error) const {
  const auto line = static_cast<std::size_t>(error.where.line);
  if (line >= 1 && line <= lines.size()) error.where = lines[line - 1];
  return error;
}

Result<PatchedText> patched_text(const DocumentNode& base, std::span<const DocumentPatch> patches,
                                 std::size_t behind) {
  Patches all;
  all.reserve(patches.size());
  for (const DocumentPatch& patch : patches) all.push_back(&patch);
  PatchWriter writer;
  if (Status status = writer.write(base, std::move(all), behind); !status)
    return forward_error(status);
  return writer.take();
}

}  // namespace orrery

// workload/kubernetes_list.hpp - the items of a List in JSON, as `kubectl get -o json` prints it.
//
// One item is parsed at a time, so that beside the text there is never more than one item in
// memory; an item has at most 8 MiB (the API server's store takes 1.5 MiB), and values nest at most
// 64 deep, since copying and printing a value takes stack by its depth. Not thread-safe.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "workload/trace_input/trace_text.hpp"

namespace orrery {

class KubernetesList {
 public:
  static constexpr std::size_t kItemMax = std::size_t{8} << 20;
  static constexpr int kDepthMax = 64;

  /// `text` must outlive the list and may begin with a byte order mark; `file` names it in
  /// messages.
  KubernetesList(std::string_view text, std::string file)
      : text_(without_byte_order_mark(text)), file_(std::move(file)) {}

  /// Returns the next item; none: the list has ended. Errors, with file:line:column: no JSON, no
  /// object with `items`, an item that is no object or too large, a value that nests too deep, text
  /// after the list.
  [[nodiscard]] Result<std::optional<nlohmann::json>> next();

  /// The position of the item that next() returned.
  [[nodiscard]] SourcePosition where() const { return {file_, item_line_, 1}; }

 private:
  enum class Stage { kBegin, kItems, kEnd };

  [[nodiscard]] Status find_items();
  [[nodiscard]] Status finish();
  [[nodiscard]] Status skip_value();
  [[nodiscard]] Result<std::string_view> key();
  void skip_blanks();
  [[nodiscard]] bool take(char wanted);
  [[nodiscard]] tl::unexpected<Error> expected(std::string_view what) const;

  std::string_view text_;
  std::string file_;
  Stage stage_ = Stage::kBegin;
  std::size_t at_ = 0;
  int line_ = 1;
  int item_line_ = 1;
};

/// Whether the text, after a byte order mark if any, begins like such a List rather than a file of
/// our own format.
[[nodiscard]] bool begins_kubernetes_list(std::string_view text);

/// A member of an object; nullptr if it does not exist or `object` is none.
[[nodiscard]] const nlohmann::json* json_member(const nlohmann::json* object,
                                                std::string_view name);
/// The text of a member; "" if it is no text or does not exist.
[[nodiscard]] std::string_view json_text(const nlohmann::json* object, std::string_view name);

}  // namespace orrery

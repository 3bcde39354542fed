// base/text_table.hpp - rows of text as aligned columns for a terminal.
#pragma once

#include <string>
#include <vector>

namespace orrery {

enum class Align { kLeft, kRight };

class TextTable {
 public:
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Missing cells are empty; surplus ones are a bug.
  void add(std::vector<std::string> cells);

  [[nodiscard]] bool empty() const { return rows_.empty(); }

  /// Two spaces between columns, no trailing blanks, a newline after each row; widths count code
  /// points, but those of colours. The titles come first unless all are empty.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// `text` broken at blanks into lines of at most `width` code points.
[[nodiscard]] std::vector<std::string> wrapped(const std::string& text, std::size_t width);

}  // namespace orrery

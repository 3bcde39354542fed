// base/text/text_table.hpp - rows of text as aligned columns for a terminal.
//
// Cells may hold text of any origin: what a terminal would obey is escaped (terminal_text), so a
// cell is one line and its colour is the table's own.
#pragma once

#include <string>
#include <string_view>
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

  /// Shows a cell of the newest row in a colour: the number of an SGR sequence, "32".
  /// Precondition: there is a row.
  void colour(std::size_t column, std::string_view code);

  [[nodiscard]] bool empty() const { return rows_.empty(); }

  /// Two spaces between columns, no trailing blanks, a newline after each row; widths count code
  /// points. The titles come first unless all are empty.
  [[nodiscard]] std::string text() const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::vector<std::string> colours;  ///< by column; empty: none
  };
  [[nodiscard]] std::string line(const std::vector<std::size_t>& widths, const Row& row) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

/// `text` broken at blanks into lines of at most `width` code points.
[[nodiscard]] std::vector<std::string> wrapped(const std::string& text, std::size_t width);

}  // namespace orrery

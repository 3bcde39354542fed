// report/page/html_page.hpp - pages, tables and figures of reports and studies: HTML that needs no
// other file and no network.
//
// Values in, text out; every text is escaped unless it is named html. The markup is also
// well-formed XML, but for the doctype and the script. Cost: O(bytes written).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/text_table.hpp"

namespace orrery {

enum class CellMark : std::uint8_t {
  kNone,
  kBest,       ///< the best of its column
  kBestOfKin,  ///< the best of those it may be compared with
  kCode,       ///< to be copied: an identifier, a command
  kProse,      ///< may be broken into lines
};

struct Cell {
  std::string text;
  CellMark mark = CellMark::kNone;
  std::string target = {};  ///< id of the part of the page that it leads to; empty: none
};

/// Columns with titles; the first names the row and stays in sight when the table is scrolled.
class HtmlTable {
 public:
  explicit HtmlTable(std::vector<TextTable::Column> columns) : columns_(std::move(columns)) {}

  /// Precondition: one cell a column.
  void add(const std::vector<Cell>& cells);
  [[nodiscard]] std::string html() const;

 private:
  std::vector<TextTable::Column> columns_;
  std::string rows_;
};

/// A panel with a heading, what to see in it, and a drawing.
struct Figure {
  std::string title;
  std::string note = {};
  std::string html;
};
[[nodiscard]] std::string figure_html(const Figure& figure);

/// Lays figures out down one column and, where the page is wide enough, then another: neighbours
/// that share an axis are under each other.
[[nodiscard]] std::string figures_html(const std::vector<Figure>& figures);

/// One of several parts of a page that a reader compares: a tab with a script, else and on paper a
/// section after the others. A page has one set of them.
struct Tab {
  std::string name;
  std::string html;
};
[[nodiscard]] std::string tabs_html(const std::vector<Tab>& tabs);

struct HtmlPage {
  std::string title;
  std::string body_html;
};
[[nodiscard]] std::string page_html(const HtmlPage& page);

}  // namespace orrery

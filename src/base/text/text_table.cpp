#include "base/text/text_table.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/assert.hpp"
#include "base/text/terminal_text.hpp"

namespace orrery {
namespace {

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  for (const char c : text) width += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return width;
}

}  // namespace

void TextTable::add(std::vector<std::string> cells) {
  ORRERY_ASSERT(cells.size() <= columns_.size(), "a row has at most as many cells as columns");
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = terminal_text(cell, Newlines::kEscaped);
  rows_.push_back({std::move(cells), std::vector<std::string>(columns_.size())});
}

void TextTable::colour(std::size_t column, std::string_view code) {
  rows_.back().colours.at(column) = code;
}

std::string TextTable::line(const std::vector<std::size_t>& widths, const Row& row) const {
  std::string line;
  std::size_t blanks = 0;  // that stand before the next text
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::string& text = row.cells[i];
    const std::size_t room = widths[i] - width_of(text);
    blanks += i == 0 ? 0 : 2;
    if (columns_[i].align == Align::kRight) blanks += room;
    if (!text.empty()) {
      line.append(std::exchange(blanks, 0), ' ');
      line += row.colours[i].empty() ? text : "\x1b[" + row.colours[i] + "m" + text + "\x1b[0m";
    }
    if (columns_[i].align == Align::kLeft) blanks += room;
  }
  return line + "\n";
}

std::string TextTable::text() const {
  Row titles{{}, std::vector<std::string>(columns_.size())};
  std::vector<std::size_t> widths;
  bool titled = false;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    titles.cells.push_back(columns_[i].title);
    std::size_t width = width_of(columns_[i].title);
    titled = titled || width > 0;
    for (const Row& row : rows_) width = std::max(width, width_of(row.cells[i]));
    widths.push_back(width);
  }
  std::string out;
  if (titled) out += line(widths, titles);
  for (const Row& row : rows_) out += line(widths, row);
  return out;
}

std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (lines.empty() || width_of(lines.back()) + 1 + width_of(word) > width) {
      lines.push_back(word);
    } else {
      lines.back() += " " + word;
    }
  }
  return lines;
}

}  // namespace orrery

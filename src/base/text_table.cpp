#include "base/text_table.hpp"

#include <algorithm>
#include <sstream>

#include "base/assert.hpp"

namespace orrery {
namespace {

// A colour ("\x1b[32m") takes no room.
std::size_t width_of(const std::string& text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = std::min(text.find('m', i), text.size());
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      ++width;
    }
  }
  return width;
}

std::string padded(const std::string& text, std::size_t width, Align align) {
  const std::size_t own = width_of(text);
  const std::string blanks(width > own ? width - own : 0, ' ');
  return align == Align::kLeft ? text + blanks : blanks + text;
}

}  // namespace

void TextTable::add(std::vector<std::string> cells) {
  ORRERY_ASSERT(cells.size() <= columns_.size(), "a row has at most as many cells as columns");
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::text() const {
  std::vector<std::size_t> widths;
  bool titled = false;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = width_of(columns_[i].title);
    titled = titled || width > 0;
    for (const auto& row : rows_) width = std::max(width, width_of(row[i]));
    widths.push_back(width);
  }
  std::string out;
  const auto print_row = [&](auto&& cell) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      line += (i == 0 ? "" : "  ") + padded(cell(i), widths[i], columns_[i].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  if (titled) print_row([&](std::size_t i) { return columns_[i].title; });
  for (const auto& row : rows_) print_row([&](std::size_t i) { return row[i]; });
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

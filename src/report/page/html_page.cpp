#include "report/page/html_page.hpp"

#include <fmt/format.h>

#include "base/assert.hpp"
#include "report/page/page_files.hpp"
#include "report/svg/svg_canvas.hpp"

namespace orrery {
namespace {

std::string_view class_of(CellMark mark) {
  switch (mark) {
    case CellMark::kNone:
    case CellMark::kCode:
      return "";
    case CellMark::kBest:
      return "best";
    case CellMark::kBestOfKin:
      return "kin";
    case CellMark::kProse:
      return "prose";
  }
  return "";
}

std::string class_attribute(Align align, std::string_view word) {
  std::string classes(align == Align::kRight ? "right" : "");
  if (!classes.empty() && !word.empty()) classes += ' ';
  classes += word;
  return classes.empty() ? classes : " class=\"" + classes + '"';
}

}  // namespace

void HtmlTable::add(const std::vector<Cell>& cells) {
  ORRERY_ASSERT(cells.size() == columns_.size(), "one cell a column");
  rows_ += "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::string text = escaped_xml(cells[i].text);
    if (cells[i].mark == CellMark::kCode) text = fmt::format("<code>{}</code>", text);
    if (!cells[i].target.empty()) {
      text = fmt::format("<a href=\"#{}\">{}</a>", escaped_xml(cells[i].target), text);
    }
    rows_ += fmt::format("<td{}>{}</td>",
                         class_attribute(columns_[i].align, class_of(cells[i].mark)), text);
  }
  rows_ += "</tr>\n";
}

std::string HtmlTable::html() const {
  std::string html = "<div class=\"scroll\"><table><thead><tr>";
  for (const TextTable::Column& column : columns_) {
    html +=
        fmt::format("<th{}>{}</th>", class_attribute(column.align, ""), escaped_xml(column.title));
  }
  return html + "</tr></thead><tbody>\n" + rows_ + "</tbody></table></div>\n";
}

std::string figure_html(const Figure& figure) {
  std::string html = "<figure><figcaption><h3>" + escaped_xml(figure.title) + "</h3>";
  if (!figure.note.empty()) html += "<p>" + escaped_xml(figure.note) + "</p>";
  return html + "</figcaption>\n" + figure.html + "</figure>\n";
}

std::string figures_html(const std::vector<Figure>& figures) {
  std::string html = "<div class=\"figures\">\n";
  for (const Figure& figure : figures) html += figure_html(figure);
  return html + "</div>\n";
}

std::string tabs_html(const std::vector<Tab>& tabs) {
  if (tabs.empty()) return {};
  std::string html = "<div class=\"tabs\" role=\"tablist\">";
  for (std::size_t i = 0; i < tabs.size(); ++i) {
    html += fmt::format("<button type=\"button\" role=\"tab\" data-part=\"part-{}\">{}</button>", i,
                        escaped_xml(tabs[i].name));
  }
  html += "</div>\n";
  for (std::size_t i = 0; i < tabs.size(); ++i) {
    html += fmt::format("<section class=\"tab\" id=\"part-{}\"><h2>{}</h2>\n{}</section>\n", i,
                        escaped_xml(tabs[i].name), tabs[i].html);
  }
  return html;
}

std::string page_html(const HtmlPage& page) {
  const std::string title = escaped_xml(page.title);
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/><title>{}</title>\n",
      title);
  html.append("<style>\n").append(page_files()[0].text).append("</style></head>\n");
  html += "<body><h1>" + title + "</h1>\n" + page.body_html + "<script>\n";
  return html.append(page_files()[1].text).append("</script></body></html>\n");
}

}  // namespace orrery

#include "report/svg/svg_canvas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "base/text/terminal_text.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

// Thousandths of the size, from ' ' to '~': the published metrics of Helvetica.
constexpr std::array<std::uint16_t, 95> kWidths = {
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333,  278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667,  611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278,  556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500,  500, 334, 260, 334, 584};
constexpr double kBoldFactor = 1.07;
constexpr std::string_view kEllipsis = "…";

bool continues_code_point(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Returns the width of the code point that begins with `c`; East Asian ones are as wide as high.
double width_of(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x20 && byte < 0x7F) return kWidths[byte - 0x20U] / 1000.0;
  return byte >= 0xE3 ? 1.0 : 0.6;
}

std::string_view anchor_attribute(Anchor anchor) {
  switch (anchor) {
    case Anchor::kStart:
      return "";
    case Anchor::kMiddle:
      return " text-anchor=\"middle\"";
    case Anchor::kEnd:
      return " text-anchor=\"end\"";
  }
  return "";
}

struct Colour {
  int red;
  int green;
  int blue;
};

int between(int from, int to, double part) {
  return static_cast<int>(std::lround(from + (to - from) * part));
}

}  // namespace

double ColumnGrid::row(std::size_t i) const {
  const std::size_t whole = i / columns;
  return static_cast<double>(whole);
}

void SvgPath::add(const Rect& rect) {
  data_ += fmt::format("M{} {}h{}v{}h{}z", svg_number(rect.x), svg_number(rect.y),
                       svg_number(rect.width), svg_number(rect.height), svg_number(-rect.width));
}

void SvgPath::add_line(Point from, Point to) {
  data_ += fmt::format("M{} {}L{} {}", svg_number(from.x), svg_number(from.y), svg_number(to.x),
                       svg_number(to.y));
}

void SvgPath::add_polygon(const std::vector<Point>& corners) {
  char command = 'M';
  for (const Point& corner : corners) {
    data_ += fmt::format("{}{} {}", command, svg_number(corner.x), svg_number(corner.y));
    command = 'L';
  }
  data_ += 'z';
}

void SvgCanvas::box(const Rect& rect, std::string_view style, double radius) {
  elements_ +=
      fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\"/>\n",
                  style, svg_number(rect.x), svg_number(rect.y), svg_number(rect.width),
                  svg_number(rect.height), svg_number(radius));
}

void SvgCanvas::path(const SvgPath& path, std::string_view style) {
  if (path.empty()) return;
  elements_ += fmt::format("<path class=\"{}\" d=\"{}\"/>\n", style, path.data());
}

void SvgCanvas::bar(const Rect& rect, std::string_view colour, double opacity) {
  if (rect.width <= 0) return;
  elements_ += fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" opacity=\"{:.2g}\"/>\n",
      svg_number(rect.x), svg_number(rect.y), svg_number(rect.width), svg_number(rect.height),
      colour, opacity);
}

void SvgCanvas::line(Point from, Point to, double width, std::string_view style) {
  elements_ += fmt::format(
      "<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke-width=\"{}\"/>\n", style,
      svg_number(from.x), svg_number(from.y), svg_number(to.x), svg_number(to.y),
      svg_number(width));
}

void SvgCanvas::text(Point at, std::string_view text, const TextStyle& style) {
  if (text.empty()) return;
  elements_ += fmt::format("<text class=\"{}{}\" x=\"{}\" y=\"{}\" font-size=\"{}\"{}>{}</text>\n",
                           style.ink, style.weight == Weight::kBold ? " bold" : "",
                           svg_number(at.x), svg_number(at.y), svg_number(style.size),
                           anchor_attribute(style.anchor), escaped_xml(text));
}

void SvgCanvas::fitted_text(Point at, double width, std::string_view text, const TextStyle& style) {
  if (text_width(text, style) <= width) return this->text(at, text, style);
  const double room = width - text_width(kEllipsis, style);
  std::size_t length = text.size();
  while (length > 0 && (text_width(text.substr(0, length), style) > room ||
                        (length < text.size() && continues_code_point(text[length])))) {
    --length;
  }
  if (length > 0) this->text(at, std::string(text.substr(0, length)) += kEllipsis, style);
}

void SvgCanvas::append(const SvgCanvas& other) { elements_ += other.elements_; }

void draw_card(SvgCanvas& canvas, const Rect& area, const CardTitle& title) {
  constexpr double kPad = 14;
  constexpr TextStyle kName{.size = 13, .weight = Weight::kBold};
  constexpr TextStyle kFigure{
      .size = 12, .weight = Weight::kBold, .ink = "link", .anchor = Anchor::kEnd};
  canvas.box(area, "part", 6);
  const double y = area.y + 21;
  canvas.text({area.x + kPad, y}, title.title, kName);
  canvas.text({area.right() - kPad, y}, title.figure, kFigure);
  const double left = area.x + kPad + text_width(title.title, kName) + 10;
  const double right = area.right() - kPad - text_width(title.figure, kFigure) - 12;
  canvas.fitted_text({left, y}, right - left, title.kind, {.size = 11, .ink = "soft"});
}

double text_width(std::string_view text, const TextStyle& style) {
  double width = 0;
  for (const char c : text) width += continues_code_point(c) ? 0 : width_of(c);
  return width * style.size * (style.weight == Weight::kBold ? kBoldFactor : 1);
}

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

void append_xml(std::string& out, std::string_view valid) {
  for (std::size_t at = 0; at < valid.size(); ++at) {
    if (const std::size_t control = control_length(valid, at); control > 0) {
      out += kReplacement;
      at += control - 1;
      continue;
    }
    switch (const char c = valid[at]) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&apos;";
        break;
      default:
        out += c;
    }
  }
}

}  // namespace

/// Replaces bytes that are not UTF-8, since a browser may read them as markup of another encoding.
std::string escaped_xml(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t bad = first_invalid_utf8(text);
    append_xml(out, text.substr(0, bad));
    if (bad == std::string_view::npos) break;
    out += kReplacement;
    text.remove_prefix(bad + 1);
  }
  return out;
}

std::string svg_number(double value) {
  const double rounded = std::round(value * 10) / 10;
  return fmt::format("{:.6g}", rounded == 0 ? 0.0 : rounded);
}

std::string_view svg_style() {
  return R"(text{font-family:"Helvetica Neue",Helvetica,Arial,"Liberation Sans",sans-serif}
.bold{font-weight:bold}
.ink{fill:#1f2d3d}.soft{fill:#4a5a6b}.faint{fill:#75838f}.warn{fill:#b45415}.link{fill:#2f5f9e}
.light{fill:#fff}
.page{fill:#fff}
.site{fill:#f4f6f9;stroke:#d5dce4}
.part{fill:#fff;stroke:#dfe5eb}
.tile{fill:#f4f6f9}
.hall{fill:#fff;stroke:#c9d2dc}
.pod{fill:#f7f9fb;stroke:#dfe5eb}
.rack{fill:#fff;stroke:#b4c0cc}
.slot{fill:#eceff3;stroke:none}
.domain{fill:none;stroke:#2f6fb7;stroke-width:1.3}
.more{fill:none;stroke:#a9b6c3;stroke-dasharray:3 3}
.track{fill:#e6eaef}
.limit{stroke:#1f2d3d}
.leaf{fill:#8fb3dc}.spine{fill:#5585bf}.core{fill:#2c5690}
.mesh{fill:none;stroke:#7d9cc0;stroke-width:.4;opacity:.6}
.cable{stroke:#5585bf;stroke-linecap:round}
.band{fill:#8fb3dc}
.face1{fill:#dbe8f6}.face2{fill:#c3d8ef}.face3{fill:#a9c6e6}
.grid{fill:none;stroke:#4f7db5;stroke-width:.6}
.disk{fill:#e8eef5;stroke:#8aa0b8}
.a0{fill:#3f7f5f}.a1{fill:#e08e45}.a2{fill:#6b63b5}.a3{fill:#cf5c6f}.a4{fill:#3a8fb7}
.a5{fill:#b8963e}.a6{fill:#7a8a99}.a7{fill:#a85fa0}.a8{fill:#7fae4d}.a9{fill:#8c5a3c}
)";
}

std::string accelerator_style(std::size_t type) { return fmt::format("a{}", type % 10); }

std::string fill_colour(double fraction) {
  struct Stop {
    double at;
    Colour colour;
  };
  constexpr std::array<Stop, 4> kStops = {{{0.5, {70, 165, 112}},
                                           {0.72, {152, 190, 84}},
                                           {0.88, {236, 170, 64}},
                                           {1.0, {212, 68, 66}}}};
  std::size_t next = 1;
  while (next + 1 < kStops.size() && fraction > kStops[next].at) ++next;
  const Stop& from = kStops[next - 1];
  const Stop& to = kStops[next];
  const double part = std::clamp((fraction - from.at) / (to.at - from.at), 0.0, 1.0);
  return fmt::format("#{:02x}{:02x}{:02x}", between(from.colour.red, to.colour.red, part),
                     between(from.colour.green, to.colour.green, part),
                     between(from.colour.blue, to.colour.blue, part));
}

}  // namespace orrery

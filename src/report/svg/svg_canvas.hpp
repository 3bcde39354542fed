// report/svg/svg_canvas.hpp - the shapes and text of a drawing as SVG elements, in the order of
// painting.
//
// Colours and strokes are classes of one style sheet (svg_style), so that an element is its
// geometry and a word. Text is measured with the widths of Helvetica, which Arial and Liberation
// Sans share, and cut to fit: nothing is clipped by the viewer. Coordinates are in pixels from the
// top left, rounded to a tenth. Equal input gives equal bytes. Cost: O(bytes written).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

struct Point {
  double x = 0;
  double y = 0;
};

struct Rect {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;

  [[nodiscard]] double right() const { return x + width; }
  [[nodiscard]] double bottom() const { return y + height; }
};

/// Items side by side in rows of `columns`, at least one.
struct ColumnGrid {
  std::size_t columns = 1;

  /// Position of the i-th item, in cells from the top left.
  [[nodiscard]] double column(std::size_t i) const { return static_cast<double>(i % columns); }
  [[nodiscard]] double row(std::size_t i) const;
  [[nodiscard]] double rows(std::size_t count) const { return count == 0 ? 0 : row(count - 1) + 1; }
};

enum class Weight { kNormal, kBold };
enum class Anchor { kStart, kMiddle, kEnd };

/// `ink` is a class of the style sheet that colours text.
struct TextStyle {
  double size = 12;
  Weight weight = Weight::kNormal;
  std::string_view ink = "ink";
  Anchor anchor = Anchor::kStart;
};

/// The sub-paths of one <path>: many equal shapes as one element.
class SvgPath {
 public:
  void add(const Rect& rect);
  void add_line(Point from, Point to);
  void add_polygon(const std::vector<Point>& corners);
  [[nodiscard]] bool empty() const { return data_.empty(); }
  [[nodiscard]] const std::string& data() const { return data_; }

 private:
  std::string data_;
};

class SvgCanvas {
 public:
  /// A rectangle with rounded corners.
  void box(const Rect& rect, std::string_view style, double radius);
  /// Draws a path; nothing if it is empty.
  void path(const SvgPath& path, std::string_view style);
  /// Draws a filled rectangle of a colour that is not a class: "#4caf7a".
  void bar(const Rect& rect, std::string_view colour, double opacity);
  void line(Point from, Point to, double width, std::string_view style);
  /// `at` is on the baseline. The text is escaped.
  void text(Point at, std::string_view text, const TextStyle& style);
  /// Draws text, cut to `width` with an ellipsis; nothing if not even a letter fits.
  void fitted_text(Point at, double width, std::string_view text, const TextStyle& style);
  /// Appends everything of `other`, on top of what is drawn here.
  void append(const SvgCanvas& other);

  [[nodiscard]] const std::string& elements() const { return elements_; }

 private:
  std::string elements_;
};

/// The white card behind a part of the picture. `title` is bold, `kind` describes the part and is
/// cut if room is short, `figure` is at the right end.
struct CardTitle {
  std::string title;
  std::string kind;
  std::string figure;
};
constexpr double kCardTitleHeight = 34;
void draw_card(SvgCanvas& canvas, const Rect& area, const CardTitle& title);

/// Pixels the text takes in Helvetica.
[[nodiscard]] double text_width(std::string_view text, const TextStyle& style);

/// Text with &, <, >, ' and " as entities and control characters as U+FFFD.
[[nodiscard]] std::string escaped_xml(std::string_view text);

/// A coordinate to a tenth of a pixel, "-0" as "0".
[[nodiscard]] std::string svg_number(double value);

/// The style sheet the class names refer to.
[[nodiscard]] std::string_view svg_style();

/// The class that fills an accelerator of the n-th type of a fleet; ten colours, then again.
[[nodiscard]] std::string accelerator_style(std::size_t type);

/// Returns a colour for bars: from green (half full and less) over amber to red (full).
[[nodiscard]] std::string fill_colour(double fraction);

}  // namespace orrery

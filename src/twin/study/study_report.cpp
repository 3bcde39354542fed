#include "twin/study/study_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text/csv_text.hpp"
#include "base/text/text_table.hpp"
#include "report/page/html_page.hpp"
#include "report/plot/plot.hpp"
#include "report/svg/svg_canvas.hpp"
#include "twin/study/study_pairs.hpp"

namespace orrery {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kPanelsMax =
    12;  ///< panels of one plot; a panel for each combination of other axes

/// The figures shown, each once, in the order they were asked for.
std::vector<std::size_t> columns_of(const StudySpec& spec) {
  std::vector<std::size_t> columns;
  columns.reserve(spec.show.size());
  for (const StudyShow& show : spec.show) {
    if (std::find(columns.begin(), columns.end(), show.figure) == columns.end()) {
      columns.push_back(show.figure);
    }
  }
  return columns;
}

std::string estimate_text(const Axis& axis, const Estimate& of) {
  if (of.count == 0) return "-";
  if (of.count == 1) return value_text(axis, of.mean);
  return interval_text(axis, of.mean, of.high - of.mean);
}

std::string reason_of(const StudySpec& spec, const StudyPoint& point) {
  if (point.failed == 0) return {};
  if (spec.seeds == 1) return point.failure;
  return fmt::format("{} of {} seeds: {}", point.failed, spec.seeds, point.failure);
}

std::string place_of(const StudySpec& spec, const StudyPoint& point) {
  std::string place;
  for (std::size_t a = 0; a < spec.axes.size(); ++a) {
    place += fmt::format("{}{} {}", place.empty() ? "" : ", ", spec.axes[a].name,
                         spec.axes[a].values[point.values[a]].label);
  }
  return place;
}

/// The best mean of a figure under the same conditions; none when several share it.
std::optional<double> best_of(const std::vector<const StudyPoint*>& points, std::size_t figure,
                              Better better) {
  std::optional<double> best;
  bool alone = false;
  for (const StudyPoint* each : points) {
    const StudyPoint& point = *each;
    const double value = point.figures[figure].mean;
    if (!std::isfinite(value)) continue;
    if (best && value == *best) alone = false;
    if (best && (better == Better::kLess ? value >= *best : value <= *best)) continue;
    best = value;
    alone = true;
  }
  return alone && better != Better::kNeither ? best : std::nullopt;
}

std::vector<TextTable::Column> titles_of(const StudySpec& spec,
                                         const std::vector<std::size_t>& columns) {
  std::vector<TextTable::Column> titles;
  titles.reserve(spec.axes.size() + columns.size());
  for (const StudyAxis& axis : spec.axes) {
    titles.push_back({axis.axis.title, axis.numeric ? Align::kRight : Align::kLeft});
  }
  for (const std::size_t f : columns) titles.push_back({spec.figures[f].axis.title, Align::kRight});
  return titles;
}

std::string table_html(const StudySpec& spec, const std::vector<StudyPoint>& points) {
  const std::vector<std::size_t> columns = columns_of(spec);
  std::map<std::vector<std::size_t>, std::vector<const StudyPoint*>> alike;
  for (const StudyPoint& point : points) alike[conditions_of(spec, point)].push_back(&point);
  std::vector<TextTable::Column> titles = titles_of(spec, columns);
  const bool failures =
      std::any_of(points.begin(), points.end(), [](const StudyPoint& p) { return p.failed > 0; });
  if (failures) titles.push_back({"reason"});
  HtmlTable table(std::move(titles));
  for (const StudyPoint& point : points) {
    std::vector<Cell> cells;
    cells.reserve(spec.axes.size() + columns.size() + 1);
    for (std::size_t a = 0; a < spec.axes.size(); ++a) {
      cells.push_back({spec.axes[a].values[point.values[a]].label});
    }
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const Estimate& of = point.figures[columns[c]];
      const std::optional<double> best =
          best_of(alike[conditions_of(spec, point)], columns[c], spec.figures[columns[c]].better);
      const bool won = best && of.mean == *best;
      cells.push_back({estimate_text(spec.figures[columns[c]].axis, of),
                       won ? CellMark::kBest : CellMark::kNone});
    }
    if (failures) cells.push_back({reason_of(spec, point), CellMark::kProse});
    table.add(cells);
  }
  return table.html();
}

/// Mean and interval of a difference; a star where the interval excludes 0.
std::string difference_text(const Axis& axis, const Estimate& of) {
  if (of.count < 2) return "-";
  const bool apart = of.low > 0 || of.high < 0;
  return interval_text(axis, of.mean, of.high - of.mean) + (apart ? " *" : "");
}

/// The point's place on the axes, then its differences.
std::vector<std::string> pair_cells(const StudySpec& spec, const StudyPoint& point,
                                    const StudyPair& pair,
                                    const std::vector<std::size_t>& columns) {
  std::vector<std::string> cells;
  cells.reserve(spec.axes.size() + columns.size());
  for (std::size_t a = 0; a < spec.axes.size(); ++a) {
    cells.push_back(spec.axes[a].values[point.values[a]].label);
  }
  for (const std::size_t f : columns) {
    cells.push_back(difference_text(spec.figures[f].axis, pair.differences[f]));
  }
  return cells;
}

constexpr std::string_view kPairsNote =
    "Difference of each row from the first row of the same conditions, on equal seeds: mean and 95 "
    "% interval; * if the interval does not contain 0.";

std::string pairs_html(const StudyAnswers& answers, const std::vector<StudyPoint>& points) {
  const StudySpec& spec = answers.study.spec();
  const std::vector<std::size_t> columns = columns_of(spec);
  const std::vector<StudyPair> pairs = study_pairs(spec, answers.outcomes);
  if (pairs.empty()) return {};
  HtmlTable table(titles_of(spec, columns));
  for (const StudyPair& pair : pairs) {
    std::vector<Cell> cells;
    for (std::string& cell : pair_cells(spec, points[pair.point], pair, columns)) {
      cells.push_back({std::move(cell)});
    }
    table.add(cells);
  }
  return "<h2>Differences on equal seeds</h2>\n" + table.html() + "<p class=\"note\">" +
         escaped_xml(std::string(kPairsNote)) + "</p>\n";
}

/// One drawing of a plot: the axes of x and series vary, the others are fixed.
class Panel {
 public:
  Panel(const StudySpec& spec, const StudyShow& show, const std::vector<StudyPoint>& points)
      : spec_(spec), show_(show), points_(points) {}

  /// `fixed` has a value for each axis; those of x and series do not matter.
  [[nodiscard]] std::string html(const std::vector<std::size_t>& fixed) {
    values_ = fixed;
    return show_.kind == StudyPlotKind::kLines ? lines() : bars();
  }

 private:
  /// Points are in the order of the cells: the last axis varies fastest.
  const Estimate& at(std::size_t x, std::size_t series) {
    values_[*show_.x] = x;
    if (show_.series) values_[*show_.series] = series;
    std::size_t index = 0;
    for (std::size_t a = 0; a < values_.size(); ++a) {
      index = index * spec_.axes[a].values.size() + values_[a];
    }
    return points_[index].figures[show_.figure];
  }

  [[nodiscard]] const StudyAxis& x() const { return spec_.axes[*show_.x]; }
  [[nodiscard]] const Axis& y() const { return spec_.figures[show_.figure].axis; }
  [[nodiscard]] std::size_t series_count() const {
    return show_.series ? spec_.axes[*show_.series].values.size() : 1;
  }
  /// Empty where there is only one series.
  [[nodiscard]] std::string series_name(std::size_t series) const {
    if (!show_.series) return y().title;
    const StudyAxis& axis = spec_.axes[*show_.series];
    const std::string& label = axis.values[series].label;
    return axis.numeric ? fmt::format("{} {}", axis.axis.title, label) : label;
  }

  std::string lines() {
    std::vector<std::size_t> order(x().values.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return x().values[a].at < x().values[b].at;
    });
    LinePlot plot{.x = x().axis, .y = y(), .marks = PointMarks::kDots};
    plot.lines.reserve(series_count());
    for (std::size_t s = 0; s < series_count(); ++s) {
      Line line{.name = series_name(s)};
      line.x.reserve(order.size());
      line.y.reserve(order.size());
      for (const std::size_t i : order) {
        const Estimate& of = at(i, s);
        line.x.push_back(x().values[i].at);
        line.y.push_back(of.mean);
        if (spec_.seeds == 1) continue;
        line.low.push_back(of.low);
        line.high.push_back(of.high);
      }
      plot.lines.push_back(std::move(line));
    }
    return plot_html(plot);
  }

  std::string bars() {
    BarPlot plot{.value = y()};
    for (std::size_t s = 0; s < series_count(); ++s) plot.parts.push_back({series_name(s)});
    for (std::size_t i = 0; i < x().values.size(); ++i) {
      for (std::size_t s = 0; s < series_count(); ++s) {
        Bar bar{.label = show_.series && s > 0 ? std::string() : x().values[i].label};
        bar.parts.assign(series_count(), 0);
        bar.parts[s] = at(i, s).mean;
        plot.bars.push_back(std::move(bar));
      }
    }
    return plot_html(plot);
  }

  const StudySpec& spec_;
  const StudyShow& show_;
  const std::vector<StudyPoint>& points_;
  std::vector<std::size_t> values_;
};

/// Values of all axes; those that the plot does not draw vary.
std::vector<std::vector<std::size_t>> panels_of(const StudySpec& spec, const StudyShow& show) {
  std::vector<std::vector<std::size_t>> panels = {std::vector<std::size_t>(spec.axes.size(), 0)};
  for (std::size_t a = 0; a < spec.axes.size(); ++a) {
    if (a == show.x || a == show.series) continue;
    std::vector<std::vector<std::size_t>> more;
    for (const std::vector<std::size_t>& panel : panels) {
      for (std::size_t v = 0; v < spec.axes[a].values.size() && more.size() < kPanelsMax; ++v) {
        more.push_back(panel);
        more.back()[a] = v;
      }
    }
    panels = std::move(more);
  }
  return panels;
}

std::string panel_note(const StudySpec& spec, const StudyShow& show,
                       const std::vector<std::size_t>& panel) {
  std::string note;
  for (std::size_t a = 0; a < spec.axes.size(); ++a) {
    if (a == show.x || a == show.series || spec.axes[a].values.size() == 1) continue;
    note += fmt::format("{}{}: {}", note.empty() ? "" : ", ", spec.axes[a].axis.title,
                        spec.axes[a].values[panel[a]].label);
  }
  const Better better = spec.figures[show.figure].better;
  if (better == Better::kNeither) return note;
  return note + fmt::format("{}{} is better", note.empty() ? "" : "; ",
                            better == Better::kLess ? "less" : "more");
}

/// "conditions, that is, with equal model and seq".
std::string conditions_text(const StudySpec& spec) {
  std::string axes;
  for (const StudyAxis& axis : spec.axes) {
    if (is_condition(axis)) axes += (axes.empty() ? "" : " and ") + axis.axis.title;
  }
  return escaped_xml(axes.empty() ? "conditions" : "conditions, that is, with equal " + axes);
}

std::string plots_html(const StudySpec& spec, const std::vector<StudyPoint>& points) {
  std::vector<Figure> figures;
  for (const StudyShow& show : spec.show) {
    if (!show.x) continue;
    for (const std::vector<std::size_t>& panel : panels_of(spec, show)) {
      std::string title =
          spec.figures[show.figure].axis.title + " by " + spec.axes[*show.x].axis.title;
      figures.push_back({.title = std::move(title),
                         .note = panel_note(spec, show, panel),
                         .html = Panel(spec, show, points).html(panel)});
    }
  }
  return figures_html(figures);
}

std::string fact(std::string_view name, std::string_view text) {
  return fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped_xml(name), escaped_xml(text));
}

std::string base_text(const Study& study) {
  std::string text;
  for (const auto& [key, value] : study.base().entries()) {
    const bool scalar = value.kind() == NodeKind::kScalar;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key.text(),
                        scalar ? std::string(value.text()) : "as in the study");
  }
  return text;
}

std::string head_html(const StudyAnswers& answers) {
  const StudySpec& spec = answers.study.spec();
  std::string html = "<dl class=\"facts\">\n";
  if (!spec.question.empty()) html += fact("Question", spec.question);
  html +=
      fact("Every cell", fmt::format("orrery {}: {}", word_of(spec.run), base_text(answers.study)));
  for (const StudyAxis& axis : spec.axes) {
    std::string labels;
    for (const StudyValue& value : axis.values) {
      labels += (labels.empty() ? "" : ", ") + value.label;
    }
    html += fact("Axis " + axis.axis.title, labels);
  }
  if (spec.seeds > 1) {
    html += fact("Repeats", fmt::format("{} seeds per point; mean and its 95 % interval (Student's "
                                        "t), drawn as a band around lines",
                                        spec.seeds));
  }
  html += "<dt>Command</dt><dd><code>" + escaped_xml(answers.command) + "</code></dd>\n";
  return html + "</dl>\n";
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace

std::string study_text(const StudyAnswers& answers) {
  const StudySpec& spec = answers.study.spec();
  const std::vector<StudyPoint> points = study_points(spec, answers.outcomes);
  const std::vector<std::size_t> columns = columns_of(spec);
  std::vector<TextTable::Column> titles = titles_of(spec, columns);
  // Names, not titles: they fit a terminal, and are the words of the file.
  for (std::size_t i = 0; i < titles.size(); ++i) {
    const std::size_t axes = spec.axes.size();
    titles[i].title = i < axes ? spec.axes[i].name : spec.figures[columns[i - axes]].name;
  }
  TextTable table(titles);
  std::string notes;
  for (const StudyPoint& point : points) {
    std::vector<std::string> cells;
    cells.reserve(spec.axes.size() + columns.size());
    for (std::size_t a = 0; a < spec.axes.size(); ++a) {
      cells.push_back(spec.axes[a].values[point.values[a]].label);
    }
    for (const std::size_t f : columns) {
      cells.push_back(estimate_text(spec.figures[f].axis, point.figures[f]));
    }
    table.add(std::move(cells));
    if (point.failed > 0) {
      notes += fmt::format("{}: {}\n", place_of(spec, point), reason_of(spec, point));
    }
  }
  std::string text = spec.title + "\n";
  if (!spec.question.empty()) text += spec.question + "\n";
  text += "\n" + table.text();
  const std::vector<StudyPair> pairs = study_pairs(spec, answers.outcomes);
  TextTable differences(std::move(titles));
  for (const StudyPair& pair : pairs) {
    differences.add(pair_cells(spec, points[pair.point], pair, columns));
  }
  if (!pairs.empty()) text += fmt::format("\n{}\n\n{}", kPairsNote, differences.text());
  return notes.empty() ? text : text + "\npoints without results:\n" + notes;
}

std::string study_html(const StudyAnswers& answers) {
  const StudySpec& spec = answers.study.spec();
  const std::vector<StudyPoint> points = study_points(spec, answers.outcomes);
  std::string body = head_html(answers);
  body += "<h2>Effect of the changes</h2>\n" + plots_html(spec, points);
  body += "<h2>All points</h2>\n" + table_html(spec, points);
  body +=
      "<p class=\"note\"><span class=\"best\">Best</span> value of the column among rows of the "
      "same " +
      conditions_text(spec) + "; - means unknown.</p>\n";
  body += pairs_html(answers, points);
  return page_html({.title = spec.title, .body_html = std::move(body)});
}

Json study_json(const StudyAnswers& answers) {
  const StudySpec& spec = answers.study.spec();
  Json json = {{"name", spec.name},        {"title", spec.title},    {"question", spec.question},
               {"run", word_of(spec.run)}, {"seeds", spec.seeds},    {"axes", Json::array()},
               {"figures", Json::array()}, {"points", Json::array()}};
  for (const StudyAxis& axis : spec.axes) {
    Json labels = Json::array();
    for (const StudyValue& value : axis.values) labels.push_back(value.label);
    json["axes"].push_back({{"name", axis.name}, {"values", std::move(labels)}});
  }
  const std::vector<std::size_t> columns = columns_of(spec);
  for (const std::size_t f : columns) {
    json["figures"].push_back(
        {{"name", spec.figures[f].name}, {"title", spec.figures[f].axis.title}});
  }
  for (const StudyPoint& point : study_points(spec, answers.outcomes)) {
    Json& row = json["points"].emplace_back(Json::object());
    for (std::size_t a = 0; a < spec.axes.size(); ++a) {
      row["at"][spec.axes[a].name] = spec.axes[a].values[point.values[a]].label;
    }
    for (const std::size_t f : columns) {
      const Estimate& of = point.figures[f];
      Json& figure = row["figures"][spec.figures[f].name];
      figure["mean"] = number(of.mean);
      if (spec.seeds == 1) continue;
      figure["low"] = number(of.low);
      figure["high"] = number(of.high);
    }
    if (point.failed > 0) row["failure"] = reason_of(spec, point);
  }
  for (const StudyPair& pair : study_pairs(spec, answers.outcomes)) {
    Json& row = json["points"][pair.point]["against_first"];
    for (const std::size_t f : columns) {
      const Estimate& of = pair.differences[f];
      row[spec.figures[f].name] = {
          {"mean", number(of.mean)}, {"low", number(of.low)}, {"high", number(of.high)}};
    }
  }
  return json;
}

std::string study_csv(const StudyAnswers& answers) {
  const StudySpec& spec = answers.study.spec();
  std::string csv;
  for (const StudyAxis& axis : spec.axes) csv += csv_text(axis.name) + ",";
  csv += "repeat";
  for (const StudyFigure& figure : spec.figures) csv += "," + figure.name;
  csv += ",failure\n";
  const std::vector<StudyCell> cells = study_cells(spec);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    for (std::size_t a = 0; a < spec.axes.size(); ++a) {
      csv += csv_text(spec.axes[a].values[cells[i].values[a]].label) + ",";
    }
    csv += std::to_string(cells[i].repeat);
    const CellOutcome& outcome = answers.outcomes[i];
    for (std::size_t f = 0; f < spec.figures.size(); ++f) {
      const double value = outcome.failure.empty() ? outcome.figures[f] : kNone;
      csv += std::isfinite(value) ? fmt::format(",{}", value) : ",";
    }
    csv += "," + csv_text(outcome.failure) + "\n";
  }
  return csv;
}

}  // namespace orrery

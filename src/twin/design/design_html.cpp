#include "twin/design/design_html.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/format/field_writer.hpp"
#include "base/text/quantity_text.hpp"
#include "report/page/html_page.hpp"
#include "report/plot/plot.hpp"
#include "report/svg/svg_canvas.hpp"

namespace orrery {
namespace {

constexpr std::size_t kOthersShown = 12;

std::string fact(std::string_view name, const std::string& text) {
  return fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, escaped_xml(text));
}

template <class Q>
std::string text_of(const std::optional<Q>& figure) {
  return figure ? print(*figure) : "-";
}

std::string head_html(const Design& design, const std::optional<Rehearsal>& played) {
  std::string html = "<dl class=\"facts\">\n";
  for (const DesignGroup& group : design.groups) {
    html += fact("Nodes", fmt::format("{} {} with {} accelerators, {} spare", group.nodes,
                                      group.candidate->node->id, print_count(group.accelerators()),
                                      group.spares));
  }
  html += fact("Power", fmt::format("{} of {} at rated power, {} in training; PUE {:.2f}",
                                    print(design.site.power_max), print(design.spec->site.power),
                                    print(design.site.power_typical), design.site.pue));
  html += fact("Purchase", text_of(design.site.capex));
  html += fact("Electricity per year", text_of(design.energy_per_year));
  html += fact("Limited by", std::string(word_of(design.chosen.limit)));
  if (played) {
    html += fact("Goodput", fmt::format("{}: {:+.2f} % against the prediction over {}",
                                        confirmed(design, *played) ? "confirmed" : "not confirmed",
                                        difference(design, *played) * 100,
                                        print(Seconds(played->span.count_seconds()))));
  }
  return html + "</dl>\n";
}

std::string works_html(const Design& design) {
  HtmlTable table({{"Work"},
                   {"Jobs", Align::kRight},
                   {"Accelerators each", Align::kRight},
                   {"On"},
                   {"Tokens/s", Align::kRight},
                   {"Goodput", Align::kRight},
                   {"Layout"}});
  for (const DesignedWork& work : design.works) {
    table.add({{work.asked->name},
               {print_count(work.jobs)},
               {print_count(work.rate.accelerators)},
               {design.groups[work.group].candidate->accelerator->id},
               {print_count(work.tokens)},
               {fmt::format("{:.2f} %", work.goodput.parts.effective * 100)},
               {work.rate.layout, CellMark::kCode}});
  }
  return table.html();
}

std::string bill_html(const Design& design) {
  HtmlTable table({{"Part"},
                   {"What"},
                   {"Count", Align::kRight},
                   {"Each", Align::kRight},
                   {"Total", Align::kRight},
                   {"Power", Align::kRight},
                   {"Price basis"}});
  for (const BillRow& row : design.bill) {
    table.add({{row.part},
               {row.what, CellMark::kProse},
               {print_count(row.count)},
               {text_of(row.price)},
               {text_of(row.total)},
               {text_of(row.power)},
               {row.basis, CellMark::kProse}});
  }
  return table.html();
}

Figure use_figure(const Design& design, const std::optional<Rehearsal>& played) {
  BarPlot plot{.value = {.title = "share of the accelerator time", .unit = AxisUnit::kShare},
               .parts = {{"useful"},
                         {"checkpoints"},
                         {"lost", Tone::kAlarm},
                         {"until detected"},
                         {"restarting"},
                         {"unused", Tone::kMuted}},
               .bars = {}};
  const auto add = [&](const char* name, const DesignUse& use) {
    plot.bars.push_back(
        {name, {use.useful, use.checkpoints, use.lost, use.undetected, use.starting, use.unused}});
  };
  add("predicted", design.predicted);
  if (played) add("simulated", played->use);
  return {.title = "Use of the accelerators", .html = plot_html(plot)};
}

Figure options_figure(const Design& design) {
  BarPlot plot{.value = {.title = "score relative to the chosen design", .unit = AxisUnit::kShare},
               .parts = {{"score"}},
               .bars = {{design.chosen.label, {1}}}};
  for (std::size_t i = 0; i < std::min(design.others.size(), kOthersShown); ++i) {
    const DesignOption& option = design.others[i];
    plot.bars.push_back({option.label, {option.score / design.chosen.score}});
  }
  return {.title = "Candidates",
          .note =
              "The score uses rates, ratings and prices only, with each candidate at its tighter "
              "limit.",
          .html = plot_html(plot)};
}

}  // namespace

std::string design_html(const Design& design, const std::optional<Rehearsal>& played) {
  HtmlPage page{.title = design.spec->name + ": " + design.chosen.label};
  page.body_html = head_html(design, played);
  page.body_html += "<h2>Results</h2>\n" +
                    figures_html({use_figure(design, played), options_figure(design)}) +
                    "<h2>Work</h2>\n" + works_html(design) +
                    "<h2>Bill of materials</h2>\n<p>Parts without a price in the catalog are "
                    "counted but not priced.</p>\n" +
                    bill_html(design);
  std::string reasons = "<ul>\n";
  for (const DesignOption& option : design.others) {
    reasons += fmt::format("<li>{}: {}</li>\n", escaped_xml(option.label), escaped_xml(option.why));
  }
  for (const std::string& refused : design.refused) {
    reasons += fmt::format("<li>{}</li>\n", escaped_xml(refused));
  }
  page.body_html += "<h2>Not chosen</h2>\n" + reasons + "</ul>\n";
  return page_html(page);
}

}  // namespace orrery

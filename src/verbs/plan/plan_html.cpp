#include "verbs/plan/plan_html.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/quantity_text.hpp"
#include "planner/launch/layout_text.hpp"
#include "report/page/html_page.hpp"
#include "report/plot/plot.hpp"
#include "report/svg/svg_canvas.hpp"
#include "verbs/plan/plan_text.hpp"

namespace orrery {
namespace {

/// Terms with a bar of their own; the others are drawn together.
constexpr std::size_t kTermsDrawn = 6;

template <class Q>
std::string or_unknown(const std::optional<Q>& figure) {
  return figure ? print(*figure) : "?";
}

std::string plan_table(const PlanAnswer& answer, const PlanRequest& request) {
  HtmlTable table({{"#", Align::kRight},
                   {"machine"},
                   {"layout"},
                   {"step", Align::kRight},
                   {"80 % interval", Align::kRight},
                   {"MFU (16-bit peak)", Align::kRight},
                   {"memory", Align::kRight},
                   {"cost per step", Align::kRight},
                   {"energy", Align::kRight}});
  std::size_t rank = 0;
  for (const PlanOffer& offer : answer.plans) {
    table.add({{std::to_string(++rank)},
               {request.question.machines[offer.machine].label},
               {print_layout(offer.plan), CellMark::kCode},
               {duration_text(offer.cost.seconds)},
               {duration_text(offer.seconds_low) + " to " + duration_text(offer.seconds_high)},
               {fmt::format("{:.1f} %", offer.mfu * 100)},
               {fmt::format("{:.1f} GiB", offer.cost.memory.total() / (1u << 30))},
               {or_unknown(offer.quote.step_cost)},
               {or_unknown(offer.quote.step_energy)}});
  }
  return table.html();
}

/// The terms that take time in any plan, those of the first plan that take longest first.
std::vector<std::size_t> terms_of(const PlanAnswer& answer) {
  std::vector<std::size_t> terms;
  for (std::size_t term = 0; term < kTerms; ++term) {
    const bool takes_time = std::ranges::any_of(
        answer.plans, [&](const PlanOffer& offer) { return offer.cost.terms.seconds[term] > 0; });
    if (takes_time) terms.push_back(term);
  }
  const auto& best = answer.plans.front().cost.terms.seconds;
  std::ranges::stable_sort(terms, [&](std::size_t a, std::size_t b) { return best[a] > best[b]; });
  return terms;
}

std::string term_plot(const PlanAnswer& answer, const std::vector<std::size_t>& terms) {
  BarPlot plot{.value = {"step time", AxisUnit::kDuration}, .parts = {}, .bars = {}};
  const std::size_t drawn = std::min(terms.size(), kTermsDrawn);
  for (std::size_t i = 0; i < drawn; ++i) plot.parts.push_back({std::string(kTermNames[terms[i]])});
  if (drawn < terms.size()) plot.parts.push_back({"other terms", Tone::kMuted});
  for (std::size_t p = 0; p < answer.plans.size(); ++p) {
    const auto& seconds = answer.plans[p].cost.terms.seconds;
    Bar bar{.label = fmt::format("plan {}", p + 1), .parts = {}};
    double others = 0;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      if (i < drawn) {
        bar.parts.push_back(seconds[terms[i]]);
      } else {
        others += seconds[terms[i]];
      }
    }
    if (drawn < terms.size()) bar.parts.push_back(others);
    plot.bars.push_back(std::move(bar));
  }
  return plot_html(plot);
}

std::string term_table(const PlanAnswer& answer, const std::vector<std::size_t>& terms) {
  std::vector<TextTable::Column> columns{{"term"}};
  for (std::size_t p = 0; p < answer.plans.size(); ++p) {
    columns.push_back({fmt::format("plan {}", p + 1), Align::kRight});
  }
  columns.push_back({"meaning"});
  HtmlTable table(columns);
  for (const std::size_t term : terms) {
    std::vector<Cell> row{{std::string(kTermNames[term])}};
    for (const PlanOffer& offer : answer.plans) {
      row.push_back({duration_text(offer.cost.terms.seconds[term])});
    }
    row.push_back({std::string(meaning_of(static_cast<Term>(term))), CellMark::kProse});
    table.add(row);
  }
  return table.html();
}

std::string notes(const PlanAnswer& answer, const PlanRequest& request) {
  std::string html = "<ul>\n";
  for (const auto* list : {&request.assumptions, &answer.assumptions}) {
    for (const std::string& text : *list) html += "<li>" + escaped_xml(text) + "</li>\n";
  }
  for (const MachineRefusal& refusal : answer.refused) {
    html += "<li>no plan: " + escaped_xml(refusal.why.message) + "</li>\n";
  }
  return html + "</ul>\n";
}

}  // namespace

std::string answer_html(const PlanAnswer& answer, const PlanRequest& request) {
  std::string body = plan_table(answer, request);
  if (answer.plans.size() > 1) {
    body += fmt::format("<p>Step of plan 2 against plan 1: {}.</p>\n",
                        escaped_xml(loss_text(answer.plans[0], answer.plans[1])));
  }
  const std::vector<std::size_t> terms = terms_of(answer);
  body += "<h2>Parts of the step time</h2>\n";
  body += figures_html({{"Step time by term", "", term_plot(answer, terms)}});
  body += "<h3>All terms</h3>\n" + term_table(answer, terms);
  body += "<h2>Assumptions</h2>\n" + notes(answer, request);
  return page_html({"Plan of " + job_text(request.question), body});
}

}  // namespace orrery

#include "verbs/plan/plan_html.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/quantity_text.hpp"
#include "planner/launch/layout_text.hpp"
#include "report/svg/svg_canvas.hpp"
#include "verbs/plan/plan_text.hpp"

namespace orrery {
namespace {

/// One a term; neighbours differ in lightness as well as in hue.
constexpr std::array<std::string_view, kTerms> kColours = {
    "#1b4f8a", "#3f8fd2", "#8ec5f0", "#0b7a5b", "#5fc9a0", "#b3361e",
    "#e8765a", "#f4b8a0", "#8a5a00", "#d99a1c", "#f2d27a", "#6a3d9a",
    "#b08ad6", "#555555", "#8f8f8f", "#c4c4c4", "#2b2b2b"};

constexpr std::string_view kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 "
    "1em;color:#1c1c1c}table{border-collapse:collapse;width:100%}th,td{padding:.3em "
    ".7em;white-space:nowrap;text-align:right;border-bottom:1px solid "
    "#ddd}th:nth-child(-n+3),td:nth-child(-n+3){text-align:left}code{font-size:.9em}.bar{display:"
    "flex;height:1.6em;margin:.2em 0 .9em}td code{white-space:normal}.bar "
    "span{display:block;min-width:0}.key{columns:3;list-style:none;padding:0}.key "
    "li{break-inside:avoid}.key "
    "i{display:inline-block;width:1em;height:1em;margin-right:.5em;vertical-align:-.1em}";

template <class Q>
std::string or_unknown(const std::optional<Q>& figure) {
  return figure ? escaped_xml(print(*figure)) : "?";
}

/// A layout that may be broken into lines behind its commas.
std::string layout_html(const ParallelPlan& plan) {
  std::string html;
  for (const char c : escaped_xml(print_layout(plan))) {
    html += c;
    if (c == ',') html += "<wbr/>";
  }
  return html;
}

std::string table(const PlanAnswer& answer, const PlanRequest& request) {
  std::string html =
      "<table><tr><th>#</th><th>machine</th><th>layout</th><th>step</th><th>80 % "
      "interval</th><th>MFU (16-bit peak)</th><th>memory</th><th>cost per "
      "step</th><th>energy</th></tr>\n";
  std::size_t rank = 0;
  for (const PlanOffer& offer : answer.plans) {
    html += fmt::format(
        "<tr><td>{}</td><td>{}</td><td><code>{}</code></td><td>{}</td><td>{} to {}</td><td>{:.1f} "
        "%</td><td>{:.1f} GiB</td><td>{}</td><td>{}</td></tr>\n",
        ++rank, escaped_xml(request.question.machines[offer.machine].label),
        layout_html(offer.plan), duration_text(offer.cost.seconds),
        duration_text(offer.seconds_low), duration_text(offer.seconds_high), offer.mfu * 100,
        offer.cost.memory.total() / (1u << 30), or_unknown(offer.quote.step_cost),
        or_unknown(offer.quote.step_energy));
  }
  return html + "</table>\n";
}

std::string bar(const PlanOffer& offer, double longest) {
  std::string html = "<div class=\"bar\" role=\"img\">";
  for (std::size_t i = 0; i < kTerms; ++i) {
    const double seconds = offer.cost.terms.seconds[i];
    if (seconds <= 0) continue;
    html += fmt::format(
        "<span style=\"width:{:.3f}%;background:{}\" title=\"{}: {} ({:.1f} %)\"></span>",
        seconds / longest * 100, kColours[i], kTermNames[i], duration_text(seconds),
        seconds / offer.cost.seconds * 100);
  }
  return html + "</div>\n";
}

std::string bars(const PlanAnswer& answer) {
  double longest = 0;
  for (const PlanOffer& offer : answer.plans) longest = std::max(longest, offer.cost.seconds);
  std::string html = "<h2>Parts of the step time</h2>\n";
  for (const PlanOffer& offer : answer.plans) {
    html += fmt::format("<div><code>{}</code>, {}</div>\n", escaped_xml(print_layout(offer.plan)),
                        duration_text(offer.cost.seconds));
    html += bar(offer, longest);
  }
  html += "<ul class=\"key\">\n";
  const Breakdown& best = answer.plans.front().cost.terms;
  const auto takes_time = [&](std::size_t term) {
    return std::ranges::any_of(
        answer.plans, [&](const PlanOffer& offer) { return offer.cost.terms.seconds[term] > 0; });
  };
  for (std::size_t i = 0; i < kTerms; ++i) {
    if (!takes_time(i)) continue;
    html += fmt::format("<li><i style=\"background:{}\"></i><b>{}</b> {}: {}</li>\n", kColours[i],
                        kTermNames[i], duration_text(best.seconds[i]),
                        meaning_of(static_cast<Term>(i)));
  }
  return html + "</ul>\n";
}

std::string notes(const PlanAnswer& answer, const PlanRequest& request) {
  std::string html = "<h2>Assumptions</h2>\n<ul>\n";
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
  const std::string job = escaped_xml(job_text(request.question));
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Plan of "
      "{}</title><style>{}</style></head>\n<body><h1>{}</h1>\n",
      job, kStyle, job);
  html += table(answer, request);
  if (answer.plans.size() > 1) {
    html += fmt::format("<p>Step of plan 2 against plan 1: {}.</p>\n",
                        escaped_xml(loss_text(answer.plans[0], answer.plans[1])));
  }
  return html + bars(answer) + notes(answer, request) + "</body></html>\n";
}

}  // namespace orrery

#include "verbs/schedule/schedule_answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/format/field_writer.hpp"
#include "base/text/count_text.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/quantity_text.hpp"
#include "base/text/text_table.hpp"
#include "planner/launch/layout_text.hpp"
#include "scheduler/explain/explain.hpp"
#include "verbs/plan/plan_text.hpp"

namespace orrery {
namespace {

std::string dollars(std::int64_t micro) {
  return print(Dollars(static_cast<double>(micro) * 1e-6));
}

/// At the meters, until the job is done; none: the draw of some of its devices is not published.
std::optional<double> kilowatt_hours(const ScheduleRequest& request, const StartJob& start) {
  const ExpectedEnergy energy = request.energy_of_start(start);
  if (!energy.known) return std::nullopt;
  return static_cast<double>(energy.joules) / 3.6e6;
}

/// "64 x h100", of all gangs.
std::string devices_text(const ScheduleRequest& request, const JobRequest& job,
                         std::span<const PlacedGang> gangs) {
  std::string text;
  for (std::size_t i = 0; i < gangs.size(); ++i) {
    const GangRequest& gang = job.roles[gangs[i].role].options[gangs[i].option].gang;
    std::size_t same = 1;
    while (i + 1 < gangs.size() && gangs[i + 1].role == gangs[i].role &&
           gangs[i + 1].option == gangs[i].option) {
      ++i;
      ++same;
    }
    const std::string& id = request.topology().accelerator(gang.type).id;
    const std::string share =
        gang.share < kWholeDevice ? fmt::format("{:g} of ", gang.share / 1000.0) : "";
    text += fmt::format("{}{}{}{} x {}", text.empty() ? "" : ", ",
                        same > 1 ? fmt::format("{} x ", same) : "", share, gang.devices, id);
  }
  return text;
}

/// The narrowest place around all nodes.
std::string place_text(const ScheduleRequest& request, std::span<const PlacedGang> gangs) {
  const PlaceTree& tree = request.tree();
  NodeId first = gangs.front().allocation.ranks.front().node;
  NodeId last = first;
  for (const PlacedGang& gang : gangs) {
    for (const NodeDevices& at : gang.allocation.ranks) {
      first = std::min(first, at.node);
      last = std::max(last, at.node);
    }
  }
  if (first == last) return request.topology().node_name(first);
  PlaceId place = tree.around(first);
  while (!tree[place].nodes.contains(last)) place = tree[place].parent;
  return tree.name(place);
}

std::string plan_text(const ScheduleRequest& request, const JobRequest& job,
                      const StartJob& start) {
  const GangOption& option = job.roles[start.gangs[0].role].options[start.gangs[0].option];
  const PlanEntry* entry = option.plan ? request.plans().find(*option.plan) : nullptr;
  if (entry == nullptr || !*entry) return "";
  const PlannedWork& plan = entry->value()[start.terms[0].plan];
  if (plan.training() == nullptr) return "";
  return fmt::format("{}, step {}", print_layout(plan.training()->plan),
                     duration_text(plan.step_seconds * start.terms[0].ratio));
}

constexpr std::string_view kBehindTheHead = "not reached: a job ahead blocks the queue";

/// "for prep and tokenize to end".
std::string after_text(const HeldJob& held) {
  std::string text = "for ";
  for (std::size_t i = 0; i < held.after.size(); ++i) {
    if (i > 0) text += i + 1 == held.after.size() ? " and " : ", ";
    text += held.after[i];
  }
  return text + " to end";
}

std::string jobs_table(const ScheduleRequest& request, const PassResult& result) {
  TextTable table({{"job"},
                   {"decision"},
                   {"accelerators"},
                   {"where"},
                   {"plan"},
                   {"time", Align::kRight},
                   {"price", Align::kRight}});
  for (const Decision& decision : result.decisions) {
    const auto* start = std::get_if<StartJob>(&decision);
    if (start == nullptr) continue;
    const JobRequest& job = request.jobs()[start->job.value()];
    const std::string when =
        start->delay > Duration() ? fmt::format("starts in {}", start->delay.text()) : "starts";
    const std::string clock = start->terms[0].clock < 1
                                  ? fmt::format(" at {:.0f} % clock", start->terms[0].clock * 100)
                                  : "";
    table.add({job.name, when + clock, devices_text(request, job, start->gangs),
               place_text(request, start->gangs), plan_text(request, job, *start),
               start->expected ? start->expected->text() : "until stopped",
               start->price ? dollars(start->price->total()) : "-"});
  }
  for (const StillWaits& waits : result.waiting) {
    table.add({request.jobs()[waits.job.value()].name, "waits", refusal_text(waits.refusal), "", "",
               "", ""});
  }
  for (const std::string& name : request.not_reached(result)) {
    table.add({name, "waits", std::string(kBehindTheHead), "", "", "", ""});
  }
  for (const HeldJob& held : request.held()) {
    table.add({held.name, "waits", after_text(held), "", "", "", ""});
  }
  for (const RefusedJob& refused : request.refused()) {
    table.add({refused.name, "refused", "", "", "", "", ""});
  }
  return table.text();
}

std::string price_table(const ScheduleRequest& request, const PassResult& result) {
  std::vector<TextTable::Column> columns{{"price of"}};
  for (const auto& [word, term] : enum_words(PriceTerm{})) {
    columns.push_back({std::string(word), Align::kRight});
  }
  columns.push_back({"draws", Align::kRight});
  TextTable table(columns);
  for (const Decision& decision : result.decisions) {
    const auto* start = std::get_if<StartJob>(&decision);
    if (start == nullptr || !start->price) continue;
    std::vector<std::string> row{request.jobs()[start->job.value()].name};
    for (const std::int64_t term : start->price->micro_dollars) row.push_back(dollars(term));
    const std::optional<double> kwh = kilowatt_hours(request, *start);
    row.push_back(kwh ? fmt::format("{:.4g} kWh", *kwh) : "not published");
    table.add(row);
  }
  return table.text();
}

Json decisions_json(const ScheduleRequest& request, const PassResult& result) {
  Json started = Json::array();
  Json waiting = Json::array();
  Json refused = Json::array();
  for (const Decision& decision : result.decisions) {
    const auto* start = std::get_if<StartJob>(&decision);
    if (start == nullptr) continue;
    const JobRequest& job = request.jobs()[start->job.value()];
    Json row = {{"job", job.name}, {"delay_s", start->delay.count_seconds()}};
    row["expected_s"] = start->expected ? Json(start->expected->count_seconds()) : Json(nullptr);
    if (start->price) {
      for (const auto& [word, term] : enum_words(PriceTerm{})) {
        row["price_usd"][std::string(word)] = static_cast<double>((*start->price)[term]) * 1e-6;
      }
      const std::optional<double> kwh = kilowatt_hours(request, *start);
      row["energy_kwh"] = kwh ? Json(*kwh) : Json(nullptr);
    }
    for (std::size_t g = 0; g < start->gangs.size(); ++g) {
      const PlacedGang& gang = start->gangs[g];
      const RoleRequest& role = job.roles[gang.role];
      Json out = {{"role", role.name},
                  {"type", request.topology().accelerator(role.options[gang.option].gang.type).id},
                  {"clock", start->terms[g].clock},
                  {"step_ratio", start->terms[g].ratio}};
      for (const NodeDevices& at : gang.allocation.ranks) {
        out["nodes"].push_back({{"node", request.topology().node_name(at.node)},
                                {"devices", fmt::format("{:#x}", at.devices)}});
      }
      row["gangs"].push_back(std::move(out));
    }
    started.push_back(std::move(row));
  }
  for (const StillWaits& waits : result.waiting) {
    waiting.push_back({{"job", request.jobs()[waits.job.value()].name},
                       {"kind", name_of(waits.refusal.kind)},
                       {"level", word_of(waits.refusal.level)},
                       {"missing", waits.refusal.missing}});
  }
  for (const std::string& name : request.not_reached(result)) {
    waiting.push_back({{"job", name}, {"kind", "order"}});
  }
  for (const HeldJob& held : request.held()) {
    waiting.push_back({{"job", held.name}, {"kind", "after"}, {"after", held.after}});
  }
  for (const RefusedJob& job : request.refused()) {
    refused.push_back({{"job", job.name}, {"why", job.why}});
  }
  Json assumptions = Json::array();
  for (const std::string& text : request.costs().assumptions()) assumptions.push_back(text);
  for (const std::string& text : request.costs().missing()) {
    assumptions.push_back("left out: " + text);
  }
  return {{"policy", request.policy().name},
          {"assumptions", std::move(assumptions)},
          {"started", started},
          {"waiting", waiting},
          {"refused", refused}};
}

/// Whether deadlines and budgets can be kept, where that is known.
std::string bounds_text(std::span<const ScheduleRequest::Bound> bounds) {
  std::string text;
  for (const auto& [name, admission] : bounds) {
    const bool refused = !admission.refusal.empty();
    const std::string& told = refused ? admission.refusal : admission.note;
    if (told.empty()) continue;
    text += fmt::format("{}{}: {}\n", text.empty() ? "\n" : "", name, told);
  }
  return text;
}

Json bounds_json(std::span<const ScheduleRequest::Bound> bounds) {
  Json json = Json::array();
  for (const auto& [name, admission] : bounds) {
    json.push_back({{"job", name}, {"refusal", admission.refusal}, {"note", admission.note}});
  }
  return json;
}

/// Fails where a job can never run.
Status runnable(const ScheduleRequest& request) {
  if (request.refused().empty()) return {};
  return infeasible(
      fmt::format("{} can never run on this fleet", counted(request.refused().size(), "job")));
}

}  // namespace

std::string schedule_text(const ScheduleRequest& request, const PassResult& result,
                          std::span<const ScheduleRequest::Bound> bounds) {
  std::string text =
      jobs_table(request, result) + "\n" + price_table(request, result) + bounds_text(bounds);
  for (const RefusedJob& refused : request.refused()) {
    text += fmt::format("\n{}: {}\n", refused.name, refused.why);
  }
  return text;
}

Json schedule_json(const ScheduleRequest& request, const PassResult& result,
                   std::span<const ScheduleRequest::Bound> bounds) {
  Json json = decisions_json(request, result);
  json["bounds"] = bounds_json(bounds);
  return json;
}

Result<std::string> waiting_text(const ScheduleRequest& request, const std::string& name) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < request.jobs().size(); ++i) {
    names.emplace_back(request.jobs()[i].name);
    if (names.back() != name) continue;
    const auto waits = request.situation().waiting;
    const bool starts = std::none_of(waits.begin(), waits.end(),
                                     [&](const WaitingJob& job) { return job.id == JobId::at(i); });
    if (starts) return fmt::format("{} starts\n", name);
    const ExplainNames words{[&](JobId id) { return request.jobs()[id.value()].name; }};
    return explain(request.situation(), request.policy(), JobId::at(i), words).text();
  }
  for (const HeldJob& held : request.held()) {
    names.emplace_back(held.name);
    if (held.name == name) return fmt::format("{} waits {}\n", name, after_text(held));
  }
  for (const RefusedJob& refused : request.refused()) {
    names.emplace_back(refused.name);
    if (refused.name == name) {
      return fmt::format("{} can never run on this fleet; the reason is above\n", name);
    }
  }
  return input_error({},
                     fmt::format("--explain: no job \"{}\"{}", name, did_you_mean(name, names)));
}

Result<JudgedAnswer> schedule(const CommandOptions& options, const ScheduleOptions& asked) {
  Result<std::unique_ptr<ScheduleRequest>> request = ScheduleRequest::load(options, asked);
  if (!request) return forward_error(request);
  const PassResult result = (*request)->decide();
  const std::vector<ScheduleRequest::Bound> bounds = (*request)->bounds();
  (*request)->carry_out(result);
  JudgedAnswer answer{
      {schedule_text(**request, result, bounds), schedule_json(**request, result, bounds)},
      runnable(**request)};
  if (asked.explain.empty() || options.output == OutputFormat::kJson) return answer;
  Result<std::string> waiting = waiting_text(**request, asked.explain);
  if (waiting) {
    answer.shown.text += "\n" + *waiting;
  } else {
    answer.verdict = tl::unexpected(waiting.error());
  }
  return answer;
}

}  // namespace orrery

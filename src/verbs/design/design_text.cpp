#include "verbs/design/design_text.hpp"

#include <fmt/format.h>

#include "base/format/field_writer.hpp"
#include "base/text/count_text.hpp"
#include "base/text/quantity_text.hpp"
#include "base/text/text_table.hpp"

namespace orrery {
namespace {

constexpr std::size_t kOthersShown = 8;

std::string percent(double part) { return fmt::format("{:.2f} %", part * 100); }

/// What a refusal says first; the rest is in the JSON.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string head(const Design& design) {
  const DesignSite& asked = design.spec->site;
  std::string text = fmt::format("{}: {}\n", design.spec->name, design.chosen.label);
  for (const DesignGroup& group : design.groups) {
    text += fmt::format("  nodes  {} x {} with {} accelerators; spare nodes: {}\n",
                        print_count(group.nodes), group.candidate->node->id,
                        print_count(group.accelerators()), group.spares);
  }
  text += fmt::format("  power  {} of {} at the meter at rated power, {} in training; PUE {:.2f}\n",
                      print(design.site.power_max), print(asked.power),
                      print(design.site.power_typical), design.site.pue);
  if (design.site.capex) {
    text += fmt::format("  cost   {}{} for nodes, network and storage\n", print(*design.site.capex),
                        asked.budget ? " of " + print(*asked.budget) : "");
  }
  if (design.energy_per_year) {
    text += fmt::format("         {} per year for electricity", print(*design.energy_per_year));
    if (design.useful_hour) {
      text += fmt::format("; ${:.2f} per useful accelerator-hour over {:.3g} years",
                          design.useful_hour->value(), asked.years);
    }
    text += "\n";
  }
  return text + fmt::format("  limited by {}\n", word_of(design.chosen.limit));
}

std::string works_text(const Design& design) {
  TextTable table({{"WORK"},
                   {"JOBS", Align::kRight},
                   {"ACCELERATORS EACH", Align::kRight},
                   {"TYPE"},
                   {"TOKENS/S", Align::kRight},
                   {"GOODPUT", Align::kRight},
                   {"CHECKPOINT"},
                   {"LAYOUT"}});
  for (const DesignedWork& work : design.works) {
    const Goodput& parts = work.goodput.parts;
    table.add({work.asked->name, print_count(work.jobs), print_count(work.rate.accelerators),
               design.groups[work.group].candidate->accelerator->id, print_count(work.tokens),
               percent(parts.effective),
               work.goodput.stall > Seconds(0)
                   ? fmt::format("{} every {}", print(work.goodput.stall), print(parts.interval))
                   : "none",
               work.rate.layout});
  }
  return table.text();
}

std::string bill_text(const Design& design) {
  TextTable table({{"PART"},
                   {"WHAT"},
                   {"COUNT", Align::kRight},
                   {"EACH", Align::kRight},
                   {"TOTAL", Align::kRight},
                   {"POWER", Align::kRight},
                   {"PRICE BASIS"}});
  for (const BillRow& row : design.bill) {
    table.add({row.part, row.what, print_count(row.count), row.price ? print(*row.price) : "-",
               row.total ? print(*row.total) : "-", row.power ? print(*row.power) : "-",
               row.basis});
  }
  return table.text();
}

std::string use_text(const Design& design, const std::optional<Rehearsal>& played) {
  TextTable table({{"ACCELERATOR TIME"},
                   {"PREDICTED", Align::kRight},
                   {played ? "SIMULATED" : "", Align::kRight}});
  const auto add = [&](const char* name, double DesignUse::* part) {
    table.add({name, percent(design.predicted.*part), played ? percent(played->use.*part) : ""});
  };
  add("useful", &DesignUse::useful);
  add("checkpoints", &DesignUse::checkpoints);
  add("work lost", &DesignUse::lost);
  add("until detected", &DesignUse::undetected);
  add("restarting", &DesignUse::starting);
  add("spare, failed or unassigned", &DesignUse::unused);
  std::string text = table.text();
  if (!played) return text;
  const double by = difference(design, *played) * 100;
  return text + fmt::format("goodput {}: {:+.2f} % against the prediction, over {} with {}\n",
                            confirmed(design, *played) ? "confirmed" : "NOT CONFIRMED", by,
                            print(Seconds(played->span.count_seconds())),
                            counted(played->faults, "fault"));
}

std::string others_text(const Design& design) {
  std::string text;
  for (std::size_t i = 0; i < std::min(design.others.size(), kOthersShown); ++i) {
    text += fmt::format("  {}: {}\n", design.others[i].label, design.others[i].why);
  }
  for (const std::string& refused : design.refused) text += "  " + first_line(refused) + "\n";
  return text.empty() ? "" : "\nNot chosen:\n" + text;
}

Json works_json(const Design& design) {
  Json list = Json::array();
  for (const DesignedWork& work : design.works) {
    const Goodput& parts = work.goodput.parts;
    list.push_back({{"name", work.asked->name},
                    {"kind", word_of(work.asked->kind)},
                    {"accelerator", design.groups[work.group].candidate->accelerator->id},
                    {"jobs", work.jobs},
                    {"accelerators", work.rate.accelerators},
                    {"layout", work.rate.layout},
                    {"step_seconds", work.rate.step_seconds},
                    {"tokens_per_second", work.tokens},
                    {"goodput", parts.effective},
                    {"checkpoint_stall_s", work.goodput.stall.value()},
                    {"checkpoint_interval_s", parts.interval.value()},
                    {"restart_s", work.goodput.restart.value()}});
  }
  return list;
}

Json options_json(const Design& design) {
  Json list = Json::array();
  for (const DesignOption& option : design.others) {
    list.push_back({{"label", option.label},
                    {"work", option.work},
                    {"score", option.score},
                    {"bound_by", word_of(option.limit)},
                    {"why", option.why}});
  }
  return list;
}

}  // namespace

std::string design_text(const Design& design, const std::optional<Rehearsal>& played) {
  std::string text = head(design) + "\n" + works_text(design) + "\n" + bill_text(design) + "\n" +
                     use_text(design, played) + others_text(design);
  text += "\nAssumed:\n";
  for (const std::string& each : design.site.assumptions) text += "  " + each + "\n";
  return text;
}

Json design_json(const Design& design, const std::optional<Rehearsal>& played) {
  const DesignedSite& site = design.site;
  Json json = {{"name", design.spec->name},
               {"chosen", design.chosen.label},
               {"bound_by", word_of(design.chosen.limit)},
               {"reference", design.reference},
               {"accelerators", design.accelerators()},
               {"power_max_watts", site.power_max.value()},
               {"power_typical_watts", site.power_typical.value()},
               {"pue", site.pue}};
  json["capex_usd"] = site.capex ? Json(site.capex->value()) : Json();
  json["energy_usd_per_year"] =
      design.energy_per_year ? Json(design.energy_per_year->value()) : Json();
  json["usd_per_useful_accelerator_hour"] =
      design.useful_hour ? Json(design.useful_hour->value()) : Json();
  json["works"] = works_json(design);
  json["storage"] = {{"system", design.storage.system->id},
                     {"units", design.storage.units},
                     {"checkpoint_write_bytes_per_s", design.storage.write.value()},
                     {"ingest_bytes_per_s", design.storage.ingest.value()},
                     {"capacity_bytes", design.storage.capacity.value()}};
  json["bill"] = to_json(design.bill);
  json["predicted"] = to_json(design.predicted);
  if (played) {
    json["simulated"] = to_json(played->use);
    json["simulated_over_predicted"] = 1 + difference(design, *played);
    json["confirmed"] = confirmed(design, *played);
    json["simulated_days"] = played->span.count_seconds() / 86400;
    json["faults"] = played->faults;
  }
  json["not_chosen"] = options_json(design);
  json["refused"] = design.refused;
  json["assumptions"] = site.assumptions;
  return json;
}

}  // namespace orrery

#include "verbs/catalog/fleet_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/format/field_writer.hpp"
#include "base/text/count_text.hpp"
#include "base/text/text_table.hpp"

namespace orrery {
namespace {

/// Consecutive children made by one entry of the spec.
struct Siblings {
  DomainId first;
  std::uint32_t count;
};

std::vector<Siblings> siblings_of(const Topology& topology, const Domain& parent) {
  std::vector<Siblings> groups;
  for (std::uint32_t i = 0; i < parent.children; ++i) {
    const DomainId child(parent.first_child.value() + i);
    const bool same =
        !groups.empty() && topology.domain(groups.back().first).name == topology.domain(child).name;
    if (same) {
      ++groups.back().count;
    } else {
      groups.push_back({child, 1});
    }
  }
  return groups;
}

// "4 x dgx-h100 (32 x nvidia-h100-sxm5-80g)"
std::string contents(const Topology& topology, const Domain& rack) {
  std::map<std::uint32_t, std::uint32_t> nodes;
  for (std::uint32_t i = 0; i < rack.nodes; ++i) {
    ++nodes[topology.place(NodeId(rack.first_node.value() + i)).group];
  }
  std::vector<std::string> parts;
  for (const auto& [index, count] : nodes) {
    const NodeGroup& group = topology.groups()[index];
    parts.push_back(fmt::format("{} x {} ({} x {})", count, topology.node_type(group).id,
                                count * group.devices, topology.accelerator(group.type).id));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string accelerators(const Topology& topology, DomainId id) {
  std::vector<std::string> parts;
  for (const FleetTypeId type : topology.types_of(id)) {
    parts.push_back(fmt::format("{} x {}", print_count(topology.device_count(id, type)),
                                topology.accelerator(type).id));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string load_text(const PowerDomain& power) {
  return power.limit ? fmt::format("{} of {}", print(power.max_power), print(*power.limit))
                     : print(power.max_power);
}

std::string site_text(const Topology& topology, DomainId id) {
  for (const SiteFacts& site : topology.sites()) {
    if (site.domain != id) continue;
    std::vector<std::string> parts;
    if (site.spec.region) parts.push_back(*site.spec.region);
    if (site.spec.residency) parts.push_back("residency " + *site.spec.residency);
    parts.push_back(fmt::format("PUE {:.2f}{}", site.pue, site.pue_assumed ? " (assumed)" : ""));
    if (site.electricity) parts.push_back(print(*site.electricity));
    if (site.carbon) parts.push_back(print(*site.carbon) + " CO2");
    return fmt::format("{}", fmt::join(parts, ", "));
  }
  return "";
}

std::string line_text(const Topology& topology, const Siblings& group) {
  const Domain& domain = topology.domain(group.first);
  std::string name = topology.short_name(group.first);
  if (group.count > 1) {
    name = name.substr(0, name.rfind('-')) + fmt::format(" x {}", group.count);
  }
  switch (domain.level) {
    case Level::kSite:
      if (domain.nodes == 0) return fmt::format("site {}: no nodes", name);
      return fmt::format("site {}: {}", name, site_text(topology, group.first));
    case Level::kRack:
      return fmt::format("rack {}: {}, {}", name, contents(topology, domain),
                         load_text(topology.power(topology.power_of(group.first))));
    case Level::kFleet:
    case Level::kHall:
    case Level::kPod:
      break;
  }
  return fmt::format("{} {}: {}, {}{}", word_of(domain.level), name, counted(domain.nodes, "node"),
                     accelerators(topology, group.first), group.count > 1 ? " each" : "");
}

void add_tree(const Topology& topology, DomainId id, const std::string& indent, std::string& out) {
  const auto groups = siblings_of(topology, topology.domain(id));
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const bool last = i + 1 == groups.size();
    out += indent + (last ? "└─ " : "├─ ") + line_text(topology, groups[i]) + "\n";
    add_tree(topology, groups[i].first, indent + (last ? "   " : "│  "), out);
  }
}

// The limits above the racks, each with what hangs below it; rows are shown by their fullest.
std::string power_text(const Topology& topology) {
  TextTable table({{"POWER AND COOLING"},
                   {"LIMIT", Align::kRight},
                   {"AT MAXIMUM", Align::kRight},
                   {"IN TRAINING", Align::kRight}});
  std::map<std::string, std::pair<const PowerDomain*, std::uint32_t>> rows;
  const auto percent = [](Watts load, Watts limit) {
    return fmt::format("{} ({:.0f} %)", print(load), load / limit * 100);
  };
  const auto add = [&](const std::string& name, const PowerDomain& domain) {
    table.add({name, print(*domain.limit), percent(domain.max_power, *domain.limit),
               percent(domain.typical_power, *domain.limit)});
  };
  for (const PowerDomain& domain : topology.power_domains()) {
    if (domain.kind == PowerKind::kRack || !domain.limit) continue;
    if (domain.kind != PowerKind::kRow) {
      add(fmt::format("{} ({})", domain.name,
                      domain.supply.empty() ? std::string(word_of(domain.kind)) : domain.supply),
          domain);
      continue;
    }
    auto& [fullest, count] = rows[domain.name.substr(0, domain.name.rfind('/'))];
    ++count;
    if (fullest == nullptr || domain.max_power > fullest->max_power) fullest = &domain;
  }
  for (const auto& [hall, row] : rows) {
    add(fmt::format("{} (fullest of {} rows)", row.first->name, row.second), *row.first);
  }
  return table.empty() ? "" : "\n" + table.text();
}

std::string wan_text(const Topology& topology) {
  std::string out;
  for (const WanSpec& wan : topology.wan()) {
    out += fmt::format("WAN {} - {}: {}, {}{}\n", wan.from, wan.to, print(wan.bandwidth),
                       print(wan.latency),
                       wan.egress ? ", egress " + print(*wan.egress) : std::string());
  }
  return out.empty() ? out : "\n" + out;
}

std::string fabric_text(const FabricTotal& f) {
  std::string switches = fmt::format("{} leaf", f.leaves);
  if (f.spines > 0) switches += fmt::format(" + {} spine", f.spines);
  if (f.cores > 0) switches += fmt::format(" + {} core", f.cores);
  std::string oversubscription;
  if (f.oversubscription[0] > 1.005) {
    oversubscription += fmt::format(", leaf 1:{:.2g}", f.oversubscription[0]);
  }
  if (f.oversubscription[1] > 1.005) {
    oversubscription += fmt::format(", spine 1:{:.2g}", f.oversubscription[1]);
  }
  return fmt::format("{}/{}: {} {}, {}, {} switches, {} + {} + {} cables{}, bisection {}", f.site,
                     f.name, f.type, f.topology, counted(f.nodes, "node"), switches,
                     print_count(static_cast<double>(f.node_cables)),
                     print_count(static_cast<double>(f.leaf_spine_cables)),
                     print_count(static_cast<double>(f.spine_core_cables)), oversubscription,
                     print(f.bisection));
}

void add_money(TextTable& table, const MoneyTotal& money) {
  // Figures and what they leave out; "$0" would be a figure.
  const auto add = [&](const std::string& title, const std::string& sum,
                       const std::vector<std::pair<std::string, std::vector<std::string>>>& notes) {
    std::string text = sum;
    for (const auto& [what, names] : notes) {
      if (names.empty()) continue;
      text += fmt::format("{}{} {}", text.empty() ? "" : "; ", what, fmt::join(names, ", "));
    }
    table.add({title, text});
  };
  add("to buy", money.capex > Dollars(0) ? print(money.capex) : "",
      {{"accelerators only for", money.capex_partial}, {"no price for", money.capex_missing}});
  const bool rented = money.rent.quantity > DollarsPerSecond(0);
  add("to rent", rented ? print(money.rent.quantity) + " on demand" : "",
      {{"no price for", money.rent_missing}});
  if (money.energy) add("electricity", print(money.energy->quantity) + " in training", {});
}

}  // namespace

std::string tree_text(const Topology& topology) {
  std::string out =
      fmt::format("{}: {}, {}\n", topology.name(), counted(topology.node_count(), "node"),
                  accelerators(topology, Topology::root()));
  if (!topology.description().empty()) {
    for (const std::string& line : wrapped(topology.description(), 96)) out += line + "\n";
  }
  add_tree(topology, Topology::root(), "", out);
  return out + power_text(topology) + wan_text(topology);
}

std::string summary_text(const FleetSummary& summary) {
  TextTable table({{""}, {""}});
  for (const TypeTotal& type : summary.types) {
    table.add({"accelerators",
               fmt::format("{} x {} on {}, scale-up: {}", print_count(type.count), type.accelerator,
                           counted(type.nodes, "node"), type.scale_up)});
  }
  for (const auto& [format, rate] : summary.dense_flops) {
    table.add({"dense " + format, print(rate)});
  }
  table.add(
      {"memory", fmt::format("{} at {}", print(summary.memory), print(summary.memory_bandwidth))});
  for (const FabricTotal& fabric : summary.fabrics) table.add({"network", fabric_text(fabric)});
  for (const StorageTotal& s : summary.storage) {
    table.add(
        {"storage", fmt::format("{}/{}: {} x {}, read {}{}{}", s.site, s.name, s.units, s.system,
                                print(s.read), s.write ? ", write " + print(*s.write) : "",
                                s.usable ? ", " + print(*s.usable) : "")});
  }
  const PowerTotal& power = summary.power;
  const std::string assumed =
      power.assumed.empty() ? "" : fmt::format(" (assumed for {})", fmt::join(power.assumed, ", "));
  table.add({"IT power", fmt::format("{} at most, {} in training{}", print(power.it_max),
                                     print(power.it_typical), assumed)});
  table.add({"facility", fmt::format("{} at most, {} in training", print(power.facility_max),
                                     print(power.facility_typical))});
  if (!power.oversubscribed.empty()) {
    constexpr std::size_t kShown = 4;
    const std::size_t shown = std::min(kShown, power.oversubscribed.size());
    const std::vector<std::string> names(
        power.oversubscribed.begin(),
        power.oversubscribed.begin() + static_cast<std::ptrdiff_t>(shown));
    table.add({"power caps",
               fmt::format("needed in power domains above their limit at maximum ({}): {}{}",
                           power.oversubscribed.size(), fmt::join(names, ", "),
                           shown < power.oversubscribed.size() ? ", ..." : "")});
  }
  for (const std::string& domain : oversubscribed_texts(power)) {
    table.add({"oversubscribed", domain});
  }
  add_money(table, summary.money);
  return table.text();
}

std::vector<std::string> oversubscribed_texts(const PowerTotal& power) {
  constexpr std::size_t kShown = 4;
  std::vector<std::string> texts;
  for (const OversubscribedPower& domain : power.oversubscribed_in_training) {
    if (texts.size() == kShown) {
      texts.push_back(fmt::format("and {} more", power.oversubscribed_in_training.size() - kShown));
      break;
    }
    texts.push_back(fmt::format("{} would draw {} in training, {:.1f} % above its limit of {}",
                                domain.domain, print(domain.load),
                                (domain.load / domain.limit - 1) * 100, print(domain.limit)));
  }
  return texts;
}

}  // namespace orrery

#include "fleet/svg/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/text/quantity_text.hpp"
#include "base/text/text_table.hpp"
#include "fleet/svg/svg_site.hpp"
#include "report/svg/svg_canvas.hpp"

namespace orrery {
namespace {

constexpr double kWidth = 1200;
constexpr double kMargin = 28;
constexpr double kGap = 16;
constexpr std::uint32_t kSitesShown = 6;
constexpr std::size_t kTypesShown = 12;
constexpr std::size_t kWanShown = 8;

struct Tile {
  std::string figure;
  std::string label;
  std::string note;
};

std::string counted(std::uint32_t count, std::string_view noun) {
  return fmt::format("{} {}{}", print_count(count), noun, count == 1 ? "" : "s");
}

// Shows bf16, or another format that the fleet has.
Tile rate_tile(const FleetSummary& summary) {
  for (const auto& [format, rate] : summary.dense_flops) {
    if (format == "bf16") return {print(rate), "dense bf16", ""};
  }
  if (summary.dense_flops.empty()) return {"–", "dense rate", "not published"};
  return {print(summary.dense_flops.front().second), "dense " + summary.dense_flops.front().first,
          ""};
}

Tile bisection_tile(const FleetSummary& summary) {
  const FabricTotal* widest = nullptr;
  for (const FabricTotal& fabric : summary.fabrics) {
    if (widest == nullptr || fabric.bisection > widest->bisection) widest = &fabric;
  }
  if (widest == nullptr) return {"–", "bisection", "no scale-out network"};
  return {print(widest->bisection), "bisection",
          summary.fabrics.size() == 1 ? widest->type : widest->site + "/" + widest->name};
}

enum class Priced { kInPart, kAll };

Tile price_tile(const std::string& sum, const std::string& label, Priced priced) {
  if (sum.empty()) return {"–", label, "no price known"};
  return {sum, label, priced == Priced::kAll ? "" : "as far as priced"};
}

std::vector<Tile> tiles_of(const FleetSummary& summary) {
  const MoneyTotal& money = summary.money;
  const PowerTotal& power = summary.power;
  const auto all = [](bool priced) { return priced ? Priced::kAll : Priced::kInPart; };
  std::vector<Tile> tiles = {
      {print_count(summary.nodes), summary.nodes == 1 ? "node" : "nodes",
       counted(summary.racks, "rack") + ", " + counted(summary.pods, "pod")},
      {print_count(summary.accelerators),
       summary.accelerators == 1 ? "accelerator" : "accelerators",
       counted(static_cast<std::uint32_t>(summary.types.size()), "type")},
      rate_tile(summary),
      {print(summary.memory), "accelerator memory", "at " + print(summary.memory_bandwidth)},
      bisection_tile(summary),
      {print(power.it_max), power.assumed.empty() ? "IT power" : "IT power, assumed",
       "facility " + print(power.facility_max)},
      price_tile(money.capex > Dollars(0) ? print(money.capex) : "", "to buy",
                 all(money.capex_missing.empty() && money.capex_partial.empty())),
      price_tile(money.rent.quantity > DollarsPerSecond(0) ? print(money.rent.quantity) : "",
                 "to rent, on demand", all(money.rent_missing.empty()))};
  if (money.energy) tiles.back().note = "electricity " + print(money.energy->quantity);
  return tiles;
}

class Page {
 public:
  Page(const Topology& topology, const FleetSummary& summary)
      : topology_(topology), summary_(summary) {}

  std::string draw() {
    draw_title();
    draw_tiles();
    draw_legend();
    draw_wan();
    draw_sites();
    const double height = y_ - kGap + kMargin;
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" role=\"img\">\n<title>{2}</title>\n<style>{3}</style>\n"
        "<rect class=\"page\" width=\"{0}\" height=\"{1}\"/>\n{4}</svg>\n",
        svg_number(kWidth), svg_number(std::ceil(height)),
        escaped_xml(fmt::format("{}: {}, {}", summary_.name, counted(summary_.nodes, "node"),
                                counted(summary_.accelerators, "accelerator"))),
        svg_style(), canvas_.elements());
  }

 private:
  static constexpr double kRoom = kWidth - 2 * kMargin;

  void draw_title() {
    canvas_.fitted_text({kMargin, y_ + 24}, kRoom, summary_.name,
                        {.size = 26, .weight = Weight::kBold});
    y_ += 36;
    constexpr std::size_t kLinesMost = 3;
    const auto lines = wrapped(topology_.description(), 170);
    for (std::size_t i = 0; i < std::min(lines.size(), kLinesMost); ++i) {
      const bool cut = i + 1 == kLinesMost && lines.size() > kLinesMost;
      canvas_.fitted_text({kMargin, y_ + 12}, kRoom, lines[i] + (cut ? " …" : ""),
                          {.size = 13, .ink = "soft"});
      y_ += 18;
    }
    y_ += 8;
  }

  void draw_tiles() {
    constexpr double kHeight = 70;
    const std::vector<Tile> tiles = tiles_of(summary_);
    const auto count = static_cast<double>(tiles.size());
    const double width = (kRoom - 8 * (count - 1)) / count;
    double x = kMargin;
    for (const Tile& tile : tiles) {
      canvas_.box({x, y_, width, kHeight}, "tile", 6);
      const double room = width - 20;
      shrunk_text({x + 10, y_ + 25}, room, tile.figure, {.size = 17, .weight = Weight::kBold});
      canvas_.fitted_text({x + 10, y_ + 43}, room, tile.label, {.size = 12, .ink = "soft"});
      shrunk_text({x + 10, y_ + 59}, room, tile.note, {.size = 11, .ink = "faint"});
      x += width + 8;
    }
    y_ += kHeight + 14;
  }

  void shrunk_text(Point at, double room, const std::string& text, TextStyle style) {
    const double least = style.size * 0.8;
    style.size =
        std::clamp(style.size * room / std::max(1.0, text_width(text, style)), least, style.size);
    canvas_.fitted_text(at, room + 0.1, text, style);
  }

  // Draws one entry after the other, in as many lines as they need.
  void draw_legend() {
    constexpr TextStyle kText{.size = 12, .ink = "soft"};
    double x = kMargin;
    const auto place = [&](double swatch, const std::string& text) {
      const double width = swatch + 6 + text_width(text, kText) + 22;
      if (x > kMargin && x + width - 22 > kWidth - kMargin) {
        x = kMargin;
        y_ += 20;
      }
      canvas_.fitted_text({x + swatch + 6, y_ + 11}, kRoom - swatch - 6, text, kText);
      x += width;
      return Rect{x - width, y_, swatch, 12};
    };
    const std::size_t shown = std::min(summary_.types.size(), kTypesShown);
    for (std::size_t i = 0; i < shown; ++i) {
      const TypeTotal& type = summary_.types[i];
      const std::optional<FleetTypeId> id = topology_.find_type(type.accelerator);
      if (!id) continue;
      const bool joined = type.scale_up != "none";
      const Rect swatch =
          place(12, fmt::format("{} {}{}", print_count(type.count), topology_.accelerator(*id).name,
                                joined ? ", " + type.scale_up : ""));
      canvas_.box(swatch, accelerator_style(id->value()), 2);
    }
    if (shown < summary_.types.size()) {
      place(0, fmt::format("+ {} more types", summary_.types.size() - shown));
    }
    const bool joined = std::any_of(summary_.types.begin(), summary_.types.end(),
                                    [](const TypeTotal& type) { return type.scale_up != "none"; });
    if (joined) canvas_.box(place(22, "one scale-up domain"), "domain", 2);
    draw_load_key(place(44, "rack: in training, at most, of its limit"));
    y_ += 20 + kGap;
  }

  void draw_load_key(const Rect& swatch) {
    PowerDomain example;
    example.limit = Watts(100);
    example.max_power = Watts(85);
    example.typical_power = Watts(60);
    draw_load(canvas_, {swatch.x, swatch.y + 3.5, swatch.width, 5}, example);
  }

  void draw_wan() {
    const auto wan = topology_.wan();
    if (wan.empty()) return;
    const std::size_t shown = std::min(wan.size(), kWanShown);
    constexpr double kRow = 50;
    const std::size_t columns = shown > 1 ? 2 : 1;
    const ColumnGrid grid{columns};
    const double height = grid.rows(shown) * kRow + 40;
    const double each = (kRoom - 28) / static_cast<double>(columns);
    draw_card(canvas_, {kMargin, y_, kRoom, height},
              {"between the sites", "bandwidth and latency one way, price of data that leaves",
               shown < wan.size() ? fmt::format("+ {} more", wan.size() - shown) : ""});
    for (std::size_t i = 0; i < shown; ++i) {
      const double x = kMargin + 14 + grid.column(i) * each;
      const double y = y_ + 34 + grid.row(i) * kRow;
      draw_link({x, y, each - (columns > 1 ? 24 : 0), kRow}, wan[i]);
    }
    y_ += height + kGap;
  }

  void draw_link(const Rect& area, const WanSpec& wan) {
    constexpr double kEnd = 130;
    const double gigabits = wan.bandwidth.value() * 8 / 1e9;
    const double thickness = std::clamp(1.5 + std::log10(std::max(gigabits, 1.0)), 1.5, 6.0);
    const double middle = area.y + area.height / 2;
    canvas_.line({area.x + kEnd, middle}, {area.right() - kEnd, middle}, thickness, "cable");
    const auto end = [&](double x, const std::string& name) {
      canvas_.box({x, middle - 14, kEnd, 28}, "site", 14);
      canvas_.fitted_text({x + kEnd / 2, middle + 4}, kEnd - 20, name,
                          {.size = 12, .weight = Weight::kBold, .anchor = Anchor::kMiddle});
    };
    end(area.x, wan.from);
    end(area.right() - kEnd, wan.to);
    const double centre = area.x + area.width / 2;
    const double room = area.width - 2 * kEnd - 16;
    canvas_.fitted_text({centre, middle - 7}, room, fmt::format("{:.4g} Gb/s", gigabits),
                        {.size = 12, .weight = Weight::kBold, .anchor = Anchor::kMiddle});
    canvas_.fitted_text(
        {centre, middle + 17}, room,
        print(wan.latency) + (wan.egress ? ", egress " + print(*wan.egress) : std::string()),
        {.size = 11, .ink = "soft", .anchor = Anchor::kMiddle});
  }

  // Allows fewer pods and racks per hall if there are many halls.
  [[nodiscard]] SiteBudget budget() const {
    const auto sites = topology_.sites();
    SiteBudget budget;
    std::uint32_t halls = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(sites.size(), kSitesShown); ++i) {
      halls += std::min(topology_.domain(sites[i].domain).children, budget.halls);
    }
    if (sites.size() > 2) budget.fabrics = 2;
    if (halls > 4) budget.hall = {2, 6, 10};
    if (halls > 8) budget.hall = {1, 4, 4};
    return budget;
  }

  void draw_sites() {
    const auto sites = topology_.sites();
    const std::size_t shown = std::min<std::size_t>(sites.size(), kSitesShown);
    for (std::size_t i = 0; i < shown; ++i) {
      const Rect area{kMargin, y_, kRoom, 0};
      y_ += draw_site(canvas_, area, {topology_, sites[i], budget()}) + kGap;
    }
    if (shown == sites.size()) return;
    std::uint32_t nodes = 0;
    for (std::size_t i = shown; i < sites.size(); ++i) {
      nodes += topology_.domain(sites[i].domain).nodes;
    }
    canvas_.box({kMargin, y_, kRoom, 34}, "more", 8);
    canvas_.text(
        {kWidth / 2, y_ + 22},
        fmt::format("+ {} more sites with {}", sites.size() - shown, counted(nodes, "node")),
        {.size = 13, .weight = Weight::kBold, .ink = "soft", .anchor = Anchor::kMiddle});
    y_ += 34 + kGap;
  }

  const Topology& topology_;
  const FleetSummary& summary_;
  SvgCanvas canvas_;
  double y_ = kMargin;
};

}  // namespace

std::string draw_svg(const Topology& topology, const FleetSummary& summary) {
  return Page(topology, summary).draw();
}

}  // namespace orrery

#include "fleet/svg/svg_site.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/format/field_writer.hpp"
#include "base/text/quantity_text.hpp"
#include "fleet/svg/svg_fabric.hpp"

namespace orrery {
namespace {

constexpr double kPad = 16;
constexpr double kGap = 12;
constexpr double kTitleHeight = 40;
constexpr double kStorageHeight = 52;
constexpr double kLoadHeight = 40;
constexpr std::size_t kStorageShown = 6;
constexpr std::size_t kLoadsShown = 12;
constexpr TextStyle kSoft{.size = 11, .ink = "soft"};

/// A site without nodes has no cooling whose PUE could be assumed.
std::string site_text(const SiteFacts& site, const Domain& domain) {
  std::vector<std::string> parts;
  if (site.spec.region) parts.push_back(*site.spec.region);
  if (site.spec.residency) parts.push_back("data residency " + *site.spec.residency);
  if (domain.nodes > 0 || !site.pue_assumed) {
    parts.push_back(fmt::format("PUE {:.2f}{}", site.pue, site.pue_assumed ? " (assumed)" : ""));
  }
  if (site.electricity) parts.push_back("electricity " + print(*site.electricity));
  if (site.carbon) parts.push_back(print(*site.carbon) + " CO2");
  if (site.spec.price_factor) parts.push_back(fmt::format("rent x {}", *site.spec.price_factor));
  return fmt::format("{}", fmt::join(parts, " · "));
}

/// A power limit above the racks, in words, and the load below it.
struct Load {
  std::string name;
  std::string kind;
  const PowerDomain* domain;
  Watts limit;
};

std::string kind_text(const PowerDomain& domain) {
  switch (domain.kind) {
    case PowerKind::kSiteCap:
      return "power cap at the meter";
    case PowerKind::kFeeds:
      return domain.supply;
    case PowerKind::kUps:
      return "UPS " + domain.supply;
    case PowerKind::kRow:
      return "row of racks";
    case PowerKind::kRack:
      return "rack";
    case PowerKind::kCoolingLoop:
      return "cooling " + domain.supply;
  }
  return "";
}

// Returns all limits of a site from the meter down; the fullest row of a hall represents all its
// rows.
std::vector<Load> loads_of(const Topology& topology, const SiteFacts& site) {
  const std::string prefix = site.spec.name + "/";
  std::vector<Load> loads;
  std::map<std::string, std::pair<std::size_t, std::uint32_t>> rows;  // hall -> its load, rows
  for (const PowerDomain& domain : topology.power_domains()) {
    if (domain.kind == PowerKind::kRack || !domain.limit) continue;
    if (!domain.name.starts_with(prefix)) continue;
    const std::string name = domain.name.substr(prefix.size());
    if (domain.kind != PowerKind::kRow) {
      loads.push_back({name, kind_text(domain), &domain, *domain.limit});
      continue;
    }
    const auto [found, added] = rows.try_emplace(name.substr(0, name.rfind('/')), loads.size(), 0u);
    auto& [index, count] = found->second;
    if (added) loads.push_back({name, "", &domain, *domain.limit});
    if (domain.max_power > loads[index].domain->max_power) {
      loads[index] = {name, "", &domain, *domain.limit};
    }
    ++count;
    loads[index].kind =
        count == 1 ? kind_text(domain) : fmt::format("the fullest of {} rows", count);
  }
  return loads;
}

class SiteDrawing {
 public:
  SiteDrawing(SvgCanvas& canvas, const Rect& area, const SitePicture& picture)
      : canvas_(canvas),
        topology_(picture.topology),
        site_(picture.site),
        budget_(picture.budget),
        area_(area),
        y_(area.y + kTitleHeight) {}

  double draw() {
    draw_title();
    draw_fabrics();
    draw_halls();
    draw_storage();
    draw_loads();
    return y_ - area_.y + kPad - kGap;
  }

 private:
  [[nodiscard]] double left() const { return area_.x + kPad; }
  [[nodiscard]] double width() const { return area_.width - 2 * kPad; }

  /// Cells laid out in columns from y_ down.
  struct Cells {
    ColumnGrid grid;
    double height;
  };
  [[nodiscard]] Rect cell(std::size_t i, const Cells& cells) const {
    const auto columns = static_cast<double>(cells.grid.columns);
    const double each = (width() - kGap * (columns - 1)) / columns;
    return {left() + cells.grid.column(i) * (each + kGap),
            y_ + cells.grid.row(i) * (cells.height + kGap), each, cells.height};
  }

  void draw_title() {
    const Domain& domain = topology_.domain(site_.domain);
    constexpr TextStyle kName{.size = 17, .weight = Weight::kBold};
    const std::string name = topology_.short_name(site_.domain);
    const double y = area_.y + 26;
    canvas_.text({left(), y}, name, kName);
    const double from = left() + text_width(name, kName) + 14;
    const std::string totals =
        fmt::format("{} {}", print_count(domain.nodes), domain.nodes == 1 ? "node" : "nodes");
    const TextStyle right{
        .size = 12, .weight = Weight::kBold, .ink = "link", .anchor = Anchor::kEnd};
    canvas_.text({area_.right() - kPad, y}, totals, right);
    canvas_.fitted_text({from, y}, area_.right() - kPad - text_width(totals, right) - 14 - from,
                        site_text(site_, domain), {.size = 12, .ink = "soft"});
  }

  void draw_fabrics() {
    std::vector<const FabricInstance*> fabrics;
    for (const FabricInstance& fabric : topology_.fabrics()) {
      if (fabric.site == site_.domain) fabrics.push_back(&fabric);
    }
    const std::size_t shown = std::min<std::size_t>(fabrics.size(), budget_.fabrics);
    const std::size_t columns = shown > 1 ? 2 : 1;
    for (std::size_t i = 0; i < shown; i += columns) {
      const std::size_t in_row = std::min(columns, shown - i);
      double height = 0;
      for (std::size_t k = 0; k < in_row; ++k) {
        height = std::max(height, fabric_height(*fabrics[i + k]));
      }
      for (std::size_t k = 0; k < in_row; ++k) {
        draw_fabric(canvas_, cell(k, {{columns}, height}), *fabrics[i + k]);
      }
      y_ += height + kGap;
    }
    note_hidden(fabrics.size() - shown, "network");
  }

  void draw_halls() {
    const Domain& domain = topology_.domain(site_.domain);
    const std::uint32_t shown = std::min(domain.children, budget_.halls);
    for (std::uint32_t i = 0; i < shown; ++i) {
      const DomainId hall(domain.first_child.value() + i);
      y_ += draw_hall(canvas_, {left(), y_, width(), 0}, {topology_, hall, budget_.hall}) + kGap;
    }
    note_hidden(domain.children - shown, "hall");
  }

  void draw_storage() {
    const auto& storage = site_.spec.storage;
    const std::size_t shown = std::min(storage.size(), kStorageShown);
    if (shown == 0) return;
    const Cells cells{{std::min<std::size_t>(shown, 3)}, kStorageHeight};
    for (std::size_t i = 0; i < shown; ++i) draw_store(cell(i, cells), storage[i]);
    y_ += cells.grid.rows(shown) * (kStorageHeight + kGap);
    note_hidden(storage.size() - shown, "storage system");
  }

  void draw_store(const Rect& area, const StorageSpec& spec) {
    const StorageSystem& system = *topology_.catalog().find<StorageSystem>(spec.system);
    canvas_.box(area, "part", 6);
    for (const double y : {10.0, 21.0, 32.0}) {
      canvas_.box({area.x + 14, area.y + y, 26, 9}, "disk", 3);
    }
    const double x = area.x + 52;
    const double room = area.right() - 12 - x;
    canvas_.fitted_text({x, area.y + 22}, room,
                        fmt::format("storage {}: {} x {}", spec.name, spec.units, system.id),
                        {.size = 12, .weight = Weight::kBold});
    std::string rates = "read " + print(system.read * spec.units);
    if (system.write) rates += ", write " + print(*system.write * spec.units);
    if (system.usable) rates += ", " + print(*system.usable * spec.units) + " usable";
    canvas_.fitted_text({x, area.y + 39}, room, rates, kSoft);
  }

  void draw_loads() {
    const std::vector<Load> loads = loads_of(topology_, site_);
    const std::size_t shown = std::min(loads.size(), kLoadsShown);
    if (shown == 0) return;
    const std::size_t columns = shown > 1 ? 2 : 1;
    const ColumnGrid grid{columns};
    const double height = kCardTitleHeight + grid.rows(shown) * kLoadHeight + 8;
    const Rect card{left(), y_, width(), height};
    draw_card(canvas_, card,
              {"power and cooling", "dark: in training, light: with every node at its rating", ""});
    const double each =
        (card.width - 28 - 32 * static_cast<double>(columns - 1)) / static_cast<double>(columns);
    for (std::size_t i = 0; i < shown; ++i) {
      draw_limit({card.x + 14 + grid.column(i) * (each + 32),
                  card.y + kCardTitleHeight + grid.row(i) * kLoadHeight, each, kLoadHeight},
                 loads[i]);
    }
    y_ += height + kGap;
    note_hidden(loads.size() - shown, "limit");
  }

  void draw_limit(const Rect& area, const Load& load) {
    const PowerDomain& domain = *load.domain;
    constexpr TextStyle kName{.size = 12, .weight = Weight::kBold};
    constexpr TextStyle kFigures{.size = 11, .ink = "ink", .anchor = Anchor::kEnd};
    const std::string figures = fmt::format("{} – {} of {} ({:.0f} %)", print(domain.typical_power),
                                            print(domain.max_power), print(load.limit),
                                            domain.max_power / load.limit * 100);
    const double y = area.y + 14;
    canvas_.text({area.x, y}, load.name, kName);
    canvas_.text({area.right(), y}, figures, kFigures);
    const double from = area.x + text_width(load.name, kName) + 8;
    canvas_.fitted_text({from, y}, area.right() - text_width(figures, kFigures) - 12 - from,
                        load.kind, kSoft);
    draw_load(canvas_, {area.x, y + 7, area.width, 8}, domain);
  }

  void note_hidden(std::size_t count, std::string_view noun) {
    if (count == 0) return;
    canvas_.text({left() + 4, y_ + 8},
                 fmt::format("+ {} more {}{}", print_count(static_cast<double>(count)), noun,
                             count == 1 ? "" : "s"),
                 {.size = 12, .weight = Weight::kBold, .ink = "soft"});
    y_ += 16 + kGap;
  }

  SvgCanvas& canvas_;
  const Topology& topology_;
  const SiteFacts& site_;
  SiteBudget budget_;
  Rect area_;
  double y_;
};

}  // namespace

double draw_site(SvgCanvas& canvas, const Rect& area, const SitePicture& picture) {
  SvgCanvas content;
  const double height = SiteDrawing(content, area, picture).draw();
  canvas.box({area.x, area.y, area.width, height}, "site", 8);
  canvas.append(content);
  return height;
}

}  // namespace orrery

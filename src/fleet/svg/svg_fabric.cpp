#include "fleet/svg/svg_fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/format/field_writer.hpp"
#include "base/text/quantity_text.hpp"

namespace orrery {
namespace {

constexpr double kSwitchHeight = 13;
constexpr double kTierGap = 48;
constexpr double kNodesHeight = 20;
constexpr double kPad = 14;
constexpr double kLabelWidth = 84;     // left of the switches
constexpr double kFiguresWidth = 190;  // right of them
constexpr double kRingHeight = 172;
constexpr TextStyle kLabel{.size = 11, .ink = "soft"};

bool is_dragonfly(const Fabric& graph) {
  return graph.kind() == NetworkKind::kDragonfly || graph.kind() == NetworkKind::kDragonflyPlus;
}

int tiers_of(const Fabric& graph) {
  int tiers = 0;
  while (tiers < 3 && graph.switches(tiers) > 0) ++tiers;
  return tiers;
}

std::string counted(std::uint64_t count, const std::string& noun) {
  const bool hisses = noun.ends_with('f');  // leaf, leaves
  const std::string plural = hisses ? noun.substr(0, noun.size() - 1) + "ves" : noun + "s";
  return fmt::format("{} {}", print_count(static_cast<double>(count)), count == 1 ? noun : plural);
}

// Formats a rate in bits per second, as is usual for networks.
std::string bits(BytesPerSecond rate) {
  const double gigabits = rate.value() * 8 / 1e9;
  return gigabits >= 1000 ? fmt::format("{:.4g} Tb/s", gigabits / 1000)
                          : fmt::format("{:.4g} Gb/s", gigabits);
}

std::string oversubscription_text(double ratio) {
  return ratio > 1.005 ? fmt::format("1:{:.3g} oversubscribed", ratio) : "1:1 non-blocking";
}

/// All cables between two tiers, or between the nodes and the leaves.
struct Bundle {
  std::uint64_t cables;
  BytesPerSecond each;
  double oversubscription;  ///< 0: not applicable to this bundle
  std::string_view where = "";

  [[nodiscard]] BytesPerSecond bandwidth() const { return each * static_cast<double>(cables); }
};

/// Returns the bundles from the nodes up.
std::vector<Bundle> bundles_of(const Fabric& graph) {
  std::vector<Bundle> bundles = {
      {std::uint64_t{graph.node_count()} * graph.ports_per_node(), graph.port_bandwidth(), 0}};
  for (int tier = 0; tier < 2; ++tier) {
    if (graph.cables(tier) == 0) continue;
    bundles.push_back({graph.cables(tier), graph.cable_bandwidth(), graph.oversubscription(tier)});
    if (is_dragonfly(graph)) bundles.back().where = tier == 0 ? " in groups" : " between groups";
  }
  return bundles;
}

void draw_bundle(SvgCanvas& canvas, const Rect& area, const Bundle& bundle, double share) {
  constexpr double kThickness = 5;
  const double middle = area.y + area.height / 2;
  canvas.box({area.x, middle - kThickness / 2 - 8, area.width, kThickness}, "track", 2.5);
  canvas.box({area.x, middle - kThickness / 2 - 8, std::max(3.0, area.width * share), kThickness},
             "band", 2.5);
  canvas.fitted_text(
      {area.x, middle + 8}, area.width,
      fmt::format("{}{} x {}", counted(bundle.cables, "cable"), bundle.where, bits(bundle.each)),
      kLabel);
  std::string total = print(bundle.bandwidth());
  TextStyle style = kLabel;
  if (bundle.oversubscription > 0) {
    total += ", " + oversubscription_text(bundle.oversubscription);
    if (bundle.oversubscription > 1.005)
      style = {.size = 11, .weight = Weight::kBold, .ink = "warn"};
  }
  canvas.fitted_text({area.x, middle + 21}, area.width, total, style);
}

/// The drawn switches of one tier in one part of the network, and the place of the ellipsis for
/// those that are not drawn.
struct SwitchRow {
  std::vector<Rect> boxes;
  std::size_t gap;  ///< boxes.size(): none
};

SwitchRow lay_row(const Rect& area, std::uint64_t count, std::size_t most) {
  constexpr double kWidest = 24;
  constexpr double kPitchLeast = 12;
  const auto fitting = static_cast<std::size_t>(area.width / kPitchLeast);
  const auto shown =
      static_cast<std::size_t>(std::min<std::uint64_t>(count, std::min(most, fitting)));
  SwitchRow row{{}, shown < count && shown >= 3 ? shown - 2 : shown};
  const double pitch = area.width / static_cast<double>(std::max<std::size_t>(shown, 1));
  const double width = std::min(kWidest, pitch * 0.7);
  for (std::size_t i = 0; i < shown; ++i) {
    const double centre = area.x + (static_cast<double>(i) + 0.5) * pitch;
    row.boxes.push_back({centre - width / 2, area.y, width, kSwitchHeight});
  }
  return row;
}

void draw_row(SvgCanvas& canvas, const SwitchRow& row, std::string_view style) {
  SvgPath boxes;
  for (std::size_t i = 0; i < row.boxes.size(); ++i) {
    if (i != row.gap) boxes.add(row.boxes[i]);
  }
  canvas.path(boxes, style);
  if (row.gap >= row.boxes.size()) return;
  const Rect& at = row.boxes[row.gap];
  canvas.text({at.x + at.width / 2, at.y + kSwitchHeight - 4}, "…",
              {.size = 13, .ink = "faint", .anchor = Anchor::kMiddle});
}

/// Joins each switch of one row with the places of the other that equal its place modulo `stride`.
void add_mesh(SvgPath& mesh, const SwitchRow& lower, const SwitchRow& upper, std::size_t stride) {
  for (std::size_t i = 0; i < lower.boxes.size(); ++i) {
    for (std::size_t j = 0; j < upper.boxes.size(); ++j) {
      if (i == lower.gap || j == upper.gap || i % stride != j % stride) continue;
      const Rect& a = lower.boxes[i];
      const Rect& b = upper.boxes[j];
      mesh.add_line({a.x + a.width / 2, a.y}, {b.x + b.width / 2, b.bottom()});
    }
  }
}

/// Parts of a network that are joined only above their spines, if at all: the pods of all trees.
struct Parts {
  std::size_t trees = 1;
  std::size_t pods = 1;  ///< pods of one tree

  [[nodiscard]] std::size_t count() const { return trees * pods; }
};

Parts parts_of(const Fabric& graph) {
  Parts parts;
  for (const Switch& each : graph.switches()) {
    if (each.tier != 1) continue;
    parts.trees = std::max<std::size_t>(parts.trees, each.plane + 1U);
    parts.pods = std::max<std::size_t>(parts.pods, each.group + 1U);
  }
  return parts;
}

std::string parts_text(const Fabric& graph, const Parts& parts) {
  const bool rails = graph.kind() == NetworkKind::kRailOnlyFatTree;
  const std::string trees = fmt::format("{} {}", parts.trees, rails ? "rails" : "planes");
  if (parts.pods == 1) return "in " + trees;
  if (parts.trees == 1) return fmt::format("in {} pods", parts.pods);
  return fmt::format("{} x {} pods", trees, parts.pods);
}

class TreePicture {
 public:
  TreePicture(SvgCanvas& canvas, const Rect& area, const Fabric& graph)
      : canvas_(canvas),
        graph_(graph),
        area_(area),
        tiers_(tiers_of(graph)),
        middle_{area.x + kLabelWidth, area.y, area.width - kLabelWidth - kFiguresWidth - 16, 0},
        split_(parts_of(graph)),
        parts_(split_.count()) {}

  void draw() {
    draw_switches();
    draw_labels();
    draw_nodes();
    draw_bundles();
  }

 private:
  static constexpr std::size_t kPartsShown = 4;

  [[nodiscard]] double tier_y(int tier) const {
    return area_.y + (tiers_ - 1 - tier) * (kSwitchHeight + kTierGap);
  }
  [[nodiscard]] double nodes_y() const { return tier_y(0) + kSwitchHeight + kTierGap; }

  [[nodiscard]] Rect part_area(std::size_t part, int tier) const {
    const auto shown = static_cast<double>(std::min(parts_, kPartsShown));
    constexpr double kBetween = 22;
    const double width = (middle_.width - kBetween * (shown - 1)) / shown;
    return {middle_.x + static_cast<double>(part) * (width + kBetween), tier_y(tier), width, 0};
  }

  void draw_switches() {
    SvgPath mesh;
    std::vector<SwitchRow> leaves;
    std::vector<SwitchRow> spines;
    const std::size_t shown = std::min(parts_, kPartsShown);
    for (std::size_t part = 0; part < shown; ++part) {
      leaves.push_back(lay_row(part_area(part, 0), share(0), 24 / shown + 2));
      if (tiers_ < 2) continue;
      spines.push_back(lay_row(part_area(part, 1), share(1), 16 / shown + 2));
      add_mesh(mesh, leaves.back(), spines.back(), 1);
    }
    SwitchRow cores{{}, 0};
    if (tiers_ == 3) {
      const Rect all{middle_.x, tier_y(2), middle_.width, 0};
      cores = lay_row(all, graph_.switches(2), 18);
      for (const SwitchRow& row : spines) {
        add_mesh(mesh, row, cores, std::min(row.boxes.size(), cores.boxes.size()));
      }
    }
    for (const SwitchRow& row : leaves) add_drops(mesh, row);
    canvas_.path(mesh, "mesh");
    for (const SwitchRow& row : leaves) draw_row(canvas_, row, "leaf");
    for (const SwitchRow& row : spines) draw_row(canvas_, row, "spine");
    draw_row(canvas_, cores, "core");
  }

  // Draws the cables below a leaf as three lines.
  void add_drops(SvgPath& mesh, const SwitchRow& row) const {
    for (std::size_t i = 0; i < row.boxes.size(); ++i) {
      if (i == row.gap) continue;
      for (const double part : {0.2, 0.5, 0.8}) {
        const double x = row.boxes[i].x + row.boxes[i].width * part;
        mesh.add_line({x, row.boxes[i].bottom()}, {x, nodes_y()});
      }
    }
  }

  [[nodiscard]] std::uint64_t share(int tier) const {
    return (graph_.switches(tier) + parts_ - 1) / parts_;
  }

  void draw_labels() {
    static constexpr std::array<std::string_view, 3> kNames = {"leaf", "spine", "core"};
    for (int tier = 0; tier < tiers_; ++tier) {
      const std::string name(tiers_ == 1 ? "switch" : kNames[static_cast<std::size_t>(tier)]);
      const std::uint64_t count = graph_.switches(tier);
      const std::string text =
          tiers_ == 1 && count > 1 ? fmt::format("{} switches", count) : counted(count, name);
      canvas_.fitted_text({area_.x, tier_y(tier) + kSwitchHeight - 3}, kLabelWidth - 6, text,
                          {.size = 12, .weight = Weight::kBold});
    }
    if (parts_ < 2) return;
    canvas_.fitted_text({area_.x, tier_y(1) + kSwitchHeight + 10}, kLabelWidth - 2,
                        parts_text(graph_, split_), kLabel);
  }

  void draw_nodes() {
    const Rect bar{middle_.x, nodes_y(), middle_.width, kNodesHeight};
    canvas_.box(bar, "tile", 4);
    canvas_.fitted_text(
        {bar.x + bar.width / 2, bar.y + 14}, bar.width - 12,
        fmt::format("{}, {} each", counted(graph_.node_count(), "node"),
                    counted(graph_.ports_per_node(), "port")),
        {.size = 11, .weight = Weight::kBold, .ink = "soft", .anchor = Anchor::kMiddle});
  }

  void draw_bundles() {
    const std::vector<Bundle> bundles = bundles_of(graph_);
    BytesPerSecond widest;
    for (const Bundle& bundle : bundles) widest = std::max(widest, bundle.bandwidth());
    for (std::size_t i = 0; i < bundles.size(); ++i) {
      const Rect area{area_.x + area_.width - kFiguresWidth,
                      tier_y(static_cast<int>(i)) + kSwitchHeight, kFiguresWidth, kTierGap};
      draw_bundle(canvas_, area, bundles[i], bundles[i].bandwidth() / widest);
    }
  }

  SvgCanvas& canvas_;
  const Fabric& graph_;
  Rect area_;
  int tiers_;
  Rect middle_;
  Parts split_;
  std::size_t parts_;
};

/// Draws points on a circle, each joined to every other.
void draw_ring(SvgCanvas& canvas, Point centre, double radius, std::size_t points) {
  SvgPath chords;
  std::vector<Point> at;
  for (std::size_t i = 0; i < points; ++i) {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(points) -
        std::numbers::pi / 2;
    at.push_back({centre.x + radius * std::cos(angle), centre.y + radius * std::sin(angle)});
    for (std::size_t j = 0; j < i; ++j) chords.add_line(at[j], at[i]);
  }
  canvas.path(chords, "mesh");
  SvgPath dots;
  for (const Point& p : at) dots.add({p.x - 4.5, p.y - 4.5, 9, 9});
  canvas.path(dots, points > 1 ? "spine" : "leaf");
}

void draw_dragonfly(SvgCanvas& canvas, const Rect& area, const Fabric& graph) {
  constexpr std::size_t kShown = 24;
  std::uint32_t groups = 0;
  for (const Switch& each : graph.switches()) groups = std::max(groups, each.group + 1);
  const std::size_t routers = graph.switches().size() / std::max<std::size_t>(groups, 1);
  const double radius = kRingHeight / 2 - 26;
  const double top = area.y + radius + 8;
  const double pitch = std::min(210.0, area.width / 4);
  const auto ring = [&](double x, std::size_t count, const std::string& caption) {
    draw_ring(canvas, {x, top}, radius, std::min(count, kShown));
    canvas.fitted_text({x, top + radius + 22}, pitch - 8, caption,
                       {.size = 11, .ink = "soft", .anchor = Anchor::kMiddle});
  };
  ring(area.x + pitch / 2, groups, counted(groups, "group"));
  const bool plus = graph.kind() == NetworkKind::kDragonflyPlus;
  ring(area.x + pitch * 1.5, routers,
       fmt::format("{} a group", counted(routers, plus ? "leaf and spine router" : "router")));
  const double left = area.x + pitch * 2 + 16;
  const double width = area.x + area.width - left;
  double y = area.y + 18;
  canvas.fitted_text({left, y}, width,
                     fmt::format("{}, {} each", counted(graph.node_count(), "node"),
                                 counted(graph.ports_per_node(), "port")),
                     {.size = 12, .weight = Weight::kBold});
  const std::vector<Bundle> bundles = bundles_of(graph);
  BytesPerSecond widest;
  for (const Bundle& bundle : bundles) widest = std::max(widest, bundle.bandwidth());
  for (const Bundle& bundle : bundles) {
    draw_bundle(canvas, {left, y + 6, std::min(width, 260.0), kTierGap}, bundle,
                bundle.bandwidth() / widest);
    y += kTierGap;
  }
}

std::string fabric_kind(const FabricInstance& fabric) {
  return fmt::format("{}, {}, {} routing{}", fabric.type->name, word_of(fabric.graph.kind()),
                     word_of(fabric.routing),
                     fabric.in_network_reduction ? ", in-network reduction" : "");
}

}  // namespace

double fabric_height(const FabricInstance& fabric) {
  if (is_dragonfly(fabric.graph)) return kCardTitleHeight + kRingHeight + 6;
  return kCardTitleHeight + tiers_of(fabric.graph) * (kSwitchHeight + kTierGap) + kNodesHeight +
         kPad;
}

void draw_fabric(SvgCanvas& canvas, const Rect& area, const FabricInstance& fabric) {
  draw_card(canvas, area,
            {fabric.name, fabric_kind(fabric), "bisection " + print(fabric.graph.bisection())});
  const Rect inner{area.x + kPad, area.y + kCardTitleHeight, area.width - 2 * kPad, 0};
  if (is_dragonfly(fabric.graph)) {
    draw_dragonfly(canvas, inner, fabric.graph);
  } else if (tiers_of(fabric.graph) > 0) {
    TreePicture(canvas, inner, fabric.graph).draw();
  }
}

}  // namespace orrery

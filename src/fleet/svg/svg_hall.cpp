#include "fleet/svg/svg_hall.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text/quantity_text.hpp"
#include "fleet/svg/svg_torus.hpp"

namespace orrery {
namespace {

constexpr double kPad = 12;
constexpr double kTitleHeight = 26;
constexpr double kBetweenPods = 12;
constexpr double kTorusWidth = 118;
constexpr double kMoreHeight = 26;
constexpr double kFrame = 17;              // frame of a rack, around its slots, with the load
constexpr std::uint32_t kNodesDrawn = 80;  // nodes drawn per rack; more are a block
constexpr TextStyle kSmall{.size = 9.2, .ink = "faint", .anchor = Anchor::kMiddle};

/// How the nodes of the racks of a pod are laid out.
struct RackGrid {
  std::uint32_t rows = 1;
  std::uint32_t columns = 1;
  double slot_height = 0;

  [[nodiscard]] double slots_height() const { return rows * slot_height; }
};

RackGrid grid_of(std::uint32_t nodes_max) {
  RackGrid grid;
  grid.columns = (nodes_max + 19) / 20;
  grid.rows = (nodes_max + grid.columns - 1) / grid.columns;
  grid.slot_height = grid.rows <= 2 ? 22 : grid.rows <= 4 ? 14 : grid.rows <= 8 ? 11 : 7.5;
  return grid;
}

std::string counted(std::uint32_t count, std::string_view noun) {
  return fmt::format("{} {}{}", print_count(count), noun, count == 1 ? "" : "s");
}

std::uint32_t devices_in(const Topology& topology, DomainId id) {
  std::uint32_t devices = 0;
  for (const FleetTypeId type : topology.types_of(id)) devices += topology.device_count(id, type);
  return devices;
}

// Returns "40.8 / 41 kW", with the unit once if both have it.
std::string load_text(const PowerDomain& power) {
  std::string load = print(power.max_power);
  if (!power.limit) return load;
  const std::string limit = print(*power.limit);
  const std::size_t load_unit = load.find(' ');
  const std::size_t limit_unit = limit.find(' ');
  if (load.substr(load_unit) == limit.substr(limit_unit)) load.resize(load_unit);
  return load + " / " + limit;
}

/// The paths of a rack, collected over its nodes.
struct RackPaths {
  SvgPath slots;
  SvgPath domains;
  std::array<SvgPath, 10> accelerators;  ///< by colour
};

void add_accelerators(RackPaths& paths, const Rect& slot, const NodeGroup& group) {
  const double margin = slot.height < 8 ? 0.9 : 1.5;
  constexpr double kWideMax = 3;    // width of an accelerator over its height
  constexpr double kHighMax = 1.7;  // height over width
  const Rect inner{slot.x + 3, slot.y + margin, slot.width - 6, slot.height - 2 * margin};
  std::uint32_t rows = 1;
  while (inner.width * rows / group.devices < 4 && inner.height / (rows + 1) >= 3.5) ++rows;
  const std::uint32_t columns = (group.devices + rows - 1) / rows;
  const double pitch = inner.width / columns;
  const double step = inner.height / rows;
  const double gap = std::min(pitch * 0.22, 4.0);
  const double height = std::min(step - (rows > 1 ? 1 : 0), kHighMax * (pitch - gap));
  const double width = std::min(pitch - gap, kWideMax * height);
  const ColumnGrid grid{columns};
  SvgPath& path = paths.accelerators[group.type.value() % paths.accelerators.size()];
  for (std::uint32_t i = 0; i < group.devices; ++i) {
    path.add({inner.x + (grid.column(i) + 0.5) * pitch - width / 2,
              inner.y + grid.row(i) * step + (step - height) / 2, width, height});
  }
  // Bridged cards: a domain is part of a node.
  const std::uint32_t joined = group.scale_up_devices;
  if (rows > 1 || joined < 2 || joined >= group.devices) return;
  for (std::uint32_t i = 0; i + joined <= group.devices; i += joined) {
    paths.domains.add({inner.x + i * pitch, slot.y + 0.5, joined * pitch, slot.height - 1});
  }
}

class RackPicture {
 public:
  RackPicture(SvgCanvas& canvas, const Topology& topology, const RackGrid& grid)
      : canvas_(canvas), topology_(topology), grid_(grid) {}

  /// Draws a rack; the name and the load are below the frame.
  void draw(const Rect& frame, DomainId id) {
    const Domain& rack = topology_.domain(id);
    const Rect slots{frame.x + 3, frame.y + 4, frame.width - 6, frame.height - kFrame};
    canvas_.box(frame, "rack", 3);
    if (rack.nodes > kNodesDrawn) {
      draw_block(slots, id);
    } else {
      draw_nodes(slots, rack);
    }
    const PowerDomain& power = topology_.power(topology_.power_of(id));
    draw_load(canvas_, {slots.x + 1, slots.bottom() + 5, slots.width - 2, 4}, power);
    const double middle = frame.x + frame.width / 2;
    canvas_.fitted_text({middle, frame.bottom() + 12}, frame.width + 4, topology_.short_name(id),
                        {.size = 10, .ink = "soft", .anchor = Anchor::kMiddle});
    canvas_.fitted_text({middle, frame.bottom() + 23}, frame.width + 4, load_text(power), kSmall);
  }

 private:
  // With too many nodes to distinguish, draws the accelerators as shares of a block.
  void draw_block(const Rect& slots, DomainId id) {
    const double all = std::max(1u, devices_in(topology_, id));
    double x = slots.x;
    for (const FleetTypeId type : topology_.types_of(id)) {
      const double width = slots.width * topology_.device_count(id, type) / all;
      SvgPath share;
      share.add({x, slots.y, width, slots.height - 2});
      canvas_.path(share, accelerator_style(type.value()));
      x += width;
    }
    canvas_.fitted_text(
        {slots.x + slots.width / 2, slots.y + slots.height / 2 + 3}, slots.width - 4,
        counted(topology_.domain(id).nodes, "node"),
        {.size = 11, .weight = Weight::kBold, .ink = "light", .anchor = Anchor::kMiddle});
  }

  void draw_nodes(const Rect& slots, const Domain& rack) {
    RackPaths paths;
    bool whole_rack = false;
    const double width = slots.width / grid_.columns;
    const ColumnGrid grid{grid_.columns};
    for (std::uint32_t i = 0; i < rack.nodes; ++i) {
      const NodeGroup& group = topology_.group(NodeId(rack.first_node.value() + i));
      const double column = grid.column(i);
      const Rect slot{slots.x + column * width + (column > 0 ? 1.5 : 0),
                      slots.y + grid.row(i) * grid_.slot_height,
                      width - (grid_.columns > 1 ? 1.5 : 0), grid_.slot_height - 1.8};
      paths.slots.add(slot);
      add_accelerators(paths, slot, group);
      const bool in_node = group.scale_up_nodes <= 1;
      if (in_node && group.devices > 1 && group.scale_up_devices >= group.devices) {
        paths.domains.add(slot);
      }
      whole_rack = whole_rack || (!in_node && group.scale_up_nodes <= rack.nodes);
    }
    canvas_.path(paths.slots, "slot");
    for (std::size_t i = 0; i < paths.accelerators.size(); ++i) {
      canvas_.path(paths.accelerators[i], accelerator_style(i));
    }
    canvas_.path(paths.domains, "domain");
    if (whole_rack) {
      canvas_.box({slots.x - 1, slots.y - 2, slots.width + 2, grid_.slots_height() + 2}, "domain",
                  2);
    }
  }

  SvgCanvas& canvas_;
  const Topology& topology_;
  RackGrid grid_;
};

/// The torus of a pod, or of its racks, and whether the whole pod is one scale-up domain.
struct PodDomain {
  const TorusSpec* torus = nullptr;
  bool whole_pod = false;
};

PodDomain pod_domain(const Topology& topology, const Domain& pod) {
  const NodePlace& first = topology.place(pod.first_node);
  const NodeGroup& group = topology.group(pod.first_node);
  const std::uint32_t rack_nodes = topology.domain(first.rack).nodes;
  return {group.torus ? &*group.torus : nullptr,
          group.scale_up_nodes > 1 && group.scale_up_nodes > rack_nodes};
}

/// Consecutive children made by one entry of the spec.
struct Kind {
  std::uint32_t first;
  std::uint32_t count;
  std::uint32_t shown = 0;
};

std::vector<Kind> kinds_of(const Topology& topology, const Domain& parent) {
  std::vector<Kind> kinds;
  for (std::uint32_t i = 0; i < parent.children; ++i) {
    const std::uint32_t child = parent.first_child.value() + i;
    const bool same = !kinds.empty() && topology.domain(DomainId(kinds.back().first)).name ==
                                            topology.domain(DomainId(child)).name;
    if (same) {
      ++kinds.back().count;
    } else {
      kinds.push_back({child, 1});
    }
  }
  return kinds;
}

// A mixed hall shows each kind of pod, up to kKindsMost.
std::uint32_t pods_budget(const HallPicture& picture) {
  constexpr std::size_t kKindsMost = 8;
  const HallBudget& budget = picture.budget;
  if (budget.pods < HallBudget{}.pods) return budget.pods;
  const std::size_t kinds =
      kinds_of(picture.topology, picture.topology.domain(picture.hall)).size();
  return std::max(budget.pods, static_cast<std::uint32_t>(std::min(kinds, kKindsMost)));
}

class HallDrawing {
 public:
  HallDrawing(SvgCanvas& canvas, const Rect& area, const HallPicture& picture)
      : canvas_(canvas),
        topology_(picture.topology),
        area_(area),
        budget_(picture.budget),
        hall_(topology_.domain(picture.hall)),
        pods_(sample_children(topology_, picture.hall, pods_budget(picture))) {
    measure();
  }

  double draw(DomainId id) {
    const double height = hall_height();
    canvas_.box({area_.x, area_.y, area_.width, height}, "hall", 6);
    draw_title(id);
    for (std::size_t i = 0; i < pods_.size(); ++i) {
      const double column = ColumnGrid{columns_}.column(i);
      const double row = ColumnGrid{columns_}.row(i);
      draw_pod(
          {area_.x + kPad + column * (pod_width_ + kBetweenPods),
           area_.y + kTitleHeight + row * (pod_height() + kBetweenPods), pod_width_, pod_height()},
          pods_[i]);
    }
    if (hidden_pods() > 0) draw_more(area_.y + height - kPad - kMoreHeight);
    return height;
  }

 private:
  struct Cells {
    std::vector<DomainId> racks;
    std::uint32_t hidden;
    [[nodiscard]] std::size_t count() const { return racks.size() + (hidden > 0 ? 1 : 0); }
  };

  void measure() {
    columns_ = pods_.size() > 1 ? 2 : 1;
    pod_width_ = (area_.width - 2 * kPad - kBetweenPods * (columns_ - 1)) / columns_;
    std::size_t cells_max = 1;
    for (const DomainId pod : pods_) {
      const Cells cells = cells_of(pod);
      cells_max = std::max(cells_max, cells.count());
      slots_height_ = std::max(slots_height_, least_grid(cells).slots_height());
      const PodDomain domain = pod_domain(topology_, topology_.domain(pod));
      torus_ = torus_ || domain.torus != nullptr;
    }
    constexpr double kWidest = 150;
    const double room = pod_width_ - 2 * kPad - (torus_ ? kTorusWidth : 0);
    pitch_ = std::min(kWidest, room / static_cast<double>(cells_max));
  }

  [[nodiscard]] RackGrid least_grid(const Cells& cells) const {
    std::uint32_t most = 1;
    for (const DomainId rack : cells.racks) {
      const std::uint32_t nodes = topology_.domain(rack).nodes;
      if (nodes <= kNodesDrawn) most = std::max(most, nodes);
    }
    return grid_of(most);
  }

  /// Racks of all pods have one height; racks with few nodes draw larger nodes.
  [[nodiscard]] RackGrid grid_for(const Cells& cells) const {
    constexpr double kHighest = 30;
    RackGrid grid = least_grid(cells);
    grid.slot_height = std::min(std::max(grid.slot_height, kHighest), slots_height_ / grid.rows);
    return grid;
  }

  [[nodiscard]] Cells cells_of(DomainId pod) const {
    const std::uint32_t most =
        pods_.size() == 1 ? budget_.racks_of_lone_pod : budget_.racks_per_pod;
    const std::uint32_t racks = topology_.domain(pod).children;
    const std::uint32_t shown = racks <= most ? racks : most - 1;
    return {sample_children(topology_, pod, shown), racks - shown};
  }

  [[nodiscard]] double pod_height() const {
    return kTitleHeight + std::max(slots_height_ + kFrame + 27, torus_ ? 100.0 : 0.0) + 6;
  }
  [[nodiscard]] std::uint32_t hidden_pods() const {
    return hall_.children - static_cast<std::uint32_t>(pods_.size());
  }
  [[nodiscard]] double hall_height() const {
    const double rows = ColumnGrid{columns_}.rows(pods_.size());
    return kTitleHeight + rows * (pod_height() + kBetweenPods) +
           (hidden_pods() > 0 ? kMoreHeight + kBetweenPods : 0);
  }

  void draw_title(DomainId id) {
    constexpr TextStyle kName{.size = 12, .weight = Weight::kBold};
    const std::string name = topology_.short_name(id);
    const double y = area_.y + 17;
    canvas_.text({area_.x + kPad, y}, name, kName);
    std::uint32_t racks = 0;
    for (std::uint32_t i = 0; i < hall_.children; ++i) {
      racks += topology_.domain(DomainId(hall_.first_child.value() + i)).children;
    }
    const double left = area_.x + kPad + text_width(name, kName) + 10;
    canvas_.fitted_text({left, y}, area_.right() - kPad - left,
                        fmt::format("{}, {}, {}, {}", counted(hall_.children, "pod"),
                                    counted(racks, "rack"), counted(hall_.nodes, "node"),
                                    counted(devices_in(topology_, id), "accelerator")),
                        {.size = 11, .ink = "soft"});
  }

  void draw_pod(const Rect& area, DomainId id) {
    const Domain& pod = topology_.domain(id);
    const PodDomain domain = pod_domain(topology_, pod);
    canvas_.box(area, "pod", 5);
    if (domain.whole_pod) canvas_.box(area, "domain", 5);
    constexpr TextStyle kName{.size = 11.5, .weight = Weight::kBold};
    const std::string name = topology_.short_name(id);
    canvas_.text({area.x + kPad, area.y + 17}, name, kName);
    const double left = area.x + kPad + text_width(name, kName) + 8;
    canvas_.fitted_text({left, area.y + 17}, area.right() - kPad - left, pod_text(id, domain),
                        {.size = 10.5, .ink = "soft"});
    double x = area.x + kPad;
    if (torus_) {
      if (domain.torus != nullptr) {
        draw_torus(canvas_, {x, area.y + kTitleHeight, kTorusWidth - 14, pod_height() - 34},
                   *domain.torus);
      }
      x += kTorusWidth;
    }
    draw_racks({x, area.y + kTitleHeight, 0, 0}, id);
  }

  [[nodiscard]] std::string pod_text(DomainId id, const PodDomain& domain) const {
    const Domain& pod = topology_.domain(id);
    std::string text =
        fmt::format("{}, {}, {}", counted(pod.children, "rack"), counted(pod.nodes, "node"),
                    counted(devices_in(topology_, id), "accelerator"));
    if (domain.torus == nullptr) return text;
    text += domain.whole_pod ? ", one scale-up torus" : ", a scale-up torus each rack";
    if (domain.torus->cube.empty()) return text;
    return text + ", joined optically in cubes of " +
           torus_text({domain.torus->cube, {}, false, {}});
  }

  void draw_racks(const Rect& from, DomainId pod) {
    const Cells cells = cells_of(pod);
    double x = from.x;
    RackPicture picture(canvas_, topology_, grid_for(cells));
    for (const DomainId rack : cells.racks) {
      picture.draw({x, from.y, pitch_ - 7, slots_height_ + kFrame}, rack);
      x += pitch_;
    }
    if (cells.hidden == 0) return;
    const Rect tile{x, from.y, pitch_ - 7, slots_height_ + kFrame};
    canvas_.box(tile, "more", 3);
    const TextStyle style{
        .size = 12, .weight = Weight::kBold, .ink = "soft", .anchor = Anchor::kMiddle};
    const double middle = tile.x + tile.width / 2;
    const double y = tile.y + tile.height / 2;
    canvas_.fitted_text({middle, y}, tile.width - 2, "+ " + print_count(cells.hidden), style);
    canvas_.fitted_text({middle, y + 13}, tile.width - 2, cells.hidden == 1 ? "rack" : "racks",
                        {.size = 10.5, .ink = "soft", .anchor = Anchor::kMiddle});
  }

  void draw_more(double y) {
    std::uint32_t nodes = hall_.nodes;
    for (const DomainId pod : pods_) nodes -= topology_.domain(pod).nodes;
    const Rect strip{area_.x + kPad, y, area_.width - 2 * kPad, kMoreHeight};
    canvas_.box(strip, "more", 5);
    canvas_.fitted_text(
        {strip.x + strip.width / 2, strip.y + 17}, strip.width - 2 * kPad,
        fmt::format("+ {} with {}", counted(hidden_pods(), "more pod"), counted(nodes, "node")),
        {.size = 11.5, .weight = Weight::kBold, .ink = "soft", .anchor = Anchor::kMiddle});
  }

  SvgCanvas& canvas_;
  const Topology& topology_;
  Rect area_;
  HallBudget budget_;
  const Domain& hall_;
  std::vector<DomainId> pods_;
  double slots_height_ = 0;
  std::uint32_t columns_ = 1;
  double pod_width_ = 0;
  double pitch_ = 0;
  bool torus_ = false;
};

}  // namespace

std::vector<DomainId> sample_children(const Topology& topology, DomainId parent,
                                      std::uint32_t budget) {
  std::vector<Kind> kinds = kinds_of(topology, topology.domain(parent));
  std::uint32_t left = std::min(budget, topology.domain(parent).children);
  while (left > 0) {
    for (Kind& kind : kinds) {
      if (left == 0 || kind.shown == kind.count) continue;
      ++kind.shown;
      --left;
    }
  }
  std::vector<DomainId> sample;
  for (const Kind& kind : kinds) {
    for (std::uint32_t i = 0; i < kind.shown; ++i) sample.push_back(DomainId(kind.first + i));
  }
  return sample;
}

void draw_load(SvgCanvas& canvas, const Rect& area, const PowerDomain& power) {
  canvas.box(area, "track", area.height / 2);
  if (!power.limit) return;
  const double scale = area.width / std::max(*power.limit, power.max_power).value();
  const Watts limit = *power.limit;
  const std::string typical = fill_colour(power.typical_power / limit);
  const Rect at_most{area.x, area.y, power.max_power.value() * scale, area.height};
  canvas.bar(at_most, power.max_power > limit ? fill_colour(1) : typical, 0.45);
  canvas.bar({area.x, area.y, power.typical_power.value() * scale, area.height}, typical, 1);
  if (power.max_power <= limit) return;
  const double x = area.x + limit.value() * scale;
  canvas.line({x, area.y - 2}, {x, area.bottom() + 2}, 1.5, "limit");
}

double draw_hall(SvgCanvas& canvas, const Rect& area, const HallPicture& picture) {
  return HallDrawing(canvas, area, picture).draw(picture.hall);
}

}  // namespace orrery

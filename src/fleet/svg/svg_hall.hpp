// fleet/svg/svg_hall.hpp - the picture of a hall: pods of racks of nodes of accelerators.
//
// Equal siblings are sampled, never shrunk until invisible: some of every kind are drawn, and the
// rest are counted. A rack is one path for its nodes and one for the accelerators of each type, so
// its number of shapes does not grow with its number of nodes.
#pragma once

#include "fleet/topology.hpp"
#include "report/svg/svg_canvas.hpp"

namespace orrery {

/// How much of a hall is drawn.
struct HallBudget {
  std::uint32_t pods = 4;
  std::uint32_t racks_per_pod = 8;
  std::uint32_t racks_of_lone_pod = 12;  ///< if a pod has the width of the hall
};

struct HallPicture {
  const Topology& topology;
  DomainId hall;
  HallBudget budget;
};

/// Draws at area.x, area.y, as wide as the area; returns the height it took.
[[nodiscard]] double draw_hall(SvgCanvas& canvas, const Rect& area, const HallPicture& picture);

/// Returns children of a domain, at most `budget` of them: one of every kind before a second of
/// any.
[[nodiscard]] std::vector<DomainId> sample_children(const Topology& topology, DomainId parent,
                                                    std::uint32_t budget);

/// Draws a thin bar: power in training, maximum power, and the limit. Red if the limit is exceeded.
void draw_load(SvgCanvas& canvas, const Rect& area, const PowerDomain& power);

}  // namespace orrery

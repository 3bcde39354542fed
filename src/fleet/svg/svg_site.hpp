// fleet/svg/svg_site.hpp - the panel of one site: its networks, halls, storage, power and cooling.
#pragma once

#include "fleet/svg/svg_hall.hpp"
#include "fleet/topology.hpp"
#include "report/svg/svg_canvas.hpp"

namespace orrery {

/// How much of a site is drawn; the rest is counted.
struct SiteBudget {
  std::uint32_t fabrics = 6;
  std::uint32_t halls = 4;
  HallBudget hall;
};

struct SitePicture {
  const Topology& topology;
  const SiteFacts& site;
  SiteBudget budget;
};

/// Draws at area.x, area.y, as wide as the area; returns the height it took.
[[nodiscard]] double draw_site(SvgCanvas& canvas, const Rect& area, const SitePicture& picture);

}  // namespace orrery

// fleet/svg/svg_fabric.hpp - the picture of one scale-out network.
//
// A tree is drawn tier by tier with a sample of its switches, all cables of a tier as one bundle
// with their bandwidth; a dragonfly as a ring of groups beside one group. The written counts are
// exact, although a network has only one or two dozen shapes.
#pragma once

#include "fleet/topology.hpp"
#include "report/svg/svg_canvas.hpp"

namespace orrery {

/// Returns the height in pixels that draw_fabric needs, for any width of at least 500.
[[nodiscard]] double fabric_height(const FabricInstance& fabric);

/// Draws a card that fills `area`.
void draw_fabric(SvgCanvas& canvas, const Rect& area, const FabricInstance& fabric);

}  // namespace orrery

// fleet/svg_fabric.hpp - the picture of one scale-out network.
//
// A tree is drawn tier by tier with a sample of its switches, all cables of a tier as one bundle
// with their bandwidth; a dragonfly as a ring of groups beside one group. The counts written are
// the true ones however few shapes stand for them: a dozen or two a network.
#pragma once

#include "fleet/svg_canvas.hpp"
#include "fleet/topology.hpp"

namespace orrery {

/// Pixels draw_fabric needs, whatever the width (at least 500).
[[nodiscard]] double fabric_height(const FabricInstance& fabric);

/// A card that fills `area`.
void draw_fabric(SvgCanvas& canvas, const Rect& area, const FabricInstance& fabric);

}  // namespace orrery

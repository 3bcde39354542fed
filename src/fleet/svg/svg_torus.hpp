// fleet/svg/svg_torus.hpp - the picture of a torus: a block of cells, or a rectangle if it is flat.
//
// The sides are to scale. A cell is a cube that optical switches can rearrange, or one accelerator;
// at most ten cells per side are ruled, the true sides are written below. Six shapes and a line.
#pragma once

#include <string>

#include "fleet/spec/spec.hpp"
#include "report/svg/svg_canvas.hpp"

namespace orrery {

/// Draws within `area`, whose lowest 20 pixels are for the text.
void draw_torus(SvgCanvas& canvas, const Rect& area, const TorusSpec& torus);

/// Returns text such as "16 x 20 x 28".
[[nodiscard]] std::string torus_text(const TorusSpec& torus);

}  // namespace orrery

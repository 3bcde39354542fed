// scheduler/price/part_prices.hpp - what a free part of a device is worth, in whole devices.
//
// 190 free thousandths of a device are worth nothing beside a request for 810 where no request is
// so small, and 350 beside one for 650 are worth a third of a device where many requests ask for
// 320. The prices are the dual solution of packing the requested parts into as few devices as
// possible: a linear program whose columns are generated when they are needed (P. Gilmore and R.
// Gomory, "A Linear Programming Approach to the Cutting-Stock Problem", Operations Research 9(6),
// 1961). A part of size s sells for its dual; a free part is worth the best set of requests that
// fits into it.
// Pure. Cost: sizes^2 + 1000 x sizes for a column, and a few columns for each size; 25 sizes take
// under 1 ms.
#pragma once

#include <array>
#include <span>

#include "scheduler/request/share_request.hpp"

namespace orrery {

/// How often a part of a device of this size is requested.
struct PartDemand {
  int thousandths = 0;
  double frequency = 0;
};

/// Worth of 0 to kDeviceThousandths free thousandths; it never falls, and a whole device is worth
/// 1.
using PartPrices = std::array<double, kDeviceThousandths + 1>;

/// Precondition: each size is 1 to kDeviceThousandths - 1 and occurs at most once; its frequency is
/// positive. Only the 64 most frequent sizes count. Without any demand only whole devices are worth
/// anything.
[[nodiscard]] PartPrices part_prices(std::span<const PartDemand> demand);

}  // namespace orrery

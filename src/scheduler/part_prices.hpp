// scheduler/part_prices.hpp - what a free part of a device is worth, in whole devices.
//
// 190 thousandths beside a request for 810 are worth nothing where nobody asks so little, and 350
// beside one for 650 are worth a third of a device where many ask 320. The prices are the dual
// solution of packing the parts that are asked for into as few devices as possible: linear
// programme with columns made by need (P. Gilmore and R. Gomory, "A Linear Programming Approach to
// the Cutting-Stock Problem", Operations Research 9(6), 1961). A part of size s sells for its
// dual; a free part is worth the best set of requests that fits into it.
// Pure. Cost: sizes^2 + 1000 x sizes a column, some columns a size; 25 sizes take under 1 ms.
#pragma once

#include <array>
#include <span>

#include "scheduler/share_request.hpp"

namespace orrery {

/// How often a part of a device of this size is asked for.
struct PartDemand {
  int thousandths = 0;
  double frequency = 0;
};

/// Worth of 0 to kDeviceThousandths free thousandths; never falls, and a whole device is worth 1.
using PartPrices = std::array<double, kDeviceThousandths + 1>;

/// Precondition: each size is 1 to kDeviceThousandths - 1 and asked for at most once, its frequency
/// is positive. Only the 64 most frequent sizes count. No demand: only whole devices are worth
/// anything.
[[nodiscard]] PartPrices part_prices(std::span<const PartDemand> demand);

}  // namespace orrery

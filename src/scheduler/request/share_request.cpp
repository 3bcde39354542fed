#include "scheduler/request/share_request.hpp"

#include <algorithm>
#include <bit>

#include "base/assert.hpp"

namespace orrery {

int ShareNode::free_thousandths() const {
  int sum = 0;
  for (int device = 0; device < devices; ++device) {
    sum += device_free[static_cast<std::size_t>(device)];
  }
  return sum;
}

bool allows_type(const ShareRequest& request, const ShareNode& node) {
  return ((request.types >> node.type) & 1U) != 0;
}

bool fits(const ShareNode& node, const ShareRequest& request) {
  if (node.cpu_free < request.cpu || node.memory_free < request.memory) return false;
  if (!request.asks_device()) return true;
  if (!allows_type(request, node)) return false;
  const auto* const end = node.device_free.begin() + node.devices;
  return std::count_if(node.device_free.begin(), end,
                       [&](int free) { return free >= request.thousandths; }) >= request.devices;
}

ShareDevices tightest_devices(const ShareNode& node, const ShareRequest& request) {
  unsigned chosen = 0;
  if (!request.asks_device()) return 0;
  for (int taken = 0; taken < request.devices; ++taken) {
    int best = -1;
    for (int device = 0; device < node.devices; ++device) {
      const int free = node.device_free[static_cast<std::size_t>(device)];
      if (free < request.thousandths || ((chosen >> device) & 1U) != 0) continue;
      if (best < 0 || free < node.device_free[static_cast<std::size_t>(best)]) best = device;
    }
    ORRERY_ASSERT(best >= 0, "the request fits");
    chosen |= 1U << best;
  }
  return static_cast<ShareDevices>(chosen);
}

void take(ShareNode& node, const ShareRequest& request, ShareDevices devices) {
  ORRERY_ASSERT(!request.asks_device() || std::popcount(devices) == request.devices,
                "as many devices as were asked for");
  node.cpu_free -= request.cpu;
  node.memory_free -= request.memory;
  for (int device = 0; device < node.devices; ++device) {
    if (((devices >> device) & 1U) == 0) continue;
    std::int16_t& free = node.device_free[static_cast<std::size_t>(device)];
    free = static_cast<std::int16_t>(free - request.thousandths);
    ORRERY_ASSERT(free >= 0, "the request fits on the device");
  }
}

void give_back(ShareNode& node, const ShareRequest& request, ShareDevices devices) {
  node.cpu_free += request.cpu;
  node.memory_free += request.memory;
  for (int device = 0; device < node.devices; ++device) {
    if (((devices >> device) & 1U) == 0) continue;
    std::int16_t& free = node.device_free[static_cast<std::size_t>(device)];
    free = static_cast<std::int16_t>(free + request.thousandths);
    ORRERY_ASSERT(free <= kDeviceThousandths, "what is given back was taken");
  }
}

}  // namespace orrery

// scheduler/request/share_request.hpp - what one pod requests from one node, and what the node has
// left.
//
// Values; the scheduler fills them from the fleet and from jobs. A device is counted in
// thousandths, so a request for 0.47 of a device is exact. Invariant of a node: every device has 0
// to kDeviceThousandths free. Cost: every function is O(devices of the node).
#pragma once

#include <array>
#include <compare>
#include <cstdint>

namespace orrery {

inline constexpr int kDeviceThousandths = 1000;
inline constexpr int kShareDevicesMax = 16;

/// Devices of one node: bit i is device i.
using ShareDevices = std::uint16_t;

struct ShareNode {
  std::int64_t cpu_free = 0;     ///< thousandths of a core
  std::int64_t memory_free = 0;  ///< MiB
  int devices = 0;
  int type = 0;  ///< type of the devices, 0 to 31
  std::array<std::int16_t, kShareDevicesMax> device_free{};

  auto operator<=>(const ShareNode&) const = default;

  /// Thousandths free on all devices together.
  [[nodiscard]] int free_thousandths() const;
};

struct ShareRequest {
  std::int64_t cpu = 0;     ///< thousandths of a core
  std::int64_t memory = 0;  ///< MiB
  int devices = 0;
  int thousandths = 0;                ///< of each device: kDeviceThousandths, or less when shared
  std::uint32_t types = 0xffff'ffff;  ///< bit t: may run on devices of type t

  auto operator<=>(const ShareRequest&) const = default;

  [[nodiscard]] bool asks_device() const { return devices > 0 && thousandths > 0; }
  /// One part of one device: the only request for which the choice of the device matters.
  [[nodiscard]] bool is_part() const { return devices == 1 && thousandths < kDeviceThousandths; }
};

/// True when devices of the node's type may serve the request.
[[nodiscard]] bool allows_type(const ShareRequest& request, const ShareNode& node);

/// True when the node has the CPU, memory and devices.
[[nodiscard]] bool fits(const ShareNode& node, const ShareRequest& request);

/// The devices with the least free capacity that still fit; equal ones by ascending number.
/// Precondition: the request fits.
[[nodiscard]] ShareDevices tightest_devices(const ShareNode& node, const ShareRequest& request);

/// Takes the request from the node. Precondition: it fits on `devices`.
void take(ShareNode& node, const ShareRequest& request, ShareDevices devices);

/// Undoes take().
void give_back(ShareNode& node, const ShareRequest& request, ShareDevices devices);

}  // namespace orrery

// node/devices/device_filter.hpp - device files by their numbers, and the program by which cgroup
// v2 keeps the processes of a group from some of them.
//
// cgroup v2 has no file for devices: the kernel asks a BPF program of type
// BPF_PROG_TYPE_CGROUP_DEVICE at each open and mknod (Documentation/admin-guide/cgroup-v2.rst,
// "Device controller"). The program is a list of comparisons that this module writes out, so that
// no compiler of BPF is needed.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.hpp"
#include "base/system/file_descriptor.hpp"

namespace orrery {

struct DeviceNumber {
  enum class Kind : std::uint8_t { kCharacter, kBlock } kind = Kind::kCharacter;
  std::uint32_t major = 0;
  std::uint32_t minor = 0;

  /// Returns "c 195:0", the form that the v1 controller of devices takes.
  [[nodiscard]] std::string text() const;

  friend auto operator<=>(const DeviceNumber&, const DeviceNumber&) = default;
};

/// Error: there is no such file, or it is not a device file.
[[nodiscard]] Result<DeviceNumber> device_number_at(const std::string& path);

/// Denies the processes of the cgroup v2 directory `group` to open or make the device files
/// `denied`, and lifts what `before` (the result of an earlier call for this group, or an invalid
/// descriptor) denied. At no moment is a device that both deny allowed. The program stays with the
/// group when the descriptor is closed. Errors: what the kernel refused; it needs root.
[[nodiscard]] Result<FileDescriptor> attach_device_filter(const std::string& group,
                                                          std::span<const DeviceNumber> denied,
                                                          const FileDescriptor& before);

}  // namespace orrery

#include "node/devices/device_files.hpp"

#include <fmt/format.h>

namespace orrery {
namespace {

Result<NodeDeviceFiles> as_written(const AgentSpec& spec, const NodeInventory& inventory) {
  if (spec.devices.size() != inventory.accelerators) {
    return input_error(spec.devices.front().where,
                       fmt::format("devices: {} are listed, expected one entry for each of the {} "
                                   "accelerators that the node offers",
                                   spec.devices.size(), inventory.accelerators));
  }
  NodeDeviceFiles files;
  for (const DeviceSpec& device : spec.devices) {
    std::vector<DeviceNumber>& own = files.own.emplace_back();
    for (const std::string& path : device.files) {
      const Result<DeviceNumber> number = device_number_at(path);
      if (!number) return input_error(device.where, "devices: " + number.error().message);
      own.push_back(*number);
    }
  }
  return files;
}

}  // namespace

Result<NodeDeviceFiles> node_device_files(const AgentSpec& spec, const NodeInventory& inventory,
                                          Discovery& discovery) {
  if (!spec.devices.empty()) return as_written(spec, inventory);
  NodeDeviceFiles files;
  for (const FoundAccelerator& each : discovery.accelerators) {
    std::vector<DeviceNumber> numbers;
    for (const std::string& path : each.files) {
      const Result<DeviceNumber> number = device_number_at(path);
      if (number) {
        numbers.push_back(*number);
      } else {
        discovery.notes.push_back("jobs are not kept from a device of others: " +
                                  number.error().message);
      }
    }
    const bool offered = each.type == inventory.accelerator;
    if (offered) {
      files.own.push_back(std::move(numbers));
    } else {
      files.others.insert(files.others.end(), numbers.begin(), numbers.end());
    }
  }
  return files;
}

}  // namespace orrery

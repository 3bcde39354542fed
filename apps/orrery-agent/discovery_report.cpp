#include "apps/orrery-agent/discovery_report.hpp"

#include <fmt/format.h>

#include "base/text/quantity_text.hpp"

namespace orrery {
namespace {

std::string size_text(std::uint64_t bytes) {
  return print_quantity(static_cast<double>(bytes), kind_of<Bytes>());
}

Json known(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

DiscoveryReport::DiscoveryReport(const NodeInventory& inventory, const Discovery& discovery)
    : inventory_(inventory),
      discovery_(discovery),
      host_(host_topology().value_or(HostTopology())) {}

std::string DiscoveryReport::device_line(const FoundAccelerator& device) const {
  std::string line = fmt::format("{:2}  {}  {}", device.number, device.name,
                                 device.type.empty() ? "not in the catalog" : device.type);
  if (device.memory_bytes > 0) line += "  " + size_text(device.memory_bytes);
  if (!device.bus.empty()) line += "  " + device.bus;
  if (device.numa) line += fmt::format("  NUMA {}", *device.numa);
  return device.serial.empty() ? line : line + "  " + device.serial;
}

std::string DiscoveryReport::text() const {
  std::string text = fmt::format("machine       {} ({})\n", inventory_.machine, inventory_.kernel);
  text += fmt::format("processors    {} x {}, {} cores, {} threads\n", host_.packages,
                      host_.processor, host_.cores, host_.threads);
  text += fmt::format("memory        {}\n", size_text(inventory_.memory_bytes));
  for (const NumaNode& node : host_.numa) {
    text += fmt::format("NUMA node {:<3} {} threads, {}\n", node.number, node.threads,
                        size_text(node.memory_bytes));
  }
  if (!inventory_.driver.empty()) text += fmt::format("driver        {}\n", inventory_.driver);
  for (const FoundAccelerator& device : discovery_.accelerators) {
    text += fmt::format("accelerator   {}\n", device_line(device));
  }
  for (const std::string& note : discovery_.notes) text += fmt::format("note          {}\n", note);
  if (inventory_.accelerators == 0) return text + "offers        no accelerators";
  return text + fmt::format("offers        {} x {}{}", inventory_.accelerators,
                            inventory_.accelerator, inventory_.emulated ? " (emulated)" : "");
}

Json DiscoveryReport::json() const {
  Json numa = Json::array();
  for (const NumaNode& node : host_.numa) {
    numa.push_back(
        {{"number", node.number}, {"threads", node.threads}, {"memory_bytes", node.memory_bytes}});
  }
  Json devices = Json::array();
  for (const FoundAccelerator& each : discovery_.accelerators) {
    devices.push_back({{"number", each.number},
                       {"name", each.name},
                       {"type", known(each.type)},
                       {"memory_bytes", each.memory_bytes > 0 ? Json(each.memory_bytes) : Json()},
                       {"bus", known(each.bus)},
                       {"numa", each.numa ? Json(*each.numa) : Json()},
                       {"files", each.files},
                       {"serial", known(each.serial)}});
  }
  return {{"machine", inventory_.machine},
          {"kernel", inventory_.kernel},
          {"processor", known(host_.processor)},
          {"packages", host_.packages},
          {"cores", host_.cores},
          {"threads", host_.threads},
          {"memory_bytes", inventory_.memory_bytes},
          {"numa", std::move(numa)},
          {"driver", known(inventory_.driver)},
          {"devices", std::move(devices)},
          {"accelerator", known(inventory_.accelerator)},
          {"accelerators", inventory_.accelerators},
          {"emulated", inventory_.emulated},
          {"notes", discovery_.notes}};
}

}  // namespace orrery

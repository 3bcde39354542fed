#include "node/devices/discovery.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text/nearest_name.hpp"

namespace orrery {
namespace {

/// The device files of a maker's kernel driver, whether or not the maker's library is there.
struct DeviceFiles {
  std::string_view maker;
  std::size_t count = 0;
  std::string_view library;
};

DeviceFiles nvidia_files(Storage& storage, const KernelDirectories& kernel) {
  return {"NVIDIA", count_device_files(storage, kernel.devices, "nvidia"), "libnvidia-ml.so.1"};
}

/// A display adapter has render files, too; an accelerator has kfd beside them.
DeviceFiles amd_files(Storage& storage, const KernelDirectories& kernel) {
  const auto all = storage.list(kernel.devices).value_or(std::vector<std::string>());
  const bool computes = std::find(all.begin(), all.end(), "kfd") != all.end();
  const std::string directory = kernel.devices + "/dri";
  return {"AMD", computes ? count_device_files(storage, directory, "renderD") : 0,
          "librocm_smi64.so"};
}

void add_driver(Discovery& discovery, Result<std::unique_ptr<AcceleratorDriver>> driver,
                const DeviceFiles& files) {
  if (!driver) return discovery.notes.push_back(driver.error().message);
  if (*driver == nullptr) {
    if (files.count == 0) return;
    return discovery.notes.push_back(
        fmt::format("{} device files of {} and no {}: the devices cannot be identified, install "
                    "that library of the driver",
                    files.count, files.maker, files.library));
  }
  Result<std::vector<FoundAccelerator>> found = (*driver)->find();
  if (!found) return discovery.notes.push_back(found.error().message);
  for (FoundAccelerator& each : *found) each.driver = discovery.drivers.size();
  std::move(found->begin(), found->end(), std::back_inserter(discovery.accelerators));
  discovery.drivers.push_back(*std::move(driver));
}

/// Returns the type with the longest name with a digit in a processor's model: "EPYC 9654", never
/// "epyc".
const Accelerator* processor_named(const Catalog& catalog, std::string_view model) {
  const std::string words = lower_case(model);
  const Accelerator* best = nullptr;
  std::size_t longest = 0;
  for (const Accelerator& row : catalog.all<Accelerator>()) {
    if (row.kind != AcceleratorKind::kCpu) continue;
    for (const std::string& alias : row.aliases) {
      const bool numbered = alias.find_first_of("0123456789") != alias.npos;
      if (!numbered || alias.size() <= longest || words.find(lower_case(alias)) == words.npos)
        continue;
      best = &row;
      longest = alias.size();
    }
  }
  return best;
}

}  // namespace

const Accelerator* accelerator_named(const Catalog& catalog, std::string_view name) {
  if (const Accelerator* row = catalog.find<Accelerator>(name); row != nullptr) return row;
  for (const Accelerator& row : catalog.all<Accelerator>()) {
    if (lower_case(row.name) == lower_case(name)) return &row;
  }
  return processor_named(catalog, name);
}

Discovery discover_accelerators(const Catalog& catalog, Storage& storage,
                                const DiscoverySources& sources) {
  Discovery discovery;
  add_driver(discovery, open_nvml(sources.nvml), nvidia_files(storage, sources.kernel));
  add_driver(discovery, open_rocm_smi(sources.rocm_smi), amd_files(storage, sources.kernel));
  for (FoundAccelerator& each : discovery.accelerators) {
    const Accelerator* row = accelerator_named(catalog, each.name);
    if (row != nullptr) {
      each.type = row->id;
      continue;
    }
    const auto unknown = catalog.require<Accelerator>(each.name);
    discovery.notes.push_back(unknown.error().message);
  }
  PciAccelerators others = find_pci_accelerators(storage, sources.kernel);
  std::move(others.found.begin(), others.found.end(), std::back_inserter(discovery.accelerators));
  discovery.kernel_drivers = std::move(others.drivers);
  std::move(others.notes.begin(), others.notes.end(), std::back_inserter(discovery.notes));
  for (FoundAccelerator& each : discovery.accelerators) {
    each.numa = numa_of(storage, sources.kernel, each.bus);
    const std::vector<std::string> render = render_files(storage, sources.kernel, each.bus);
    each.files.insert(each.files.end(), render.begin(), render.end());
    for (std::string& file : each.files) file = sources.kernel.devices + "/" + file;
  }
  return discovery;
}

void offer(Discovery& discovery, const Catalog& catalog, NodeInventory& inventory) {
  std::vector<std::string> drivers;
  drivers.reserve(discovery.drivers.size());
  for (const auto& driver : discovery.drivers) drivers.push_back(driver->version());
  drivers.insert(drivers.end(), discovery.kernel_drivers.begin(), discovery.kernel_drivers.end());
  if (!drivers.empty()) inventory.driver = fmt::format("{}", fmt::join(drivers, "; "));
  std::vector<std::pair<std::string_view, std::uint32_t>> counts;
  for (const FoundAccelerator& each : discovery.accelerators) {
    if (each.type.empty()) continue;
    const auto at = std::find_if(counts.begin(), counts.end(),
                                 [&](const auto& count) { return count.first == each.type; });
    if (at != counts.end()) {
      ++at->second;
    } else {
      counts.emplace_back(each.type, 1);
    }
  }
  if (counts.empty()) {
    // Accelerators unknown to the catalog are no reason to offer the processors instead.
    const Accelerator* own =
        discovery.accelerators.empty() ? processor_named(catalog, inventory.processor) : nullptr;
    if (own == nullptr) return;
    inventory.accelerator = own->id;
    inventory.accelerators = inventory.packages;
    return;
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  inventory.accelerator = most->first;
  inventory.accelerators = most->second;
  for (const auto& [type, count] : counts) {
    if (type == most->first) continue;
    discovery.notes.push_back(
        fmt::format("{} x {} besides {} x {}: a node offers one type, the others are ignored",
                    count, type, most->second, most->first));
  }
}

}  // namespace orrery

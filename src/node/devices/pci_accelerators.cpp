#include "node/devices/pci_accelerators.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace orrery {
namespace {

enum class Family : std::uint8_t { kNeuron, kTpu };

struct PciIdentity {
  Family family;
  std::string_view vendor, device, subsystem;  ///< subsystem "": any
  std::string_view type;                       ///< catalog id
  std::string_view name;
};

/// Identities of Neuron are from the open driver (neuron_device.h), those of TPU from JAX and
/// tpu-info.
constexpr std::array kIdentities = {
    PciIdentity{Family::kNeuron, "0x1d0f", "0x7064", "", "aws-inferentia1", "AWS Inferentia"},
    PciIdentity{Family::kNeuron, "0x1d0f", "0x7065", "", "aws-inferentia1", "AWS Inferentia"},
    PciIdentity{Family::kNeuron, "0x1d0f", "0x7066", "", "aws-inferentia1", "AWS Inferentia"},
    PciIdentity{Family::kNeuron, "0x1d0f", "0x7067", "", "aws-inferentia1", "AWS Inferentia"},
    PciIdentity{Family::kNeuron, "0x1d0f", "0x7264", "", "aws-inferentia2", "AWS Inferentia2"},
    PciIdentity{Family::kNeuron, "0x1d0f", "0x7164", "", "aws-trainium1", "AWS Trainium"},
    PciIdentity{Family::kNeuron, "0x1d0f", "0x7364", "", "aws-trainium2", "AWS Trainium2"},
    PciIdentity{Family::kNeuron, "0x1d0f", "0x7564", "", "aws-trainium3", "AWS Trainium3"},
    PciIdentity{Family::kNeuron, "0x1d0f", "0x7565", "", "aws-trainium3", "AWS Trainium3"},
    PciIdentity{Family::kTpu, "0x1ae0", "0x0027", "0x004e", "google-tpu-v2", "TPU v2"},
    PciIdentity{Family::kTpu, "0x1ae0", "0x0027", "0x004f", "google-tpu-v3", "TPU v3"},
    PciIdentity{Family::kTpu, "0x1ae0", "0x005e", "", "google-tpu-v4", "TPU v4"},
    PciIdentity{Family::kTpu, "0x1ae0", "0x0062", "", "google-tpu-v5p", "TPU v5p"},
    PciIdentity{Family::kTpu, "0x1ae0", "0x0063", "", "google-tpu-v5e", "TPU v5e"},
    PciIdentity{Family::kTpu, "0x1ae0", "0x006f", "", "google-tpu-v6e", "TPU v6e"},
    PciIdentity{Family::kTpu, "0x1ae0", "0x0076", "", "google-tpu7x", "TPU7x"},
};

/// Returns the one line of a file; empty: there is no file.
std::string line_of(Storage& storage, const std::string& path) {
  std::string text = storage.read_file(path, 4096).value_or("");
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

const PciIdentity* identity_of(Storage& storage, const std::string& device) {
  const std::string vendor = line_of(storage, device + "/vendor");
  const bool known_vendor =
      std::any_of(kIdentities.begin(), kIdentities.end(),
                  [&](const PciIdentity& identity) { return identity.vendor == vendor; });
  if (!known_vendor) return nullptr;
  const std::string number = line_of(storage, device + "/device");
  const std::string subsystem = line_of(storage, device + "/subsystem_device");
  for (const PciIdentity& identity : kIdentities) {
    if (identity.vendor != vendor || identity.device != number) continue;
    if (identity.subsystem.empty() || identity.subsystem == subsystem) return &identity;
  }
  return nullptr;
}

std::size_t device_files(Storage& storage, const std::string& devices, Family family) {
  if (family == Family::kNeuron) return count_device_files(storage, devices, "neuron");
  const std::size_t direct = count_device_files(storage, devices, "accel");
  return direct > 0 ? direct : count_device_files(storage, devices + "/vfio", "");
}

/// "vfio/7": the group of the IOMMU that the device is in; empty: it is in none.
std::string vfio_file(Storage& storage, const std::string& system, const std::string& bus) {
  const std::string groups = system + "/kernel/iommu_groups";
  for (const std::string& group : storage.list(groups).value_or(std::vector<std::string>())) {
    const auto members =
        storage.list(groups + "/" + group + "/devices").value_or(std::vector<std::string>());
    if (std::find(members.begin(), members.end(), bus) != members.end()) return "vfio/" + group;
  }
  return "";
}

/// Returns the name of a device's file below the directory of devices.
std::string device_file(Storage& storage, const KernelDirectories& directories, Family family,
                        const FoundAccelerator& device) {
  if (family == Family::kNeuron) return fmt::format("neuron{}", device.number);
  if (count_device_files(storage, directories.devices, "accel") > 0) {
    return fmt::format("accel{}", device.number);
  }
  return vfio_file(storage, directories.system, device.bus);
}

}  // namespace

std::size_t count_device_files(Storage& storage, const std::string& directory,
                               std::string_view prefix) {
  const std::vector<std::string> names =
      storage.list(directory).value_or(std::vector<std::string>());
  return static_cast<std::size_t>(
      std::count_if(names.begin(), names.end(), [&](std::string_view name) {
        if (!name.starts_with(prefix) || name.size() == prefix.size()) return false;
        name.remove_prefix(prefix.size());
        return name.find_first_not_of("0123456789") == name.npos;
      }));
}

std::vector<std::string> render_files(Storage& storage, const KernelDirectories& directories,
                                      const std::string& bus) {
  std::vector<std::string> files;
  if (bus.empty()) return files;
  const std::string place = directories.system + "/bus/pci/devices/" + bus + "/drm";
  for (const std::string& name : storage.list(place).value_or(std::vector<std::string>())) {
    if (name.starts_with("card") || name.starts_with("renderD")) files.push_back("dri/" + name);
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::optional<int> numa_of(Storage& storage, const KernelDirectories& directories,
                           const std::string& bus) {
  if (bus.empty()) return std::nullopt;
  const std::string text =
      line_of(storage, directories.system + "/bus/pci/devices/" + bus + "/numa_node");
  int node = -1;
  (void)std::from_chars(text.data(), text.data() + text.size(), node);
  return node < 0 ? std::nullopt : std::optional(node);
}

PciAccelerators find_pci_accelerators(Storage& storage, const KernelDirectories& directories) {
  const std::string all = directories.system + "/bus/pci/devices";
  std::array<std::vector<FoundAccelerator>, 2> families;
  for (const std::string& bus : storage.list(all).value_or(std::vector<std::string>())) {
    const PciIdentity* identity = identity_of(storage, all + "/" + bus);
    if (identity == nullptr) continue;
    std::vector<FoundAccelerator>& family = families[static_cast<std::size_t>(identity->family)];
    const auto number = static_cast<std::uint32_t>(family.size());
    FoundAccelerator& each = family.emplace_back();
    each.number = number;
    each.name = identity->name;
    each.type = identity->type;
    each.bus = bus;
  }
  PciAccelerators result;
  for (const Family family : {Family::kNeuron, Family::kTpu}) {
    std::vector<FoundAccelerator>& found = families[static_cast<std::size_t>(family)];
    const std::size_t files = device_files(storage, directories.devices, family);
    if (files < found.size()) {
      result.notes.push_back(
          fmt::format("{} x {} on PCI and {} device files in {}: its driver "
                      "has not taken them all",
                      found.size(), found[0].name, files, directories.devices));
      found.resize(files);
    }
    if (found.empty()) continue;
    for (FoundAccelerator& each : found) {
      const std::string file = device_file(storage, directories, family, each);
      if (!file.empty()) each.files.push_back(file);
    }
    result.found.insert(result.found.end(), found.begin(), found.end());
    const std::string module = family == Family::kNeuron ? "neuron" : "gasket";
    const std::string version =
        line_of(storage, directories.system + "/module/" + module + "/version");
    if (!version.empty()) result.drivers.push_back(module + " " + version);
  }
  return result;
}

}  // namespace orrery

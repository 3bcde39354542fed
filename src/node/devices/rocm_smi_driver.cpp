// Accelerators by ROCm SMI, the library of AMD's driver. The used part of its documented C
// interface is declared here, so that the build needs no header of it.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/system/dynamic_library.hpp"
#include "node/devices/accelerator_driver.hpp"
#include "perf/site/power.hpp"

namespace orrery {
namespace {

using RsmiStatus = int;

constexpr RsmiStatus kSuccess = 0;
constexpr int kDriver = 0;         // component of a version
constexpr int kMemoryOnBoard = 0;  // "VRAM"
constexpr int kCurrent = 0;        // metric of a temperature
constexpr double kWattsPerMicrowatt = 1e-6;
constexpr double kDegreesPerMillidegree = 1e-3;
constexpr double kPercent = 1e-2;

/// The library's functions; those that older or newer releases lack may be null.
struct RocmSmi {
  RsmiStatus (*init)(std::uint64_t);
  RsmiStatus (*shut_down)();
  RsmiStatus (*words_of)(RsmiStatus, const char**);
  RsmiStatus (*version)(int, char*, std::uint32_t);
  RsmiStatus (*count)(std::uint32_t*);
  RsmiStatus (*name)(std::uint32_t, char*, std::size_t);
  RsmiStatus (*serial)(std::uint32_t, std::uint64_t*);
  RsmiStatus (*pci)(std::uint32_t, std::uint64_t*);
  RsmiStatus (*memory)(std::uint32_t, int, std::uint64_t*);
  RsmiStatus (*memory_used)(std::uint32_t, int, std::uint64_t*);
  RsmiStatus (*power)(std::uint32_t, std::uint64_t*, int*);
  RsmiStatus (*average_power)(std::uint32_t, std::uint32_t, std::uint64_t*);
  RsmiStatus (*temperature)(std::uint32_t, std::uint32_t, int, std::int64_t*);
  RsmiStatus (*busy)(std::uint32_t, std::uint32_t*);
  RsmiStatus (*default_cap)(std::uint32_t, std::uint64_t*);
  RsmiStatus (*cap_range)(std::uint32_t, std::uint32_t, std::uint64_t*, std::uint64_t*);
  RsmiStatus (*set_cap)(std::uint32_t, std::uint32_t, std::uint64_t);
};

Status bind(const DynamicLibrary& library, RocmSmi& smi) {
  Status all;
  const auto require = [&](const char* name, auto*& function) {
    if (all) all = library.require(name, function);
  };
  require("rsmi_init", smi.init);
  require("rsmi_shut_down", smi.shut_down);
  require("rsmi_status_string", smi.words_of);
  require("rsmi_version_str_get", smi.version);
  require("rsmi_num_monitor_devices", smi.count);
  require("rsmi_dev_name_get", smi.name);
  require("rsmi_dev_unique_id_get", smi.serial);
  require("rsmi_dev_pci_id_get", smi.pci);
  require("rsmi_dev_memory_total_get", smi.memory);
  require("rsmi_dev_memory_usage_get", smi.memory_used);
  require("rsmi_dev_temp_metric_get", smi.temperature);
  require("rsmi_dev_busy_percent_get", smi.busy);
  // Available from release 6 on; before it there is only an average.
  library.find("rsmi_dev_power_get", smi.power);
  library.find("rsmi_dev_power_ave_get", smi.average_power);
  library.find("rsmi_dev_power_cap_default_get", smi.default_cap);
  library.find("rsmi_dev_power_cap_range_get", smi.cap_range);
  library.find("rsmi_dev_power_cap_set", smi.set_cap);
  return all;
}

std::string words_of(const RocmSmi& smi, RsmiStatus answer) {
  const char* words = nullptr;
  const bool known = smi.words_of(answer, &words) == kSuccess && words != nullptr;
  return known ? std::string(words) : fmt::format("status {}", answer);
}

class RocmSmiDriver final : public AcceleratorDriver {
 public:
  RocmSmiDriver(std::unique_ptr<DynamicLibrary> library, const RocmSmi& smi)
      : library_(std::move(library)), smi_(smi) {
    std::array<char, 128> version{};
    const bool known = smi_.version(kDriver, version.data(), version.size() - 1) == kSuccess;
    version_ = fmt::format("ROCm SMI, driver {}", known ? version.data() : "of an unknown version");
  }
  RocmSmiDriver(const RocmSmiDriver&) = delete;
  RocmSmiDriver& operator=(const RocmSmiDriver&) = delete;
  ~RocmSmiDriver() override { (void)smi_.shut_down(); }

  const std::string& version() const override { return version_; }
  Result<std::vector<FoundAccelerator>> find() override;
  AcceleratorReading read(std::uint32_t device) override;
  Status set_clock(std::uint32_t device, double clock) override;

 private:
  [[nodiscard]] tl::unexpected<Error> failed(const std::string& what, RsmiStatus answer) const;
  [[nodiscard]] std::optional<double> power(std::uint32_t device) const;
  [[nodiscard]] std::optional<double> temperature(std::uint32_t device) const;

  std::unique_ptr<DynamicLibrary> library_;
  RocmSmi smi_;
  std::string version_;
};

/// Domain, bus, device and function are packed into one number (rsmi_dev_pci_id_get).
std::string pci_address(std::uint64_t packed) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", packed >> 32, (packed >> 8) & 0xff,
                     (packed >> 3) & 0x1f, packed & 0x7);
}

tl::unexpected<Error> RocmSmiDriver::failed(const std::string& what, RsmiStatus answer) const {
  return environment_error(
      fmt::format("{}: {} failed: {}", library_->name(), what, words_of(smi_, answer)));
}

Result<std::vector<FoundAccelerator>> RocmSmiDriver::find() {
  std::uint32_t count = 0;
  if (const RsmiStatus answer = smi_.count(&count); answer != kSuccess) {
    return failed("rsmi_num_monitor_devices", answer);
  }
  std::vector<FoundAccelerator> found(count);
  for (std::uint32_t at = 0; at < count; ++at) {
    FoundAccelerator& each = found[at];
    each.number = at;
    std::array<char, 256> name{};
    if (const RsmiStatus answer = smi_.name(at, name.data(), name.size() - 1); answer != kSuccess) {
      return failed(fmt::format("rsmi_dev_name_get({})", at), answer);
    }
    each.name = name.data();
    std::uint64_t number = 0;
    if (smi_.serial(at, &number) == kSuccess) each.serial = fmt::format("{:016x}", number);
    if (smi_.pci(at, &number) == kSuccess) each.bus = pci_address(number);
    if (smi_.memory(at, kMemoryOnBoard, &number) == kSuccess) each.memory_bytes = number;
  }
  return found;
}

std::optional<double> RocmSmiDriver::power(std::uint32_t device) const {
  std::uint64_t microwatts = 0;
  int kind = 0;
  const bool known =
      (smi_.power != nullptr && smi_.power(device, &microwatts, &kind) == kSuccess) ||
      (smi_.average_power != nullptr && smi_.average_power(device, 0, &microwatts) == kSuccess);
  if (!known) return std::nullopt;
  return static_cast<double>(microwatts) * kWattsPerMicrowatt;
}

/// Returns the temperature of the junction, the hottest place of the chip; without one, of its
/// edge.
std::optional<double> RocmSmiDriver::temperature(std::uint32_t device) const {
  constexpr std::uint32_t kEdge = 0;
  constexpr std::uint32_t kJunction = 1;
  for (const std::uint32_t sensor : {kJunction, kEdge}) {
    std::int64_t millidegrees = 0;
    if (smi_.temperature(device, sensor, kCurrent, &millidegrees) == kSuccess) {
      return static_cast<double>(millidegrees) * kDegreesPerMillidegree;
    }
  }
  return std::nullopt;
}

AcceleratorReading RocmSmiDriver::read(std::uint32_t device) {
  AcceleratorReading reading;
  reading.power_w = power(device);
  reading.temperature_c = temperature(device);
  std::uint32_t percent = 0;
  if (smi_.busy(device, &percent) == kSuccess) {
    reading.busy = static_cast<double>(percent) * kPercent;
  }
  std::uint64_t bytes = 0;
  if (smi_.memory(device, kMemoryOnBoard, &bytes) == kSuccess) reading.memory_bytes = bytes;
  if (smi_.memory_used(device, kMemoryOnBoard, &bytes) == kSuccess) {
    reading.memory_used_bytes = bytes;
  }
  return reading;
}

Status RocmSmiDriver::set_clock(std::uint32_t device, double clock) {
  constexpr std::uint32_t kWholeDevice = 0;  // sensor
  if (smi_.default_cap == nullptr || smi_.cap_range == nullptr || smi_.set_cap == nullptr) {
    return environment_error(fmt::format("{} cannot limit power", library_->name()));
  }
  std::uint64_t full = 0;
  if (const RsmiStatus answer = smi_.default_cap(device, &full); answer != kSuccess) {
    return failed("rsmi_dev_power_cap_default_get", answer);
  }
  std::uint64_t most = 0;
  std::uint64_t least = 0;
  if (const RsmiStatus answer = smi_.cap_range(device, kWholeDevice, &most, &least);
      answer != kSuccess) {
    return failed("rsmi_dev_power_cap_range_get", answer);
  }
  const auto wanted = static_cast<std::uint64_t>(
      std::llround(static_cast<double>(full) * power_at_clock({}, clock)));
  if (const RsmiStatus answer = smi_.set_cap(device, kWholeDevice, std::max(wanted, least));
      answer != kSuccess) {
    return failed("rsmi_dev_power_cap_set", answer);
  }
  if (wanted >= least) return {};
  return environment_error(
      fmt::format("{}: {:.0f} W were wanted, the device takes no limit below {:.0f} W",
                  library_->name(), static_cast<double>(wanted) * kWattsPerMicrowatt,
                  static_cast<double>(least) * kWattsPerMicrowatt));
}

}  // namespace

Result<std::unique_ptr<AcceleratorDriver>> open_rocm_smi(std::span<const std::string> libraries) {
  Result<std::unique_ptr<DynamicLibrary>> library = DynamicLibrary::open(libraries);
  if (!library) return forward_error(library);
  if (*library == nullptr) return nullptr;
  RocmSmi smi{};
  if (Status bound = bind(**library, smi); !bound) return forward_error(bound);
  if (const RsmiStatus answer = smi.init(0); answer != kSuccess) {
    return environment_error(
        fmt::format("{}: rsmi_init failed: {}", (*library)->name(), words_of(smi, answer)));
  }
  return std::make_unique<RocmSmiDriver>(*std::move(library), smi);
}

}  // namespace orrery

// Accelerators by NVML, the library of NVIDIA's driver. The used part of its documented C interface
// (NVML API Reference Guide) is declared here, so that the build needs no header of it.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/system/dynamic_library.hpp"
#include "node/devices/accelerator_driver.hpp"
#include "perf/site/power.hpp"

namespace orrery {
namespace {

struct NvmlDevice;  // theirs
using NvmlHandle = NvmlDevice*;
using NvmlReturn = int;

constexpr NvmlReturn kSuccess = 0;
constexpr NvmlReturn kNotSupported = 3;
constexpr int kClockOfMultiprocessors = 1;
constexpr unsigned kSensorOfTheChip = 0;
constexpr int kUncorrected = 1;
constexpr int kSinceBoot = 0;
constexpr double kWattsPerMilliwatt = 1e-3;
constexpr double kPercent = 1e-2;

struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlUtilization {
  unsigned gpu, memory;  // percent
};
struct NvmlPciInfo {
  std::array<char, 16> short_address;
  unsigned domain, bus, device, id, subsystem;
  std::array<char, 32> address;
};

/// NVML's functions; those that older releases lack may be null.
struct Nvml {
  NvmlReturn (*init)();
  NvmlReturn (*shut_down)();
  const char* (*words_of)(NvmlReturn);
  NvmlReturn (*driver_version)(char*, unsigned);
  NvmlReturn (*count)(unsigned*);
  NvmlReturn (*handle)(unsigned, NvmlHandle*);
  NvmlReturn (*name)(NvmlHandle, char*, unsigned);
  NvmlReturn (*serial)(NvmlHandle, char*, unsigned);
  NvmlReturn (*pci)(NvmlHandle, NvmlPciInfo*);
  NvmlReturn (*minor)(NvmlHandle, unsigned*);
  NvmlReturn (*memory)(NvmlHandle, NvmlMemory*);
  NvmlReturn (*power)(NvmlHandle, unsigned*);
  NvmlReturn (*temperature)(NvmlHandle, unsigned, unsigned*);
  NvmlReturn (*utilization)(NvmlHandle, NvmlUtilization*);
  NvmlReturn (*memory_errors)(NvmlHandle, int, int, unsigned long long*);
  NvmlReturn (*replays)(NvmlHandle, unsigned*);
  NvmlReturn (*default_limit)(NvmlHandle, unsigned*);
  NvmlReturn (*limit_range)(NvmlHandle, unsigned*, unsigned*);
  NvmlReturn (*set_limit)(NvmlHandle, unsigned);
  NvmlReturn (*clock_max)(NvmlHandle, int, unsigned*);
  NvmlReturn (*lock_clocks)(NvmlHandle, unsigned, unsigned);
  NvmlReturn (*free_clocks)(NvmlHandle);
};

Status bind(const DynamicLibrary& library, Nvml& nvml) {
  Status all;
  const auto require = [&](const char* name, auto*& function) {
    if (all) all = library.require(name, function);
  };
  require("nvmlInit_v2", nvml.init);
  require("nvmlShutdown", nvml.shut_down);
  require("nvmlErrorString", nvml.words_of);
  require("nvmlSystemGetDriverVersion", nvml.driver_version);
  require("nvmlDeviceGetCount_v2", nvml.count);
  require("nvmlDeviceGetHandleByIndex_v2", nvml.handle);
  require("nvmlDeviceGetName", nvml.name);
  require("nvmlDeviceGetUUID", nvml.serial);
  require("nvmlDeviceGetMemoryInfo", nvml.memory);
  require("nvmlDeviceGetPowerUsage", nvml.power);
  require("nvmlDeviceGetTemperature", nvml.temperature);
  require("nvmlDeviceGetUtilizationRates", nvml.utilization);
  library.find("nvmlDeviceGetPciInfo_v3", nvml.pci);
  library.find("nvmlDeviceGetMinorNumber", nvml.minor);
  library.find("nvmlDeviceGetTotalEccErrors", nvml.memory_errors);
  library.find("nvmlDeviceGetPcieReplayCounter", nvml.replays);
  library.find("nvmlDeviceGetPowerManagementDefaultLimit", nvml.default_limit);
  library.find("nvmlDeviceGetPowerManagementLimitConstraints", nvml.limit_range);
  library.find("nvmlDeviceSetPowerManagementLimit", nvml.set_limit);
  library.find("nvmlDeviceGetMaxClockInfo", nvml.clock_max);
  library.find("nvmlDeviceSetGpuLockedClocks", nvml.lock_clocks);
  library.find("nvmlDeviceResetGpuLockedClocks", nvml.free_clocks);
  return all;
}

class NvmlDriver final : public AcceleratorDriver {
 public:
  NvmlDriver(std::unique_ptr<DynamicLibrary> library, const Nvml& nvml)
      : library_(std::move(library)), nvml_(nvml) {
    std::array<char, 96> version{};
    const bool known = nvml_.driver_version(version.data(), version.size() - 1) == kSuccess;
    version_ = fmt::format("NVML, driver {}", known ? version.data() : "of an unknown version");
  }
  NvmlDriver(const NvmlDriver&) = delete;
  NvmlDriver& operator=(const NvmlDriver&) = delete;
  ~NvmlDriver() override { (void)nvml_.shut_down(); }

  const std::string& version() const override { return version_; }
  Result<std::vector<FoundAccelerator>> find() override;
  AcceleratorReading read(std::uint32_t device) override;
  Status set_clock(std::uint32_t device, double clock) override;

 private:
  [[nodiscard]] tl::unexpected<Error> failed(const char* what, NvmlReturn answer) const {
    return environment_error(
        fmt::format("{}: {} failed: {}", library_->name(), what, nvml_.words_of(answer)));
  }
  [[nodiscard]] Result<FoundAccelerator> describe(NvmlHandle device) const;
  [[nodiscard]] Status limit_power(NvmlHandle device, double clock) const;
  [[nodiscard]] Status lock_clocks(NvmlHandle device, double clock) const;

  std::unique_ptr<DynamicLibrary> library_;
  Nvml nvml_;
  std::string version_;
  std::vector<NvmlHandle> devices_;
};

Result<std::vector<FoundAccelerator>> NvmlDriver::find() {
  unsigned count = 0;
  if (const NvmlReturn answer = nvml_.count(&count); answer != kSuccess) {
    return failed("nvmlDeviceGetCount", answer);
  }
  devices_.assign(count, nullptr);
  std::vector<FoundAccelerator> found;
  found.reserve(count);
  for (unsigned at = 0; at < count; ++at) {
    // A device that has fallen off the bus is no accelerator any more, and hides the numbers of
    // others.
    if (const NvmlReturn answer = nvml_.handle(at, &devices_[at]); answer != kSuccess) {
      return failed(fmt::format("nvmlDeviceGetHandleByIndex({})", at).c_str(), answer);
    }
    Result<FoundAccelerator> each = describe(devices_[at]);
    if (!each) return forward_error(each);
    each->number = at;
    found.push_back(*std::move(each));
  }
  return found;
}

Result<FoundAccelerator> NvmlDriver::describe(NvmlHandle device) const {
  FoundAccelerator found;
  std::array<char, 96> text{};
  if (const NvmlReturn answer = nvml_.name(device, text.data(), text.size() - 1);
      answer != kSuccess) {
    return failed("nvmlDeviceGetName", answer);
  }
  found.name = text.data();
  text = {};
  if (nvml_.serial(device, text.data(), text.size() - 1) == kSuccess) found.serial = text.data();
  NvmlMemory memory{};
  if (nvml_.memory(device, &memory) == kSuccess) found.memory_bytes = memory.total;
  NvmlPciInfo pci{};
  if (nvml_.pci != nullptr && nvml_.pci(device, &pci) == kSuccess) {
    found.bus = fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
  }
  unsigned minor = 0;
  if (nvml_.minor != nullptr && nvml_.minor(device, &minor) == kSuccess) {
    found.files.push_back(fmt::format("nvidia{}", minor));
  }
  return found;
}

AcceleratorReading NvmlDriver::read(std::uint32_t device) {
  const NvmlHandle handle = devices_.at(device);
  AcceleratorReading reading;
  unsigned number = 0;
  if (nvml_.power(handle, &number) == kSuccess) {
    reading.power_w = static_cast<double>(number) * kWattsPerMilliwatt;
  }
  if (nvml_.temperature(handle, kSensorOfTheChip, &number) == kSuccess) {
    reading.temperature_c = static_cast<double>(number);
  }
  NvmlUtilization utilization{};
  if (nvml_.utilization(handle, &utilization) == kSuccess) {
    reading.busy = static_cast<double>(utilization.gpu) * kPercent;
  }
  NvmlMemory memory{};
  if (nvml_.memory(handle, &memory) == kSuccess) {
    reading.memory_bytes = memory.total;
    reading.memory_used_bytes = memory.used;
  }
  unsigned long long errors = 0;
  if (nvml_.memory_errors != nullptr &&
      nvml_.memory_errors(handle, kUncorrected, kSinceBoot, &errors) == kSuccess) {
    reading.memory_errors = errors;
  }
  if (nvml_.replays != nullptr && nvml_.replays(handle, &number) == kSuccess) {
    reading.link_errors = number;
  }
  return reading;
}

Status NvmlDriver::set_clock(std::uint32_t device, double clock) {
  const NvmlHandle handle = devices_.at(device);
  const Status limited = limit_power(handle, clock);
  const Status locked = lock_clocks(handle, clock);
  return limited ? locked : limited;
}

Status NvmlDriver::limit_power(NvmlHandle device, double clock) const {
  if (nvml_.default_limit == nullptr || nvml_.limit_range == nullptr ||
      nvml_.set_limit == nullptr) {
    return environment_error(fmt::format("{} cannot limit power", library_->name()));
  }
  unsigned full = 0;
  if (const NvmlReturn answer = nvml_.default_limit(device, &full); answer != kSuccess) {
    return failed("nvmlDeviceGetPowerManagementDefaultLimit", answer);
  }
  unsigned least = 0;
  unsigned most = 0;
  if (const NvmlReturn answer = nvml_.limit_range(device, &least, &most); answer != kSuccess) {
    return failed("nvmlDeviceGetPowerManagementLimitConstraints", answer);
  }
  const auto wanted = static_cast<unsigned>(std::lround(full * power_at_clock({}, clock)));
  if (const NvmlReturn answer = nvml_.set_limit(device, std::max(wanted, least));
      answer != kSuccess) {
    return failed("nvmlDeviceSetPowerManagementLimit", answer);
  }
  if (wanted >= least) return {};
  return environment_error(
      fmt::format("{}: {:.0f} W were wanted, the device takes no limit below "
                  "{:.0f} W",
                  library_->name(), wanted * kWattsPerMilliwatt, least * kWattsPerMilliwatt));
}

/// Where a library or device cannot lock clocks, the power limit has to suffice.
Status NvmlDriver::lock_clocks(NvmlHandle device, double clock) const {
  if (nvml_.clock_max == nullptr || nvml_.lock_clocks == nullptr || nvml_.free_clocks == nullptr) {
    return {};
  }
  unsigned full = 0;
  NvmlReturn answer = nvml_.clock_max(device, kClockOfMultiprocessors, &full);
  if (answer == kSuccess) {
    const auto megahertz = static_cast<unsigned>(std::lround(full * clock));
    answer = clock < 1 ? nvml_.lock_clocks(device, 0, megahertz) : nvml_.free_clocks(device);
  }
  if (answer == kSuccess || answer == kNotSupported) return {};
  return failed(clock < 1 ? "nvmlDeviceSetGpuLockedClocks" : "nvmlDeviceResetGpuLockedClocks",
                answer);
}

}  // namespace

Result<std::unique_ptr<AcceleratorDriver>> open_nvml(std::span<const std::string> libraries) {
  Result<std::unique_ptr<DynamicLibrary>> library = DynamicLibrary::open(libraries);
  if (!library) return forward_error(library);
  if (*library == nullptr) return nullptr;
  Nvml nvml{};
  if (Status bound = bind(**library, nvml); !bound) return forward_error(bound);
  if (const NvmlReturn answer = nvml.init(); answer != kSuccess) {
    return environment_error(
        fmt::format("{}: nvmlInit failed: {}", (*library)->name(), nvml.words_of(answer)));
  }
  return std::make_unique<NvmlDriver>(*std::move(library), nvml);
}

}  // namespace orrery

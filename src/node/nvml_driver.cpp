// Accelerators by NVML, the library of NVIDIA's driver. Declared here is what is used of its
// documented C interface (NVML API Reference Guide), so that no header of it is needed to build.
#include <array>
#include <utility>

#include "node/accelerator_driver.hpp"
#include "node/dynamic_library.hpp"

namespace orrery {
namespace {

struct NvmlDevice;  // theirs
using NvmlHandle = NvmlDevice*;
using NvmlReturn = int;

constexpr NvmlReturn kSuccess = 0;
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

/// Its functions; those that older releases lack may be null.
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
  NvmlReturn (*memory)(NvmlHandle, NvmlMemory*);
  NvmlReturn (*power)(NvmlHandle, unsigned*);
  NvmlReturn (*temperature)(NvmlHandle, unsigned, unsigned*);
  NvmlReturn (*utilization)(NvmlHandle, NvmlUtilization*);
  NvmlReturn (*memory_errors)(NvmlHandle, int, int, unsigned long long*);
  NvmlReturn (*replays)(NvmlHandle, unsigned*);
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
  library.find("nvmlDeviceGetTotalEccErrors", nvml.memory_errors);
  library.find("nvmlDeviceGetPcieReplayCounter", nvml.replays);
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

 private:
  [[nodiscard]] tl::unexpected<Error> failed(const char* what, NvmlReturn answer) const {
    return environment_error(
        fmt::format("{}: {} failed: {}", library_->name(), what, nvml_.words_of(answer)));
  }
  [[nodiscard]] Result<FoundAccelerator> describe(NvmlHandle device) const;

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
    // One that has fallen off the bus is no accelerator any more, and hides the numbers of others.
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
